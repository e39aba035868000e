"""What stacks make besides machines: who holds what, what may not be deleted, and types that MiniStack lacks."""

import ipaddress
import re
import secrets

from ministack.core.responses import AccountRegionScopedDict
from ministack.services import alb, cloudformation, ec2, efs, route53
from ministack.services.cloudformation import provisioners

from stand_in.insides import HANDLERS, Refused, done, made

# --- Interfaces: who holds subnets and security groups -----------------------------------------------------------------------


# The last number that was given away in each subnet.
last_given = {}


def free_address(subnet_id):
    """The next one after the last: as with AWS, nobody gets the address of somebody who has just left."""
    taken = {interface["PrivateIpAddress"] for interface in ec2._network_interfaces.values()}
    block = ipaddress.ip_network(ec2._subnets[subnet_id]["CidrBlock"])
    # AWS keeps the first four addresses and the last one of a subnet for itself.
    usable = range(4, block.num_addresses - 1)
    begin = last_given.get(subnet_id, usable[-1]) - usable[0] + 1
    for step in range(len(usable)):
        number = usable[(begin + step) % len(usable)]
        if str(block[number]) not in taken:
            last_given[subnet_id] = number
            return str(block[number])
    raise Refused("InsufficientFreeAddressesInSubnet", "The specified subnet does not have enough free addresses to satisfy the request.")


