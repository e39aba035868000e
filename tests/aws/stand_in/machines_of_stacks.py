"""Auto Scaling groups of stacks: creations and updates that wait for the signals of machines, and deletions."""

import time

from ministack.core.responses import AccountRegionScopedDict, now_iso
from ministack.services import autoscaling, cloudformation, ec2
from ministack.services.cloudformation import handlers, stacks

from stand_in.control import control
from stand_in.insides import HANDLERS
from stand_in.machines import GROUP, dismiss, scale, told
from stand_in.network import guard_type

group_handler = HANDLERS[GROUP]
create_group, update_group = group_handler["create"], group_handler["update"]


def propagating(properties):
    """Machines get the tags of the stack, too."""
    return properties | {"Tags": [{"PropagateAtLaunch": True} | entry for entry in properties.get("Tags", [])]}


def mention(stack, group, status, reason):
    stacks._add_event(stack["StackId"], stack["StackName"], group["LogicalId"], GROUP, status, reason,
                      group["AutoScalingGroupName"])


def wait_for_signals(stack, group, status, count, before):
    """Until as many machines as counted, other than those before, have signalled."""
    began, limit = time.monotonic(), 60
    while True:
        limit = control().get("signal_timeout", limit)
        fresh = [member["InstanceId"] for member in group["Instances"] if member["InstanceId"] not in before]
        if control().get("real_machines"):
            if enough_signals(group, fresh, count):
                return
        elif told(group, "no_signal") is None and len(fresh) >= count:
            for instance_id in fresh[:count]:
                mention(stack, group, status, f"Received SUCCESS signal with UniqueId {instance_id}")
            return
        if "_deletion" in stack or stack.get("_cancel_requested"):
            raise ValueError(f"Resource {'creation' if '_deletion' in stack else 'update'} cancelled")
        if time.monotonic() - began >= limit:
            raise ValueError(f"Received 0 SUCCESS signal(s) out of {count}.  "
                             "Unable to satisfy 100% MinSuccessfulInstancesPercent requirement")
        time.sleep(0.02)


def enough_signals(group, fresh, count):
    signals = [group.get("Signals", {}).get(instance_id) for instance_id in fresh]
    if failed := signals.count("FAILURE"):
        raise ValueError(f"Received {failed} FAILURE signal(s) out of {count}.  "
                         "Unable to satisfy 100% MinSuccessfulInstancesPercent requirement")
    return signals.count("SUCCESS") >= count


def signal_group(parameters):
    """A machine's signal to its group; every other signal is left to MiniStack itself."""
    stack = handlers._resolve_stack(autoscaling._p(parameters, "StackName"))
    name = stack["_resources"].get(autoscaling._p(parameters, "LogicalResourceId"), {}).get("PhysicalResourceId") if stack else None
    group = autoscaling._asgs.get(name)
    status, unique_id = autoscaling._p(parameters, "Status"), autoscaling._p(parameters, "UniqueId")
    if not group or status not in ("SUCCESS", "FAILURE") or stack["StackStatus"] not in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
        return signal_other(parameters)
    group.setdefault("Signals", {})[unique_id] = status
    mention(stack, group, stack["StackStatus"], f"Received {status} signal with UniqueId {unique_id}")
    return handlers._xml(200, "SignalResourceResponse", "")


signal_other, handlers._ACTION_HANDLERS["SignalResource"] = handlers._ACTION_HANDLERS["SignalResource"], signal_group


def attach_free_volume(parameters):
    volume = ec2._volumes.get(ec2._p(parameters, "VolumeId"), {})
    for attachment in volume.get("Attachments", []):
        return ec2._error("VolumeInUse", f"{volume['VolumeId']} is already attached to an instance ({attachment['InstanceId']})", 400)
    return attach_volume(parameters)


attach_volume, ec2._ACTION_MAP["AttachVolume"] = ec2._attach_volume, attach_free_volume


def policies(stack, logical_id):
    template = stack.get("_deploying") or stack["_template"]
    values = stack.get("_deploying_with") or stack["_resolved_params"]
    resource = template["Resources"].get(logical_id, {})
    return tuple(with_values(resource.get(kind, {}), values) for kind in ("CreationPolicy", "UpdatePolicy"))


def with_values(policy, values):
    """Policies may name parameters, and nothing else."""
    if not isinstance(policy, dict):
        return policy
    if set(policy) == {"Ref"}:
        return values[policy["Ref"]]["Value"]
    return {key: with_values(value, values) for key, value in policy.items()}


