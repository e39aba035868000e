"""Resource types of stacks that MiniStack does not know, or knows in part."""

import re
import secrets

from ministack.services import alb, cloudformation, ec2, route53
from ministack.services.cloudformation import provisioners

from stand_in.insides import HANDLERS, Refused, done, made
from stand_in.network import guard_type, keep_held_interface, make_interface, need_gateway

# --- Types that MiniStack does not know --------------------------------------------------------------------------------------


def new_type(name, create, delete, update=None, **more):
    """Without an update only tags may change, as far as our templates go."""

    def keep(physical_id, old, new, stack):
        if {**old, "Tags": None} != {**new, "Tags": None}:
            raise ValueError(f"{name}: the stand-in cannot change {physical_id} in place")
        tag(physical_id, new)
        known = cloudformation._stacks[stack]["_resources"].values()
        return physical_id, next(record["Attributes"] for record in known if record["PhysicalResourceId"] == physical_id)

    HANDLERS[name] = {"create": create, "delete": delete, "update": update or keep, **more}


def tag(resource_id, properties):
    provisioners._ec2_apply_tags(resource_id, properties)


def untag(resource_id):
    ec2._tags.pop(resource_id, None)


for name in ("EIP", "NatGateway", "NetworkInterface", "PlacementGroup", "Volume"):
    provisioners._STACK_TAG_PROPERTY[f"AWS::EC2::{name}"] = ("Tags", "list")


def create_interface(_logical_id, properties, _stack):
    interface = make_interface(properties["SubnetId"], properties.get("GroupSet", []), properties.get("Description", ""),
                               properties.get("PrivateIpAddress"))
    tag(interface["NetworkInterfaceId"], properties)
    return interface["NetworkInterfaceId"], {
        "Id": interface["NetworkInterfaceId"],
        "PrimaryPrivateIpAddress": interface["PrivateIpAddress"],
        "VpcId": interface["VpcId"],
    }


def delete_interface(interface_id, _properties):
    keep_held_interface(interface_id)
    ec2._network_interfaces.pop(interface_id, None)
    untag(interface_id)


new_type("AWS::EC2::NetworkInterface", create_interface, delete_interface)


def create_address(_logical_id, properties, _stack):
    allocation_id = made(ec2._addresses, ec2._allocate_address, Domain=properties.get("Domain", "vpc"))
    tag(allocation_id, properties)
    address = ec2._addresses[allocation_id]["PublicIp"]
    return address, {"AllocationId": allocation_id, "PublicIp": address}


def delete_address(public_address, _properties):
    for allocation_id, address in list(ec2._addresses.items()):
        if address["PublicIp"] == public_address:
            if address["AssociationId"]:
                raise Refused("InvalidIPAddress.InUse", f"Address {public_address} is in use.")
            done(ec2._release_address({"AllocationId": [allocation_id]}))


new_type("AWS::EC2::EIP", create_address, delete_address)


def create_placement_group(logical_id, properties, _stack):
    name = f"{logical_id}-{secrets.token_hex(4)}"
    done(ec2._create_placement_group({"GroupName": [name], "Strategy": [properties.get("Strategy", "cluster")]}))
    tag(ec2._placement_groups[name]["GroupId"], properties)
    return name, {"GroupName": name}


def delete_placement_group(name, _properties):
    keep_used_placement_group(name)
    done(ec2._delete_placement_group({"GroupName": [name]}))


def keep_used_placement_group(name):
    if any(machine.get("PlacementGroup") == name and machine["State"]["Name"] != "terminated" for machine in ec2._instances.values()):
        raise Refused("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")


new_type("AWS::EC2::PlacementGroup", create_placement_group, delete_placement_group)


def associate(allocation_id, interface_id):
    if allocation_id not in ec2._addresses:
        raise Refused("InvalidAllocationID.NotFound", f"The allocation ID '{allocation_id}' does not exist")
    done(ec2._associate_address({"AllocationId": [allocation_id]}))
    ec2._addresses[allocation_id]["NetworkInterfaceId"] = interface_id
    return ec2._addresses[allocation_id]["AssociationId"]


def disassociate(association_id, _properties):
    for address in ec2._addresses.values():
        if address["AssociationId"] == association_id:
            address.update(AssociationId=None, NetworkInterfaceId=None)


