"""Machines of Auto Scaling groups: how they start, how they signal or do not, and what tells of it."""

import base64
import fnmatch
import re
import threading
import time

from ministack.core.concurrency import spawn_background
from ministack.core.responses import AccountRegionScopedDict, get_region, new_uuid, now_iso
from ministack.services import autoscaling, cloudformation, ec2
from ministack.services.cloudformation import handlers, provisioners, stacks

from stand_in.control import control, names_of
from stand_in.insides import HANDLERS, Refused, done, rolling_back, xml
from stand_in.network import guard_type, make_interface, untag

GROUP = "AWS::AutoScaling::AutoScalingGroup"


# --- One machine -------------------------------------------------------------------------------------------------------------

group_fields = provisioners._asg_fields


def group_fields_with_template(properties):
    mixed = properties.get("MixedInstancesPolicy", {})
    specification = mixed.get("LaunchTemplate", {}).get("LaunchTemplateSpecification")
    fields = group_fields(properties) | {
        "Launches": properties.get("LaunchTemplate") or specification, "MixedInstancesPolicy": mixed,
        "TargetGroupARNs": properties.get("TargetGroupARNs", [])}
    if not fields["MinSize"] <= fields["DesiredCapacity"] <= fields["MaxSize"]:
        raise ValueError(f"Desired capacity:{fields['DesiredCapacity']} must be between the specified "
                         f"min size:{fields['MinSize']} and max size:{fields['MaxSize']}")
    return fields


provisioners._asg_fields = group_fields_with_template


def machine_type(group, data):
    overrides = group["MixedInstancesPolicy"].get("LaunchTemplate", {}).get("Overrides", [])
    return overrides[0]["InstanceType"] if overrides else data["InstanceType"]


def is_spot(group, data):
    distribution = group["MixedInstancesPolicy"].get("InstancesDistribution")
    if distribution is None:
        return data.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
    # As far as our templates go: all of them or none.
    return int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100)) == 0


def note_activity(group, description, status, message=None):
    """The newest comes first."""
    now = now_iso()
    group.setdefault("Activities", []).insert(0, {
        "ActivityId": new_uuid(), "AutoScalingGroupName": group["AutoScalingGroupName"], "Description": description,
        "Cause": f"At {now} an instance was started in response to a difference between desired and actual capacity.",
        "StartTime": now, "EndTime": now, "StatusCode": status, "StatusMessage": message, "Progress": 100,
        "AutoScalingGroupARN": group["AutoScalingGroupARN"]})
    return group["Activities"][0]


