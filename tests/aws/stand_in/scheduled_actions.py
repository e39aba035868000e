"""Scheduled actions of Auto Scaling groups: what Auto Scaling refuses of them, and when each happens next.

None of them happens by itself. RunScheduledAction, which AWS does not have, lets one happen: the action of AutoScalingGroupName whose
Recurrence is given, unless the group's process for them is suspended.
"""

import datetime
import secrets
import zoneinfo

from ministack.core.responses import get_account_id, get_region
from ministack.services import autoscaling

from stand_in.insides import HANDLERS, Refused
from stand_in.machine_calls import answer, group_of, no_group, page, refuse
from stand_in.machines import scale
from stand_in.machines_of_stacks import SIZES, group_handler

ACTION = "AWS::AutoScaling::ScheduledAction"
MOST = 125
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()
FIELDS = ((0, 59, []), (0, 23, []), (1, 31, []), (1, 12, MONTHS), (0, 7, DAYS))
FURTHEST = 366 * 8

actions = autoscaling._scheduled_actions


# --- Times -------------------------------------------------------------------------------------------------------------------


def numbers_of(text, least, most, names):
    found = set()
    for part in text.upper().split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            first, last = least, min(most, 6) if names is DAYS else most
        else:
            first, last = (names.index(word) + least if word in names else int(word) for word in (first, last if dash else first))
            last = most if step and not dash else last
        if not least <= first <= last <= most:
            raise ValueError(part)
        found.update(range(first, last + 1, int(step) if step else 1))
    return found


def read_cron(text):
    """The numbers of each field, and whether the fields of days name any day."""
    words = text.split()
    if len(words) != len(FIELDS):
        raise ValueError(text)
    minutes, hours, days, months, weekdays = (numbers_of(word, *field) for word, field in zip(words, FIELDS))
    return minutes, hours, days, months, {day % 7 for day in weekdays}, words[2] == "*", words[4] == "*"


def is_day(day, cron):
    _, _, days, months, weekdays, any_day, any_weekday = cron
    in_month, in_week = day.day in days, day.isoweekday() % 7 in weekdays
    return day.month in months and (in_month and in_week if any_day or any_weekday else in_month or in_week)


def next_start(recurrence, zone):
    cron, now = read_cron(recurrence), datetime.datetime.now(datetime.timezone.utc)
    zone = zoneinfo.ZoneInfo(zone or "UTC")
    today = now.astimezone(zone).date()
    for day in (today + datetime.timedelta(days=count) for count in range(FURTHEST)):
        for hour in sorted(cron[1]) if is_day(day, cron) else ():
            for minute in sorted(cron[0]):
                start = datetime.datetime.combine(day, datetime.time(hour, minute), zone).astimezone(datetime.timezone.utc)
                if start > now:
                    return start.strftime("%Y-%m-%dT%H:%M:%SZ")
    raise ValueError(recurrence)


# --- Calls -------------------------------------------------------------------------------------------------------------------


def of_group(name):
    return {key: action for key, action in actions.items() if action["AutoScalingGroupName"] == name}


def fault(group, name, given):
    """What Auto Scaling would say against an action, if anything."""
    if group is None:
        return "ValidationError", f"Scheduled action cannot be created for the group {name}: it does not exist"
    try:
        zone = given.get("TimeZone")
        if zone and zone not in zoneinfo.available_timezones():
            return "ValidationError", f"Given timezone: {zone} is invalid"
        start = next_start(given["Recurrence"], zone)
    except (KeyError, ValueError):
        return "ValidationError", f"Given recurrence string: {given.get('Recurrence')} is invalid"
    others = [other for key, other in of_group(group["AutoScalingGroupName"]).items() if other["ScheduledActionName"] != name]
    if any(next_start(other["Recurrence"], other.get("TimeZone")) == start for other in others):
        return "AlreadyExists", "Scheduled action with this scheduled start time already exists"
    if len(others) >= MOST:
        return "LimitExceeded", f"Cannot create more than {MOST} scheduled actions per group"
    sizes = [given.get(key) for key in SIZES]
    if all(size in (None, "") for size in sizes):
        return "ValidationError", "At least one of min size, max size and desired capacity is required"
    if None not in sizes and not int(sizes[0]) <= int(sizes[2]) <= int(sizes[1]):
        return "ValidationError", f"Desired capacity:{sizes[2]} must be between min size:{sizes[0]} and max size:{sizes[1]}"
    return None