def create_association(_logical_id, properties, _stack):
    interface = ec2._network_interfaces[properties["NetworkInterfaceId"]]
    need_gateway(interface["VpcId"])
    return associate(properties["AllocationId"], interface["NetworkInterfaceId"]), {}


new_type("AWS::EC2::EIPAssociation", create_association, disassociate)


def create_nat_gateway(_logical_id, properties, _stack):
    subnet = ec2._subnets[properties["SubnetId"]]
    need_gateway(subnet["VpcId"])
    association_id = associate(properties["AllocationId"], None)
    gateway_id = made(ec2._nat_gateways, ec2._create_nat_gateway,
                      SubnetId=subnet["SubnetId"], AllocationId=properties["AllocationId"])
    ec2._nat_gateways[gateway_id]["AssociationId"] = association_id
    tag(gateway_id, properties)
    return gateway_id, {"NatGatewayId": gateway_id}


def delete_nat_gateway(gateway_id, _properties):
    gateway = ec2._nat_gateways[gateway_id]
    gateway["State"] = "deleted"
    disassociate(gateway["AssociationId"], None)
    untag(gateway_id)


new_type("AWS::EC2::NatGateway", create_nat_gateway, delete_nat_gateway)


def create_volume(_logical_id, properties, _stack):
    known = {name: properties[name] for name in ("AvailabilityZone", "Size", "VolumeType", "Encrypted", "Iops", "SnapshotId")
             if name in properties}
    volume_id = made(ec2._volumes, ec2._create_volume, **known)
    tag(volume_id, properties)
    return volume_id, {"VolumeId": volume_id}


def delete_volume(volume_id, _properties):
    done(ec2._delete_volume({"VolumeId": [volume_id]}))
    untag(volume_id)


def snapshot_volume(volume_id, _properties):
    snapshot_id = made(ec2._snapshots, ec2._create_snapshot, VolumeId=volume_id)
    ec2._tags[snapshot_id] = list(ec2._tags.get(volume_id, []))


def update_volume(volume_id, _old, new, _stack):
    ec2._volumes[volume_id]["Size"] = int(new["Size"])
    tag(volume_id, new)
    return volume_id, {"VolumeId": volume_id}


new_type("AWS::EC2::Volume", create_volume, delete_volume, update_volume, snapshot=snapshot_volume)


def create_ingress(_logical_id, properties, _stack):
    for key in ("GroupId", "SourceSecurityGroupId"):
        if key in properties and properties[key] not in ec2._security_groups:
            raise Refused("InvalidGroup.NotFound", f"The security group '{properties[key]}' does not exist")
    group = ec2._security_groups[properties["GroupId"]]
    rule = provisioners._ec2_sg_permissions([properties])[0]
    rule_id = ec2._sg_rule_id(group["GroupId"], False, rule)
    if any(ec2._sg_rule_id(group["GroupId"], False, other) == rule_id for other in group["IpPermissions"]):
        raise Refused("InvalidPermission.Duplicate", "the specified rule already exists")
    group["IpPermissions"].append(rule)
    return rule_id, {"Id": rule_id}


def delete_ingress(rule_id, properties):
    if group := ec2._security_groups.get(properties["GroupId"]):
        group["IpPermissions"] = [rule for rule in group["IpPermissions"]
                                  if ec2._sg_rule_id(group["GroupId"], False, rule) != rule_id]


def update_ingress(rule_id, old, new, stack):
    delete_ingress(rule_id, old)
    return create_ingress(None, new, stack)


new_type("AWS::EC2::SecurityGroupIngress", create_ingress, delete_ingress, update_ingress)


def create_egress(_logical_id, properties, _stack):
    for key in ("GroupId", "DestinationSecurityGroupId"):
        if key in properties and properties[key] not in ec2._security_groups:
            raise Refused("InvalidGroup.NotFound", f"The security group '{properties[key]}' does not exist")
    group = ec2._security_groups[properties["GroupId"]]
    renamed = {"SourceSecurityGroupId" if key == "DestinationSecurityGroupId" else key: value for key, value in properties.items()}
    rule = provisioners._ec2_sg_permissions([renamed])[0]
    rule_id = ec2._sg_rule_id(group["GroupId"], True, rule)
    if any(ec2._sg_rule_id(group["GroupId"], True, other) == rule_id for other in group["IpPermissionsEgress"]):
        raise Refused("InvalidPermission.Duplicate", "the specified rule already exists")
    group["IpPermissionsEgress"].append(rule)
    return rule_id, {"Id": rule_id}