def start_machine(group):
    template = ec2._launch_templates[group["Launches"]["LaunchTemplateId"]]
    wanted_version = str(group["Launches"]["Version"])
    data = next(version["LaunchTemplateData"] for version in template["Versions"]
                if str(version["VersionNumber"]) == wanted_version)
    network = data["NetworkInterfaces"][0]
    subnets = [subnet for subnet in group["VPCZoneIdentifier"].split(",") if subnet]
    interface = ec2._network_interfaces.get(network.get("NetworkInterfaceId"))
    subnet_id = interface["SubnetId"] if interface else subnets[len(group["Instances"]) % len(subnets)]
    zone = ec2._subnets[subnet_id]["AvailabilityZone"]
    # What a member of etcd claims first.
    volumes = set(re.findall(r"vol-[0-9a-f]{17}", base64.b64decode(data.get("UserData", "")).decode()))
    if not subnets and zone not in group["AvailabilityZones"]:
        raise ValueError(f"the interface is in {zone}, the group is in {group['AvailabilityZones']}")
    if elsewhere := [volume_id for volume_id in volumes if ec2._volumes[volume_id]["AvailabilityZone"] != zone]:
        raise ValueError(f"{elsewhere} is not in {zone}, where its machine is")
    if interface and interface["Attachment"]:
        raise Refused("InvalidNetworkInterface.InUse", f"{interface['NetworkInterfaceId']} is in use")

    own_interface = not interface
    interface = interface or make_interface(subnet_id, network.get("Groups", []), "")
    instance = ec2._launch_instances_internal(
        data["ImageId"], machine_type(group, data), subnet_id, 1, data.get("KeyName", ""), data.get("UserData", ""),
        [entry["GroupId"] for entry in interface["Groups"]], interface["PrivateIpAddress"])[0]
    instance_id = instance["InstanceId"]
    instance["Placement"]["AvailabilityZone"] = zone
    instance["Spot"] = is_spot(group, data)
    instance["PlacementGroup"] = data.get("Placement", {}).get("GroupName")
    domain = "ec2" if get_region() == "us-east-1" else f"{get_region()}.compute"
    instance["PrivateDnsName"] = f"ip-{interface['PrivateIpAddress'].replace('.', '-')}.{domain}.internal"
    if not network.get("AssociatePublicIpAddress"):
        instance.update(PublicIpAddress="", PublicDnsName="")
    interface.update(Status="in-use", MadeWithMachine=own_interface, PublicIp=instance["PublicIpAddress"], Attachment={
        "AttachmentId": f"eni-attach-{instance_id[2:]}", "InstanceId": instance_id, "DeviceIndex": 0, "Status": "attached",
        "AttachTime": ec2._now_ts()})
    instance["Launch"] = data
    # A real machine does that itself.
    for volume_id in [] if control().get("real_machines") else volumes:
        done(ec2._attach_volume({"VolumeId": [volume_id], "InstanceId": [instance_id]}))

    tags = {specification["ResourceType"]: specification["Tags"] for specification in data.get("TagSpecifications", [])}
    propagated = [{"Key": entry["Key"], "Value": entry["Value"]} for entry in group["Tags"] if entry["PropagateAtLaunch"]]
    name = [{"Key": "aws:autoscaling:groupName", "Value": group["AutoScalingGroupName"]}]
    merged = {entry["Key"]: entry for entry in tags.get("instance", []) + propagated + name}
    ec2._tags[instance_id] = list(merged.values())
    ec2._tags[instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]] = tags.get("volume", [])
    if own_interface:
        ec2._tags[interface["NetworkInterfaceId"]] = tags.get("network-interface", [])

    group["Instances"].append({
        "InstanceId": instance_id, "LifecycleState": "InService", "HealthStatus": "Healthy", "AvailabilityZone": zone,
        "ProtectedFromScaleIn": False, "InstanceType": instance["InstanceType"],
        "LaunchTemplate": {"LaunchTemplateId": template["LaunchTemplateId"],
                           "LaunchTemplateName": template["LaunchTemplateName"], "Version": wanted_version}})
    note_activity(group, f"Launching a new EC2 instance: {instance_id}", "Successful")
    return instance_id


def end_machine(instance_id):
    ec2._instances[instance_id].update(State={"Code": 48, "Name": "terminated"}, _terminated_at=time.time())
    for volume_id, volume in list(ec2._volumes.items()):
        if any(attachment["InstanceId"] == instance_id for attachment in volume["Attachments"]):
            if volume["Attachments"][0]["DeleteOnTermination"]:
                del ec2._volumes[volume_id]
                untag(volume_id)
            else:
                done(ec2._detach_volume({"VolumeId": [volume_id]}))
    for interface_id, interface in list(ec2._network_interfaces.items()):
        if interface["Attachment"] and interface["Attachment"]["InstanceId"] == instance_id:
            interface.update(Attachment=None, Status="available", PublicIp="")
            if interface["MadeWithMachine"]:
                del ec2._network_interfaces[interface_id]
                untag(interface_id)


