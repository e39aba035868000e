"""What Auto Scaling is asked: descriptions, activities, sizes, processes and terminations."""

from ministack.services import autoscaling, ec2

from stand_in.insides import xml
from stand_in.machines import dismiss, scale
from stand_in.machines_of_stacks import SIZES, activities_of_deleted


def answer(action, members):
    return autoscaling._xml(200, f"{action}Response", xml({f"{action}Result": members}, "member"))


def refuse(message):
    return autoscaling._error("ValidationError", message)


def group_of(parameters):
    return autoscaling._asgs.get(autoscaling._p(parameters, "AutoScalingGroupName"))


def no_group(parameters):
    name = autoscaling._p(parameters, "AutoScalingGroupName")
    return refuse(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")


def page(parameters, entries, default):
    start, size = int(autoscaling._p(parameters, "NextToken") or 0), int(autoscaling._p(parameters, "MaxRecords") or default)
    return entries[start:start + size], str(start + size) if start + size < len(entries) else None


def tag_filters(parameters):
    return [(entry["Name"], entry["Values"]) for entry in autoscaling._parse_nested(parameters, "Filters") or []]


def has_tags(group, filters):
    tags = {entry["Key"]: entry["Value"] for entry in group["Tags"]}
    found = {"tag-key": set(tags), "tag-value": set(tags.values())}
    return all(set(values) & (found.get(name) or {tags.get(name.removeprefix("tag:"))}) for name, values in filters)


def describe_group(group):
    described = {
        key: group[key] for key in (
            "AutoScalingGroupName", "AutoScalingGroupARN", "MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown",
            "AvailabilityZones", "HealthCheckType", "HealthCheckGracePeriod", "CreatedTime", "VPCZoneIdentifier",
            "TerminationPolicies", "NewInstancesProtectedFromScaleIn", "Instances", "Tags")}
    for key in ("LaunchTemplate", "MixedInstancesPolicy", "LaunchConfigurationName"):
        if group.get(key):
            described[key] = group[key]
    described["TargetGroupARNs"] = group.get("TargetGroupARNs", [])
    described["SuspendedProcesses"] = [{"ProcessName": name, "SuspensionReason": "User suspended at the request of a test"}
                                       for name in group.get("Suspended", [])]
    subnets = [ec2._subnets.get(subnet) for subnet in group["VPCZoneIdentifier"].split(",")]
    if zones := {subnet["AvailabilityZone"] for subnet in subnets if subnet}:
        described["AvailabilityZones"] = sorted(zones)
    return described


def describe_groups(parameters):
    names, filters = autoscaling._parse_member_list(parameters, "AutoScalingGroupNames"), tag_filters(parameters)
    groups = [group for group in autoscaling._asgs.values()
              if (not names or group["AutoScalingGroupName"] in names) and has_tags(group, filters)]
    shown, token = page(parameters, groups, 50)
    return answer("DescribeAutoScalingGroups", {
        "AutoScalingGroups": [describe_group(group) for group in shown], "NextToken": token})


def describe_activities(parameters):
    name = autoscaling._p(parameters, "AutoScalingGroupName")
    wanted = autoscaling._parse_member_list(parameters, "ActivityIds")
    noted = {group["AutoScalingGroupName"]: group.get("Activities", []) for group in autoscaling._asgs.values()}
    if autoscaling._p(parameters, "IncludeDeletedGroups") == "true":
        noted = dict(activities_of_deleted.items()) | noted
    if name and name not in noted:
        return no_group(parameters)
    activities = [activity for group in ([name] if name else noted) for activity in noted[group]
                  if not wanted or activity["ActivityId"] in wanted]
    shown, token = page(parameters, activities, 100)
    return answer("DescribeScalingActivities", {"Activities": shown, "NextToken": token})


def terminate(parameters):
    instance_id = autoscaling._p(parameters, "InstanceId")
    for group in autoscaling._asgs.values():
        for member in group["Instances"]:
            if member["InstanceId"] == instance_id:
                return terminate_member(group, member, autoscaling._p(parameters, "ShouldDecrementDesiredCapacity") == "true")
    return refuse(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")


def terminate_by_ec2(parameters):
    """EC2 terminates a machine of a group: the group notices, and starts another in its place."""
    wanted = set(ec2._parse_member_list(parameters, "InstanceId"))
    answered = terminate_instances(parameters)
    for group in list(autoscaling._asgs.values()):
        if lost := [member for member in group["Instances"] if member["InstanceId"] in wanted]:
            for member in lost:
                dismiss(group, member)
            scale(group)
    return answered


terminate_instances, ec2._ACTION_MAP["TerminateInstances"] = ec2._terminate_instances, terminate_by_ec2


def terminate_member(group, member, fewer):
    if fewer and group["DesiredCapacity"] <= group["MinSize"]:
        return refuse(f"Currently, desiredSize equals minSize ({group['MinSize']}). Terminating instance without replacement will "
                      "violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower "
                      "group's min size.")
    group["DesiredCapacity"] -= fewer
    dismiss(group, member)
    activity = group["Activities"][0] | {"StatusCode": "InProgress", "Progress": 0, "EndTime": None}
    scale(group)
    return answer("TerminateInstanceInAutoScalingGroup", {"Activity": activity})


def set_capacity(parameters):
    group, wanted = group_of(parameters), int(autoscaling._p(parameters, "DesiredCapacity"))
    if not group:
        return no_group(parameters)
    for limit, beyond in (("max", wanted > group["MaxSize"]), ("min", wanted < group["MinSize"])):
        if beyond:
            return refuse(f"New SetDesiredCapacity value {wanted} is {'above' if limit == 'max' else 'below'} {limit} value "
                          f"{group[limit.capitalize() + 'Size']} for the AutoScalingGroup.")
    group["DesiredCapacity"] = wanted
    scale(group)
    return autoscaling._xml(200, "SetDesiredCapacityResponse", "")


def update_sizes(parameters):
    group = group_of(parameters)
    if not group:
        return no_group(parameters)
    sizes = {key: int(autoscaling._p(parameters, key) or group[key]) for key in SIZES}
    if sizes["MinSize"] > sizes["MaxSize"]:
        return refuse(f"Max bound, {sizes['MaxSize']}, must be greater than or equal to min bound, {sizes['MinSize']}")
    if not autoscaling._p(parameters, "DesiredCapacity"):
        sizes["DesiredCapacity"] = min(max(sizes["DesiredCapacity"], sizes["MinSize"]), sizes["MaxSize"])
    if not sizes["MinSize"] <= sizes["DesiredCapacity"] <= sizes["MaxSize"]:
        return refuse(f"Desired capacity:{sizes['DesiredCapacity']} must be between the specified min size:{sizes['MinSize']} "
                      f"and max size:{sizes['MaxSize']}")
    group.update(sizes)
    scale(group)
    return autoscaling._xml(200, "UpdateAutoScalingGroupResponse", "")


def processes(action):
    """They are recorded for descriptions; nothing else here depends on them."""

    def change(parameters):
        group = group_of(parameters)
        if not group:
            return no_group(parameters)
        named = autoscaling._parse_member_list(parameters, "ScalingProcesses") or [
            "Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions",
            "AddToLoadBalancer", "InstanceRefresh"]
        others = [name for name in group.get("Suspended", []) if name not in named]
        group["Suspended"] = others + (named if action == "SuspendProcesses" else [])
        return autoscaling._xml(200, f"{action}Response", "")

    return change


autoscaling._ACTION_MAP.update({
    "DescribeAutoScalingGroups": describe_groups,
    "DescribeScalingActivities": describe_activities,
    "TerminateInstanceInAutoScalingGroup": terminate,
    "SetDesiredCapacity": set_capacity,
    "UpdateAutoScalingGroup": update_sizes,
    "SuspendProcesses": processes("SuspendProcesses"),
    "ResumeProcesses": processes("ResumeProcesses"),
})
