"""Machines of Auto Scaling groups: how one starts and ends, and how a group gets as many as it should have."""

import base64
import fnmatch
import re
import threading
import time

from ministack.core.concurrency import spawn_background
from ministack.core.responses import get_region, new_uuid, now_iso
from ministack.services import autoscaling, ec2
from ministack.services.cloudformation import provisioners

from stand_in.control import control, names_of
from stand_in.insides import Refused, done, rolling_back
from stand_in.network import make_interface
from stand_in.network_types import untag
from stand_in.reservations import launch_fault

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


def launched_by(group):
    """The launch template of the group, and what of it holds for the version that the group uses."""
    template = ec2._launch_templates[group["Launches"]["LaunchTemplateId"]]
    wanted_version = str(group["Launches"]["Version"])
    return template, next(version["LaunchTemplateData"] for version in template["Versions"]
                          if str(version["VersionNumber"]) == wanted_version)


def start_machine(group):
    template, data = launched_by(group)
    wanted_version = str(group["Launches"]["Version"])
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
    if len(data["NetworkInterfaces"]) > 1 and any("AssociatePublicIpAddress" in entry for entry in data["NetworkInterfaces"]):
        raise Refused("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when launching with "
                      "multiple network interfaces.")
    created = [interface] if own_interface else []
    for further in data["NetworkInterfaces"][1:]:
        # Without an address in AWS; MiniStack gives one to every interface.
        adapter = make_interface(subnet_id, further["Groups"], "")
        adapter.update(Status="in-use", MadeWithMachine=further["DeleteOnTermination"], PublicIp="", Attachment={
            "AttachmentId": f"eni-attach-{adapter['NetworkInterfaceId'][4:]}", "InstanceId": instance_id,
            "DeviceIndex": further["DeviceIndex"], "Status": "attached", "AttachTime": ec2._now_ts()})
        created.append(adapter)
    # A real machine does that itself.
    for volume_id in [] if control().get("real_machines") else volumes:
        done(ec2._attach_volume({"VolumeId": [volume_id], "InstanceId": [instance_id]}))

    tags = {specification["ResourceType"]: specification["Tags"] for specification in data.get("TagSpecifications", [])}
    propagated = [{"Key": entry["Key"], "Value": entry["Value"]} for entry in group["Tags"] if entry["PropagateAtLaunch"]]
    name = [{"Key": "aws:autoscaling:groupName", "Value": group["AutoScalingGroupName"]}]
    merged = {entry["Key"]: entry for entry in tags.get("instance", []) + propagated + name}
    ec2._tags[instance_id] = list(merged.values())
    ec2._tags[instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]] = tags.get("volume", [])
    for entry in created:
        ec2._tags[entry["NetworkInterfaceId"]] = tags.get("network-interface", [])

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
    market = "spot" if instance.get("Spot") else instance.get("Launch", {}).get("InstanceMarketOptions", {}).get("MarketType")
    lifecycle = f"<instanceLifecycle>{market}</instanceLifecycle>" if market else ""
    interfaces = "".join(ec2._eni_fields_xml(interface) for interface in list(ec2._network_interfaces.values())
                         if interface["Attachment"] and interface["Attachment"]["InstanceId"] == instance["InstanceId"])
    described = described.replace("<instanceType>", f"{lifecycle}<instanceType>", 1)
    # Last: they, too, have ids and tags, and the first of these are the instance's.
    return described.removesuffix("</item>") + f"<networkInterfaceSet>{interfaces}</networkInterfaceSet></item>"


matches_known_filters, ec2._matches_filters = ec2._matches_filters, matches_filters
describe_instance, ec2._instance_xml = ec2._instance_xml, instance_xml


# --- As many machines as there should be--------------------------------------------------------------------------------------

fill_with_names = autoscaling._reconcile_instances


def told(group, key):
    """What the control file says of the group; nothing, for groups that no stack created."""
    said = control().get(key, {})
    name = next((name for name in names_of(group.get("StackName"), group.get("LogicalId")) if name in said), None)
    return None if name is None or rolling_back.get() else said[name] if isinstance(said, dict) else name


def fail_launch(group, message):
    # A machine that was started and became unhealthy counts as cancelled.
    status = "Cancelled" if message.startswith("Instance became unhealthy") else "Failed"
    note_activity(group, f"Launching a new EC2 instance.  Status Reason: {message}", status, message)


def why_not(group):
    """Why no machine starts, if none does."""
    return told(group, "fail_launch") or launch_fault(launched_by(group)[1])


def wants_machines(group):
    there = group is autoscaling._asgs.get(group["AutoScalingGroupName"])
    return there and len(group["Instances"]) < group["DesiredCapacity"]


def go_on_launching(group):
    """As AWS does: again and again, until it works or the group needs no more machines."""
    try:
        while wants_machines(group):
            time.sleep(control().get("launch_interval", 0.2))
            message = why_not(group)
            if message is None:
                start_wanted(group)
            elif wants_machines(group):
                fail_launch(group, message)
    finally:
        group["Launching"] = False


# Requests, operations of stacks and launches that are retried may run at the same time.
starting = threading.Lock()


def start_wanted(group):
    with starting:
        while wants_machines(group) and launch_fault(launched_by(group)[1]) is None:
            start_machine(group)


def scale(group):
    # Groups that no stack created have no known template.
    if not group.get("Launches"):
        fill_with_names(group)
        return
    while len(group["Instances"]) > group["DesiredCapacity"]:
        dismiss(group, group["Instances"][-1])
    message = why_not(group)
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