def create_with_machines(logical_id, properties, stack_name):
    stack = cloudformation._stacks[stack_name]
    name, attributes = create_group(logical_id, propagating(properties), stack_name)
    group = autoscaling._asgs[name]
    group.update(StackName=stack_name, LogicalId=logical_id)
    mention(stack, group, "CREATE_IN_PROGRESS", "Resource creation Initiated")
    # It can be seen, and a rollback of the stack knows it, before it is complete.
    record = {"PhysicalResourceId": name, "ResourceType": GROUP, "ResourceStatus": "CREATE_IN_PROGRESS",
              "LogicalResourceId": logical_id, "Properties": properties, "Attributes": attributes, "Timestamp": now_iso()}
    stack["_resources"][logical_id] = record
    try:
        scale(group)
        signals = policies(stack, logical_id)[0].get("ResourceSignal")
        count = int(signals.get("Count", 1)) if signals else 0
        wait_for_signals(stack, group, "CREATE_IN_PROGRESS", count, set())
    except Exception as failure:
        record.update(ResourceStatus="CREATE_FAILED", ResourceStatusReason=str(failure))
        raise
    return name, attributes


def settings_of_machines(group):
    return group["Launches"], group["VPCZoneIdentifier"], group["MixedInstancesPolicy"]


SIZES = ("MinSize", "MaxSize", "DesiredCapacity")


def update_with_machines(name, old, new, stack_name, logical_id=None):
    stack, group = cloudformation._stacks[stack_name], autoscaling._asgs[name]
    update_policy = policies(stack, logical_id)[1]
    sizes, machines_before = {key: group[key] for key in SIZES}, settings_of_machines(group)
    before = {member["InstanceId"] for member in group["Instances"]}
    if logical_id in stack["_resources"]:
        stack["_resources"][logical_id]["ResourceStatus"] = "UPDATE_IN_PROGRESS"
    answer = update_group(name, propagating(old), propagating(new), stack_name, logical_id)
    if update_policy.get("AutoScalingScheduledAction", {}).get("IgnoreUnmodifiedGroupSizeProperties"):
        # What someone else has set since stays, within the template's new limits.
        group.update({key: size for key, size in sizes.items() if old.get(key) == new.get(key)})
        group["DesiredCapacity"] = min(max(group["DesiredCapacity"], group["MinSize"]), group["MaxSize"])
    rolling = update_policy.get("AutoScalingRollingUpdate")
    scale(group)
    if rolling and settings_of_machines(group) != machines_before:
        roll(stack, group, rolling)
    elif rolling and rolling.get("WaitOnResourceSignals"):
        wait_for_signals(stack, group, "UPDATE_IN_PROGRESS", max(group["DesiredCapacity"] - len(before), 0), before)
    return answer


def roll(stack, group, policy):
    wanted = str(group["Launches"]["Version"])
    subnets = group["VPCZoneIdentifier"].split(",")
    obsolete = [member for member in group["Instances"]
                if member["LaunchTemplate"]["Version"] != wanted
                or member["LaunchTemplate"]["LaunchTemplateId"] != group["Launches"]["LaunchTemplateId"]
                or any(subnets) and ec2._instances[member["InstanceId"]]["SubnetId"] not in subnets]
    size, in_service = int(policy.get("MaxBatchSize", 1)), int(policy.get("MinInstancesInService", 0))
    if obsolete and in_service >= group["MaxSize"]:
        raise ValueError("MinInstancesInService must be less than the autoscaling group's MaxSize")
    mention(stack, group, "UPDATE_IN_PROGRESS", f"Rolling update initiated. Terminating {len(obsolete)} obsolete instance(s) in "
            f"batches of {size}, while keeping at least {in_service} instance(s) in service.")
    wanted_size = group["DesiredCapacity"]
    try:
        if wanted_size > in_service + size:
            group["DesiredCapacity"] = in_service + size
            mention(stack, group, "UPDATE_IN_PROGRESS", "Temporarily setting autoscaling group MinSize and DesiredCapacity to "
                    f"{in_service + size}.")
            scale(group)
        replace_members(stack, group, policy, [member for member in obsolete if member in group["Instances"]], size)
    finally:
        group["DesiredCapacity"] = wanted_size
    scale(group)


def replace_members(stack, group, policy, obsolete, size):
    for start in range(0, len(obsolete), size):
        batch = obsolete[start:start + size]
        before = {member["InstanceId"] for member in group["Instances"]}
        ending = ", ".join(member["InstanceId"] for member in batch)
        mention(stack, group, "UPDATE_IN_PROGRESS", f"Terminating instance(s) [{ending}]; replacing with {len(batch)} new "
                "instance(s).")
        for member in batch:
            dismiss(group, member)
        scale(group)
        if policy.get("WaitOnResourceSignals"):
            wait_for_signals(stack, group, "UPDATE_IN_PROGRESS", len(batch), before)


group_handler.update(create=create_with_machines, update=update_with_machines)


def end_group(name, _properties):
    if group := autoscaling._asgs.get(name):
        for member in list(group["Instances"]):
            dismiss(group, member)


guard_type(GROUP, end_group)

# AWS remembers them for weeks.
activities_of_deleted = AccountRegionScopedDict()
delete_group = group_handler["delete"]


def delete_remembering(name, properties):
    group = autoscaling._asgs.get(name, {})
    delete_group(name, properties)
    activities_of_deleted[name] = group.get("Activities", [])


group_handler["delete"] = delete_remembering
