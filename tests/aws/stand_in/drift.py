"""Drift detection: what stacks of clusters hold, compared with their templates, for as long as the control file says.

MiniStack compares; here are the readers for types of ours. AWS checks no type that its list lacks ("Resource type support" in the
CloudFormation user guide, in the copy that is public): associations, routes, rules of security groups, launch templates, placement
groups, target groups, mount targets, endpoints and records have no reader. Rules that stand in the same stack are expected in their
security group, as the user guide says of attachments.
"""

import json
import time

from ministack.services import alb, autoscaling, cloudformation, ec2, efs, iam, route53
from ministack.services.cloudformation import drift, handlers, helpers, provisioners

from stand_in.control import control, names_of

ACTIONS = handlers._ACTION_HANDLERS
GROUP = "AWS::EC2::SecurityGroup"
RULES = {"SecurityGroupIngress": "AWS::EC2::SecurityGroupIngress", "SecurityGroupEgress": "AWS::EC2::SecurityGroupEgress"}


# --- Readers -----------------------------------------------------------------------------------------------------------------


def rules(permissions, group_key):
    """As a template writes them: one for each source."""
    for permission in permissions:
        common = {key: permission[key] for key in ("IpProtocol", "FromPort", "ToPort") if permission.get(key) is not None}
        for ranges, key in (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6")):
            for source in permission.get(ranges, []):
                yield common | source
        for pair in permission.get("UserIdGroupPairs", []):
            described = {"Description": pair["Description"]} if pair.get("Description") else {}
            yield common | described | {group_key: pair["GroupId"]}


def read_group(group_id, _expected):
    group = ec2._security_groups.get(group_id)
    return group and {
        "GroupDescription": group["Description"], "VpcId": group["VpcId"],
        "SecurityGroupIngress": list(rules(group["IpPermissions"], "SourceSecurityGroupId")),
        "SecurityGroupEgress": list(rules(group["IpPermissionsEgress"], "DestinationSecurityGroupId")),
    }


def read_scaling_group(name, expected):
    group = autoscaling._asgs.get(name)
    if group is None:
        return None
    launches = group.get("Launches") or {}
    return {
        "MinSize": group["MinSize"], "MaxSize": group["MaxSize"], "DesiredCapacity": group["DesiredCapacity"],
        "HealthCheckType": group["HealthCheckType"], "AvailabilityZones": group["AvailabilityZones"],
        "VPCZoneIdentifier": [subnet for subnet in group["VPCZoneIdentifier"].split(",") if subnet],
        "TargetGroupARNs": group.get("TargetGroupARNs", []), "MixedInstancesPolicy": group.get("MixedInstancesPolicy", {}),
        "LaunchTemplate": {key: launches.get(key) for key in expected.get("LaunchTemplate", {})},
        "Tags": group["Tags"],
    }


def read_balancer(arn, expected):
    balancer = alb._lbs.get(arn)
    if balancer is None:
        return None
    wanted = {entry["Key"] for entry in expected.get("LoadBalancerAttributes", [])}
    attributes = [entry for entry in alb._lb_attrs.get(arn, []) if entry["Key"] in wanted]
    return {key: balancer[key] for key in ("Type", "Scheme", "SecurityGroups", "Subnets")} | {
        "LoadBalancerAttributes": attributes, "Tags": alb._tags.get(arn, [])}


def read_address(public_address, _expected):
    found = [allocation for allocation, address in ec2._addresses.items() if address["PublicIp"] == public_address]
    return {"Domain": "vpc", "Tags": ec2._tags.get(found[0], [])} if found else None


def read_nat_gateway(gateway_id, _expected):
    gateway = ec2._nat_gateways.get(gateway_id)
    return {"SubnetId": gateway["SubnetId"]} if gateway and gateway["State"] != "deleted" else None


def read_interface(interface_id, _expected):
    interface = ec2._network_interfaces.get(interface_id)
    return interface and {"SubnetId": interface["SubnetId"], "Description": interface["Description"],
                          "GroupSet": [group["GroupId"] for group in interface["Groups"]]}


def read_file_system(system_id, _expected):
    system = efs._file_systems.get(system_id)
    return system and {"Encrypted": system["Encrypted"], "ThroughputMode": system["ThroughputMode"]}


def read_profile(arn, _expected):
    profile = iam._instance_profiles.get(arn.rpartition("/")[2])
    return profile and {"Roles": [role if isinstance(role, str) else role["RoleName"] for role in profile["Roles"]]}


def from_store(store, *names):
    """Properties that a service keeps under the same names."""

    def read(physical_id, _expected):
        record = store().get(physical_id)
        return None if record is None else {name: record[name] for name in names}

    return read, names


READERS = {
    "AWS::AutoScaling::AutoScalingGroup": (read_scaling_group, (
        "MinSize", "MaxSize", "DesiredCapacity", "HealthCheckType", "AvailabilityZones", "VPCZoneIdentifier", "TargetGroupARNs",
        "MixedInstancesPolicy", "LaunchTemplate")),
    "AWS::EC2::EIP": (read_address, ("Domain",)),
    "AWS::EC2::InternetGateway": from_store(lambda: ec2._internet_gateways),
    "AWS::EC2::NatGateway": (read_nat_gateway, ("SubnetId",)),
    "AWS::EC2::NetworkInterface": (read_interface, ("SubnetId", "Description", "GroupSet")),
    "AWS::EC2::RouteTable": from_store(lambda: ec2._route_tables, "VpcId"),
    GROUP: (read_group, ("GroupDescription", "VpcId", "SecurityGroupIngress", "SecurityGroupEgress")),
    "AWS::EC2::Subnet": from_store(lambda: ec2._subnets, "VpcId", "CidrBlock", "AvailabilityZone", "MapPublicIpOnLaunch"),
    "AWS::EC2::VPC": from_store(lambda: ec2._vpcs, "CidrBlock"),
    "AWS::EC2::Volume": from_store(lambda: ec2._volumes, "AvailabilityZone", "Size", "VolumeType", "Encrypted"),
    "AWS::EFS::FileSystem": (read_file_system, ("Encrypted", "ThroughputMode")),
    "AWS::ElasticLoadBalancingV2::Listener": from_store(lambda: alb._listeners, "Port", "Protocol"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": (read_balancer, (
        "Type", "Scheme", "SecurityGroups", "Subnets", "LoadBalancerAttributes")),
    "AWS::IAM::InstanceProfile": (read_profile, ("Roles",)),
    "AWS::Route53::HostedZone": from_store(lambda: route53._zones),
}
TAGGED = {"AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::EIP", "AWS::ElasticLoadBalancingV2::LoadBalancer"}