def delete_egress(rule_id, properties):
    if group := ec2._security_groups.get(properties["GroupId"]):
        group["IpPermissionsEgress"] = [rule for rule in group["IpPermissionsEgress"]
                                        if ec2._sg_rule_id(group["GroupId"], True, rule) != rule_id]


def update_egress(rule_id, old, new, stack):
    delete_egress(rule_id, old)
    return create_egress(None, new, stack)


new_type("AWS::EC2::SecurityGroupEgress", create_egress, delete_egress, update_egress)


revoke_ranges = ec2._ACTION_MAP["RevokeSecurityGroupIngress"]


def revoke_ingress(parameters):
    """MiniStack revokes ranges; rules that name another group are revoked here."""
    named = {value for name, values in parameters.items() for value in (values if isinstance(values, list) else [values])
             if re.fullmatch(r"IpPermissions\.\d+\.Groups\.\d+\.GroupId", name)}
    group = ec2._security_groups.get(ec2._p(parameters, "GroupId"))
    if not named or not group:
        return revoke_ranges(parameters)
    for rule in group["IpPermissions"]:
        rule["UserIdGroupPairs"] = [pair for pair in rule["UserIdGroupPairs"] if pair.get("GroupId") not in named]
    kept = ("IpRanges", "Ipv6Ranges", "PrefixListIds", "UserIdGroupPairs")
    group["IpPermissions"] = [rule for rule in group["IpPermissions"] if any(rule.get(part) for part in kept)]
    return ec2._xml(200, "RevokeSecurityGroupIngressResponse", "<return>true</return>")


ec2._ACTION_MAP["RevokeSecurityGroupIngress"] = revoke_ingress


# --- Types that MiniStack knows in part --------------------------------------------------------------------------------------

zone_handler = HANDLERS["AWS::Route53::HostedZone"]
create_public_zone = zone_handler["create"]
provisioners._STACK_TAG_PROPERTY["AWS::Route53::HostedZone"] = ("HostedZoneTags", "list")


def create_zone(logical_id, properties, stack):
    zone_id, attributes = create_public_zone(logical_id, properties, stack)
    for vpc in properties.get("VPCs", []):
        if vpc["VPCId"] not in ec2._vpcs:
            raise ValueError(f"The VPC {vpc['VPCId']} does not exist")
    if properties.get("VPCs"):
        route53._zones[zone_id].update(private=True, vpcs=properties["VPCs"])
    route53._tags["hostedzone", zone_id] = {entry["Key"]: entry["Value"] for entry in properties.get("HostedZoneTags", [])}
    return zone_id, attributes


zone_handler["create"] = create_zone
guard_type("AWS::Route53::HostedZone", lambda zone_id, _: route53._tags.pop(("hostedzone", zone_id), None))

balancer_handler = HANDLERS["AWS::ElasticLoadBalancingV2::LoadBalancer"]
create_any_balancer = balancer_handler["create"]


def create_balancer(logical_id, properties, stack):
    vpcs = {ec2._subnets[subnet_id]["VpcId"] for subnet_id in properties["Subnets"]}
    if properties.get("Scheme") == "internet-facing":
        need_gateway(*vpcs)
    arn, attributes = create_any_balancer(logical_id, properties, stack)
    alb._lbs[arn]["VpcId"] = vpcs.pop()
    return arn, attributes


balancer_handler["create"] = create_balancer

create_balancer_by_call = alb._ACTION_MAP["CreateLoadBalancer"]


def create_balancer_in_vpc(parameters):
    """The load balancers of a VPC include those that no stack created."""
    before = set(alb._lbs)
    answer = create_balancer_by_call(parameters)
    for arn in set(alb._lbs) - before:
        subnets = [subnet for subnet in alb._lbs[arn]["Subnets"] if subnet in ec2._subnets]
        if subnets:
            alb._lbs[arn]["VpcId"] = ec2._subnets[subnets[0]]["VpcId"]
    return answer


alb._ACTION_MAP["CreateLoadBalancer"] = create_balancer_in_vpc

route_handler = HANDLERS["AWS::EC2::Route"]
create_any_route = route_handler["create"]


def create_route(logical_id, properties, stack):
    if "GatewayId" in properties:
        need_gateway(ec2._route_tables[properties["RouteTableId"]]["VpcId"])
    return create_any_route(logical_id, properties, stack)


route_handler["create"] = create_route
