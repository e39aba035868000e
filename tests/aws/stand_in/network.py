"""Network interfaces, which hold subnets and security groups, and what may not be deleted while something holds it."""

import ipaddress

from ministack.core.responses import AccountRegionScopedDict
from ministack.services import alb, ec2, efs, route53

from stand_in.insides import HANDLERS, Refused, made

# --- Interfaces: who holds subnets and security groups -----------------------------------------------------------------------


# The last number that was assigned in each subnet.
last_given = {}


def free_address(subnet_id):
    """The next one after the last: as with AWS, an address is not given again at once."""
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
    """The descriptions of their interfaces, and the load balancers."""
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
    """Mount targets, load balancers and NAT gateways are created and deleted in many ways; their interfaces follow."""
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
