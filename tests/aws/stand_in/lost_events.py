"""Events of stacks that are never shown, or later than others that came after them."""

from ministack.services import cloudformation
from ministack.services.cloudformation import handlers, helpers

from stand_in.control import control, names_of

ACTIONS = handlers._ACTION_HANDLERS
describe_stack_events = ACTIONS["DescribeStackEvents"]
# By stack, the events that were part of an answer.
shown = {}


def is_lost(event):
    return (event["PhysicalResourceId"] == event["StackId"]
            and event["ResourceStatus"] in control().get("lose_events", {}).get(event["StackName"], []))


def is_late(event, newer, shown_before):
    names = names_of(event["StackName"], event["LogicalResourceId"])
    late = control().get("late_events", {})
    told = any(event["ResourceStatus"] in late.get(name, []) for name in names)
    return told and not any(later["EventId"] in shown_before for later in newer)


def describe_events_that_are_there(parameters):
    stack = handlers._resolve_stack(helpers._p(parameters, "StackName"))
    if not stack or not {"lose_events", "late_events"} & set(control()):
        return describe_stack_events(parameters)
    stack_id = stack["StackId"]
    all_events, before = cloudformation._stack_events.get(stack_id, []), shown.setdefault(stack_id, set())
    visible = [event for number, event in enumerate(all_events)
               if not is_lost(event) and not is_late(event, all_events[number + 1:], before)]
    number = len(visible)
    before.update(event["EventId"] for event in visible)
    cloudformation._stack_events[stack_id] = visible
    try:
        return describe_stack_events(parameters)
    finally:
        # What happened meanwhile, on another thread.
        all_events.extend(visible[number:])
        cloudformation._stack_events[stack_id] = all_events


ACTIONS["DescribeStackEvents"] = describe_events_that_are_there