def matches_filters(instance, filters):
    facts = {"instance-id": instance["InstanceId"], "vpc-id": instance["VpcId"], "subnet-id": instance["SubnetId"],
             "private-ip-address": instance["PrivateIpAddress"], "private-dns-name": instance["PrivateDnsName"],
             "availability-zone": instance["Placement"]["AvailabilityZone"]}
    return (matches_known_filters(instance, filters)
            and all(any(fnmatch.fnmatchcase(facts[name], value) for value in values)
                    for name, values in filters.items() if name in facts))


def instance_xml(instance):
    described = describe_instance(instance)
    lifecycle = "<instanceLifecycle>spot</instanceLifecycle>" if instance.get("Spot") else ""
    interfaces = "".join(ec2._eni_fields_xml(interface) for interface in list(ec2._network_interfaces.values())
                         if interface["Attachment"] and interface["Attachment"]["InstanceId"] == instance["InstanceId"])
    described = described.replace("<instanceType>", f"{lifecycle}<instanceType>", 1)
    # Last: they, too, have ids and tags, and the first of these are the instance's.
    return described.removesuffix("</item>") + f"<networkInterfaceSet>{interfaces}</networkInterfaceSet></item>"


matches_known_filters, ec2._matches_filters = ec2._matches_filters, matches_filters
describe_instance, ec2._instance_xml = ec2._instance_xml, instance_xml


# --- As many machines as are wanted ------------------------------------------------------------------------------------------

fill_with_names = autoscaling._reconcile_instances


def told(group, key):
    """What the control file says of the group; nothing, for groups that no stack made."""
    said = control().get(key, {})
    name = next((name for name in names_of(group.get("StackName"), group.get("LogicalId")) if name in said), None)
    return None if name is None or rolling_back.get() else said[name] if isinstance(said, dict) else name


def fail_launch(group, message):
    # A machine that was started and did not live counts as cancelled.
    status = "Cancelled" if message.startswith("Instance became unhealthy") else "Failed"
    note_activity(group, f"Launching a new EC2 instance.  Status Reason: {message}", status, message)


def wants_machines(group):
    there = group is autoscaling._asgs.get(group["AutoScalingGroupName"])
    return there and len(group["Instances"]) < group["DesiredCapacity"]


def go_on_launching(group):
    """As AWS does: again and again, until it works or nobody wants it any more."""
    try:
        while wants_machines(group):
            time.sleep(control().get("launch_interval", 0.2))
            message = told(group, "fail_launch")
            if message is None:
                start_wanted(group)
            elif wants_machines(group):
                fail_launch(group, message)
    finally:
        group["Launching"] = False


# Requests, operations of stacks and those that go on launching may be at it at once.
starting = threading.Lock()


def start_wanted(group):
    with starting:
        while wants_machines(group):
            start_machine(group)


def scale(group):
    # Groups that no stack made have no template we know of.
    if not group.get("Launches"):
        fill_with_names(group)
        return
    while len(group["Instances"]) > group["DesiredCapacity"]:
        dismiss(group, group["Instances"][-1])
    message = told(group, "fail_launch")
    if message is None:
        start_wanted(group)
    elif wants_machines(group) and not group.get("Launching"):
        fail_launch(group, message)
        group["Launching"] = True
        spawn_background(go_on_launching, group)


def dismiss(group, member):
    group["Instances"].remove(member)
    end_machine(member["InstanceId"])
    note_activity(group, f"Terminating EC2 instance: {member['InstanceId']}", "Successful")


autoscaling._reconcile_instances = scale


# --- Groups of stacks --------------------------------------------------------------------------------------------------------

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
    began, limit = time.monotonic(), 5
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
    """A machine's signal to its group; everything else is for those who wait for signals in MiniStack itself."""
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
    # It can be seen, and is known to whatever takes the stack back, before it is complete.
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
        # What somebody else has set since stays, as far as the template's new limits let it.
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


# --- What Auto Scaling is asked ----------------------------------------------------------------------------------------------


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
    """Whoever ends a machine behind its group's back: the group notices, and starts another in its place."""
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
    """They are kept for whoever asks; nothing here heeds them."""

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
