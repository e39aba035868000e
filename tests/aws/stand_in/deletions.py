"""More that may not be deleted while something else holds it. What is about subnets, groups and interfaces is in network.py."""

from ministack.services import alb, ec2, iam

from stand_in.insides import Refused
from stand_in.network import guard_action, guard_type
from stand_in.network_types import disassociate, keep_used_placement_group

# --- The network -------------------------------------------------------------------------------------------------------------


def keep_filled_vpc(vpc_id):
    """MiniStack itself checks subnets, groups and internet gateways, but only for calls to EC2."""
    own = [*ec2._subnets.values(), *ec2._vpc_endpoints.values(), *ec2._network_interfaces.values(),
           *(gateway for gateway in ec2._nat_gateways.values() if gateway["State"] != "deleted"),
           *(group for group in ec2._security_groups.values() if group["GroupName"] != "default"),
           *(table for table in ec2._route_tables.values()
             if not any(association.get("Main") for association in table.get("Associations", []))),
           *(attachment for gateway in ec2._internet_gateways.values() for attachment in gateway["Attachments"])]
    if any(record.get("VpcId") == vpc_id for record in own):
        raise Refused("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")


def keep_attached_gateway(gateway_id):
    if ec2._internet_gateways.get(gateway_id, {}).get("Attachments"):
        raise Refused("DependencyViolation", f"The internetGateway '{gateway_id}' has dependencies and cannot be deleted.")


def keep_used_table(table_id):
    if ec2._route_tables.get(table_id, {}).get("Associations"):
        raise Refused("DependencyViolation", f"The routeTable '{table_id}' has dependencies and cannot be deleted.")


for name, check in (("VPC", keep_filled_vpc), ("InternetGateway", keep_attached_gateway), ("RouteTable", keep_used_table)):
    guard_type(f"AWS::EC2::{name}", lambda physical_id, _, check=check: check(physical_id))
guard_action("DeleteVpc", "VpcId", keep_filled_vpc)
guard_action("DeleteInternetGateway", "InternetGatewayId", keep_attached_gateway)
guard_action("DeleteRouteTable", "RouteTableId", keep_used_table)
guard_action("DeletePlacementGroup", "GroupName", keep_used_placement_group)


# --- Addresses that belong to no stack ---------------------------------------------------------------------------------------


def keep_mapped_address(allocation_id):
    if address := ec2._addresses.get(allocation_id):
        if address["AssociationId"]:
            raise Refused("InvalidIPAddress.InUse", f"Address {address['PublicIp']} is in use.")


guard_action("ReleaseAddress", "AllocationId", keep_mapped_address)
associate, make_gateway, end_gateway = (
    ec2._ACTION_MAP[name] for name in ("AssociateAddress", "CreateNatGateway", "DeleteNatGateway"))


def associate_with_interface(parameters):
    answer = associate(parameters)
    if address := ec2._addresses.get(ec2._p(parameters, "AllocationId")):
        address["NetworkInterfaceId"] = ec2._p(parameters, "NetworkInterfaceId") or None
    return answer


def make_gateway_with_address(parameters):
    before = set(ec2._nat_gateways)
    answer = make_gateway(parameters)
    allocation_id = ec2._p(parameters, "AllocationId")
    for gateway_id in set(ec2._nat_gateways) - before:
        associate({"AllocationId": [allocation_id]})
        ec2._nat_gateways[gateway_id]["AssociationId"] = ec2._addresses.get(allocation_id, {}).get("AssociationId")
    return answer


def end_gateway_with_address(parameters):
    gateway = ec2._nat_gateways.get(ec2._p(parameters, "NatGatewayId"), {})
    answer = end_gateway(parameters)
    disassociate(gateway.get("AssociationId"), None)
    return answer


ec2._ACTION_MAP.update(AssociateAddress=associate_with_interface, CreateNatGateway=make_gateway_with_address,
                       DeleteNatGateway=end_gateway_with_address)


# --- Load balancers ----------------------------------------------------------------------------------------------------------


def keep_used_targets(arn):
    """A listener is deleted with its load balancer."""
    used = {action.get("TargetGroupArn") for listener in alb._listeners.values() if listener["LoadBalancerArn"] in alb._lbs
            for action in listener["DefaultActions"]}
    if arn in used:
        raise ValueError(f"Target group '{arn}' is currently in use by a listener or a rule "
                         "(Service: ElasticLoadBalancingV2, Status Code: 400, Error Code: ResourceInUse)")


delete_targets = alb._ACTION_MAP["DeleteTargetGroup"]


def delete_unused_targets(parameters):
    try:
        keep_used_targets(alb._p(parameters, "TargetGroupArn"))
    except ValueError as refused:
        return alb._error("ResourceInUse", str(refused).partition(" (Service")[0])
    return delete_targets(parameters)


alb._ACTION_MAP["DeleteTargetGroup"] = delete_unused_targets
guard_type("AWS::ElasticLoadBalancingV2::TargetGroup", lambda arn, _: keep_used_targets(arn))


# --- Roles -------------------------------------------------------------------------------------------------------------------


def keep_used_role(name):
    if any(name in profile.get("Roles", []) for profile in iam._instance_profiles.values()):
        raise ValueError("Cannot delete entity, must remove roles from instance profile first. "
                         "(Service: Iam, Status Code: 409, Error Code: DeleteConflict)")


guard_type("AWS::IAM::Role", lambda name, _: keep_used_role(name))