def make_interface(subnet_id, groups, description, address=None):
    if subnet_id not in ec2._subnets:
        raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{subnet_id}' does not exist")
    for group in groups:
        if group not in ec2._security_groups:
            raise Refused("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
    numbered = {f"SecurityGroupId.{number}": group for number, group in enumerate(groups, 1)}
    address = address or free_address(subnet_id)
    interface_id = made(ec2._network_interfaces, ec2._create_network_interface,
                        SubnetId=subnet_id, Description=description, **numbered)
    interface = ec2._network_interfaces[interface_id]
    interface.update(PrivateIpAddress=address, Holder=None)
    return interface


# The first generation of load balancers, by name; balancers.py answers for them.
classic_balancers = AccountRegionScopedDict()


def load_balancers():
    """What stands on their interfaces, and they."""
    for balancer in alb._lbs.values():
        yield f"ELB {balancer['LoadBalancerArn'].split(':loadbalancer/')[1]}", balancer
    for balancer in classic_balancers.values():
        yield f"ELB {balancer['LoadBalancerName']}", balancer


def holders_of_interfaces():
    for target in efs._mount_targets.values():
        description = f"EFS mount target for {target['FileSystemId']} ({target['MountTargetId']})"
        yield description, target["SubnetId"], target["SecurityGroups"]
    for description, balancer in load_balancers():
        for subnet_id in balancer["Subnets"]:
            yield description, subnet_id, balancer["SecurityGroups"]
    for gateway in ec2._nat_gateways.values():
        if gateway["State"] != "deleted":
            yield f"Interface for NAT Gateway {gateway['NatGatewayId']}", gateway["SubnetId"], []


def settle_interfaces():
    """Mount targets, load balancers and NAT gateways come and go by many ways; their interfaces follow."""
    wanted = {(holder, subnet): groups for holder, subnet, groups in holders_of_interfaces()}
    present = {}
    for interface_id, interface in list(ec2._network_interfaces.items()):
        holder = interface.get("Holder")
        if holder and holder not in wanted:
            del ec2._network_interfaces[interface_id]
        present[holder] = interface
    for holder, groups in wanted.items():
        if holder not in present:
            make_interface(holder[1], groups, holder[0]).update(Holder=holder, Status="in-use")


def describe_interfaces(parameters):
    settle_interfaces()
    filters = ec2._parse_filters(parameters)
    ids = ec2._parse_member_list(parameters, "NetworkInterfaceId")

    def asked_for(interface):
        facts = {
            "vpc-id": [interface["VpcId"]],
            "subnet-id": [interface["SubnetId"]],
            "status": [interface["Status"]],
            "description": [interface["Description"]],
            "group-id": [group["GroupId"] for group in interface["Groups"]],
        }
        return ((not ids or interface["NetworkInterfaceId"] in ids)
                and ec2._resource_matches_tag_filters(interface["NetworkInterfaceId"], filters)
                and all(set(values) & set(facts[name]) for name, values in filters.items() if name in facts))

    items = "".join(ec2._eni_fields_xml(interface) for interface in ec2._network_interfaces.values() if asked_for(interface))
    return ec2._xml(200, "DescribeNetworkInterfacesResponse", f"<networkInterfaceSet>{items}</networkInterfaceSet>")


def create_interface_by_call(parameters):
    try:
        interface = make_interface(ec2._p(parameters, "SubnetId"), ec2._parse_member_list(parameters, "SecurityGroupId"),
                                   ec2._p(parameters, "Description") or "", ec2._p(parameters, "PrivateIpAddress"))
    except Refused as refused:
        return ec2._error(refused.code, refused.message, 400)
    ec2._parse_tag_specs(parameters, "network-interface", interface["NetworkInterfaceId"])
    return ec2._xml(200, "CreateNetworkInterfaceResponse", ec2._eni_fields_xml(interface, tag="networkInterface"))


ec2._ACTION_MAP.update(DescribeNetworkInterfaces=describe_interfaces, CreateNetworkInterface=create_interface_by_call)


# --- What may not be deleted -------------------------------------------------------------------------------------------------


def keep_held_subnet(subnet_id):
    settle_interfaces()
    if any(interface["SubnetId"] == subnet_id for interface in ec2._network_interfaces.values()):
        raise Refused("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")


def keep_held_group(group_id):
    settle_interfaces()
    on_interfaces = {group["GroupId"] for interface in ec2._network_interfaces.values() for group in interface["Groups"]}
    in_rules = {pair.get("GroupId") for group in ec2._security_groups.values() if group["GroupId"] != group_id
                for rule in group["IpPermissions"] + group["IpPermissionsEgress"] for pair in rule["UserIdGroupPairs"]}
    if group_id in on_interfaces | in_rules:
        raise Refused("DependencyViolation", f"resource {group_id} has a dependent object")


def keep_held_interface(interface_id):
    interface = ec2._network_interfaces.get(interface_id, {})
    if interface.get("Attachment") or interface.get("Holder"):
        raise Refused("InvalidParameterValue", f"Network interface '{interface_id}' is currently in use.")


def keep_used_gateway(vpc_id):
    settle_interfaces()
    mapped = {address["NetworkInterfaceId"] for address in ec2._addresses.values() if address["AssociationId"]}
    public = {description for description, balancer in load_balancers() if balancer["Scheme"] == "internet-facing"}
    for interface in ec2._network_interfaces.values():
        if interface["VpcId"] == vpc_id and (interface["NetworkInterfaceId"] in mapped or interface.get("PublicIp")
                                             or interface["Description"].startswith("Interface for NAT")
                                             or interface["Description"] in public):
            raise Refused("DependencyViolation", f"Network {vpc_id} has some mapped public address(es). "
                                                 "Please unmap those public address(es) before detaching the gateway.")


def need_gateway(vpc_id):
    if not any(attachment.get("VpcId") == vpc_id
               for gateway in ec2._internet_gateways.values() for attachment in gateway["Attachments"]):
        raise Refused("Gateway.NotAttached", f"Network {vpc_id} is not attached to any internet gateway")


def keep_filled_zone(zone_id):
    zone = route53._zones.get(zone_id)
    others = [record["Name"] for record in route53._records.get(zone_id, [])
              if zone and not (record["Type"] in ("NS", "SOA") and record["Name"] == zone["name"])]
    if others:
        raise ValueError("The specified hosted zone contains non-required resource record sets and so cannot be deleted. "
                         f"(Service: Route53, Status Code: 400, Error Code: HostedZoneNotEmpty) {others}")


def guard_type(resource_type, check):
    delete = HANDLERS[resource_type]["delete"]

    def guarded(physical_id, properties):
        check(physical_id, properties)
        delete(physical_id, properties)

    HANDLERS[resource_type]["delete"] = guarded


def guard_action(action, parameter, check):
    answer = ec2._ACTION_MAP[action]

    def guarded(parameters):
        try:
            check(ec2._p(parameters, parameter))
        except Refused as refused:
            return ec2._error(refused.code, refused.message, 400)
        return answer(parameters)

    ec2._ACTION_MAP[action] = guarded


guard_type("AWS::EC2::Subnet", lambda subnet_id, _: keep_held_subnet(subnet_id))
guard_type("AWS::EC2::SecurityGroup", lambda group_id, _: keep_held_group(group_id))
guard_type("AWS::EC2::VPCGatewayAttachment", lambda _, properties: keep_used_gateway(properties["VpcId"]))
guard_type("AWS::Route53::HostedZone", lambda zone_id, _: keep_filled_zone(zone_id))
guard_action("DeleteSubnet", "SubnetId", keep_held_subnet)
guard_action("DeleteSecurityGroup", "GroupId", keep_held_group)
guard_action("DetachInternetGateway", "VpcId", keep_used_gateway)
guard_action("DeleteNetworkInterface", "NetworkInterfaceId", keep_held_interface)


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


revoke_ranges = ec2._ACTION_MAP["RevokeSecurityGroupIngress"]


def revoke_ingress(parameters):
    """MiniStack takes back ranges; rules that name another group are taken back here."""
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
    """Who asks for the load balancers of a VPC finds also those that no stack made."""
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