def with_tags(resource_type, read):
    """EC2 keeps the tags of everything in one place."""
    if resource_type in TAGGED or not resource_type.startswith("AWS::EC2::"):
        return read

    def read_with_tags(physical_id, expected):
        found = read(physical_id, expected)
        return None if found is None else {**found, "Tags": ec2._tags.get(physical_id, [])}

    return read_with_tags


for resource_type, (reader, names) in READERS.items():
    has_tags = resource_type in TAGGED or resource_type.startswith("AWS::EC2::")
    tags = {provisioners._STACK_TAG_PROPERTY[resource_type][0]} if has_tags else set()
    drift._DRIFT_READERS[resource_type] = with_tags(resource_type, reader), frozenset({*names, *tags})


# --- One resource ------------------------------------------------------------------------------------------------------------

compare = drift.detect_resource_drift


def with_attachments(stack, record):
    """Without a rule anywhere in the stack nothing is expected of its rules, and AWS does not check them."""
    properties = dict(record["Properties"])
    for name, kind in RULES.items():
        attached = [{key: value for key, value in other["Properties"].items() if key != "GroupId"}
                    for other in stack["_resources"].values()
                    if other["ResourceType"] == kind and other["Properties"].get("GroupId") == record["PhysicalResourceId"]]
        if expected := [*properties.get(name, []), *attached]:
            properties[name] = expected
    return record | {"Properties": properties}


def detect(stack, logical_id, record, timestamp):
    told = control().get("fail_drift", {})
    for name in names_of(stack["StackName"], logical_id):
        if name in told:
            return {"StackId": stack["StackId"], "LogicalResourceId": logical_id, "Timestamp": timestamp,
                    "PhysicalResourceId": record["PhysicalResourceId"], "ResourceType": record["ResourceType"],
                    "StackResourceDriftStatus": "UNKNOWN", "DriftStatusReason": told[name]}
    if record["ResourceType"] == GROUP:
        record = with_attachments(stack, record)
    return compare(stack, logical_id, record, timestamp)


drift.detect_resource_drift = detect


# --- A detection, which takes its time ---------------------------------------------------------------------------------------

begin_at_once, describe_done = ACTIONS["DetectStackDrift"], ACTIONS["DescribeStackDriftDetectionStatus"]


def settle(stack):
    """Ends the detections that have lasted long enough; returns the others."""
    running = []
    for detection in stack.get("_drift_detections", {}).values():
        if "_end" not in detection:
            continue
        if time.monotonic() - detection["_began"] >= control().get("drift_delay", 0):
            detection.update(detection.pop("_end"))
        else:
            running.append(detection)
    return running


def begin(parameters):
    stack = handlers._resolve_stack(helpers._p(parameters, "StackName"))
    if stack and settle(stack):
        return handlers._error("ValidationError", f"Drift detection is already in progress for stack {stack['StackId']}")
    answer = begin_at_once(parameters)
    if answer[0] != 200:
        return answer
    detection = list(stack["_drift_detections"].values())[-1]
    failed = [record["_drift"] for record in stack["_resources"].values()
              if record.get("_drift", {}).get("StackResourceDriftStatus") == "UNKNOWN"]
    end = {"DetectionStatus": detection["DetectionStatus"]}
    if failed:
        names = ", ".join(sorted(entry["LogicalResourceId"] for entry in failed))
        end["DetectionStatusReason"] = json.dumps({
            "Summary": f"Failed to detect drift on resources [{names}]",
            "Failures": [{"Resource": entry["LogicalResourceId"], "FailureReason": entry["DriftStatusReason"]} for entry in failed]})
    detection.update(DetectionStatus="DETECTION_IN_PROGRESS", DetectionStatusReason="User Initiated", _began=time.monotonic(),
                     _end={"DetectionStatusReason": "", **end})
    return answer


def describe(parameters):
    for stack in cloudformation._stacks.values():
        settle(stack)
    return describe_done(parameters)


ACTIONS.update(DetectStackDrift=begin, DescribeStackDriftDetectionStatus=describe)