def keep(group, name, given):
    group_name = group["AutoScalingGroupName"]
    arn = (f"arn:aws:autoscaling:{get_region()}:{get_account_id()}:scheduledUpdateGroupAction:{secrets.token_hex(8)}:"
           f"autoScalingGroupName/{group_name}:scheduledActionName/{name}")
    actions[f"{group_name}/{name}"] = autoscaling._scheduled_action_record(group_name, name, arn, given)


def put(parameters):
    group, name = group_of(parameters), autoscaling._p(parameters, "ScheduledActionName")
    given = {key: autoscaling._p(parameters, key) or None for key in ("Recurrence", "TimeZone", *SIZES)}
    if found := fault(group, name, given):
        return autoscaling._error(*found)
    keep(group, name, given)
    return autoscaling._xml(200, "PutScheduledUpdateGroupActionResponse", "")


def describe(parameters):
    name = autoscaling._p(parameters, "AutoScalingGroupName")
    found = [action for action in actions.values() if not name or action["AutoScalingGroupName"] == name]
    shown, token = page(parameters, found, 50)
    starts = [next_start(action["Recurrence"], action.get("TimeZone")) for action in shown]
    members = [action | {"StartTime": start, "Time": start} for action, start in zip(shown, starts)]
    return answer("DescribeScheduledActions", {"ScheduledUpdateGroupActions": members, "NextToken": token})


def delete(parameters):
    key = f"{autoscaling._p(parameters, 'AutoScalingGroupName')}/{autoscaling._p(parameters, 'ScheduledActionName')}"
    if key not in actions:
        return refuse("Scheduled action name not found")
    del actions[key]
    return autoscaling._xml(200, "DeleteScheduledActionResponse", "")


def run(parameters):
    group, recurrence = group_of(parameters), autoscaling._p(parameters, "Recurrence")
    if not group:
        return no_group(parameters)
    found = [action for action in of_group(group["AutoScalingGroupName"]).values() if action["Recurrence"] == recurrence]
    if not found:
        return refuse(f"no scheduled action has the recurrence {recurrence}")
    if "ScheduledActions" not in group.get("Suspended", []):
        group.update({key: found[0][key] for key in SIZES if found[0][key] >= 0})
        group["DesiredCapacity"] = min(max(group["DesiredCapacity"], group["MinSize"]), group["MaxSize"])
        scale(group)
    return autoscaling._xml(200, "RunScheduledActionResponse", "")


autoscaling._ACTION_MAP.update({
    "PutScheduledUpdateGroupAction": put,
    "DescribeScheduledActions": describe,
    "DeleteScheduledAction": delete,
    "RunScheduledAction": run,
})


# --- Of stacks ---------------------------------------------------------------------------------------------------------------


def put_of_stack(name, properties):
    group = autoscaling._asgs.get(properties["AutoScalingGroupName"])
    if found := fault(group, name, properties):
        raise Refused(*found)
    keep(group, name, properties)


def create_of_stack(logical_id, properties, stack_name):
    name = f"{stack_name}-{logical_id}-{secrets.token_hex(6).upper()}"
    put_of_stack(name, properties)
    return name, {"ScheduledActionName": name}


def update_of_stack(name, _old, new, _stack_name, _logical_id=None):
    put_of_stack(name, new)
    return name, {"ScheduledActionName": name}


def delete_of_stack(name, properties):
    actions.pop(f"{properties['AutoScalingGroupName']}/{name}", None)


HANDLERS[ACTION] = {"create": create_of_stack, "update": update_of_stack, "delete": delete_of_stack}

# They end with their group.
delete_group = group_handler["delete"]


def delete_with_actions(name, properties):
    delete_group(name, properties)
    for key in of_group(name):
        del actions[key]


group_handler["delete"] = delete_with_actions
