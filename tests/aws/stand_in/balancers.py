"""The first generation of load balancers, which the cloud controller manager creates for Services by default.

MiniStack answers for the second generation only. Both come to the same place and are told apart by the version of the API.
"""

import urllib.parse

from ministack import app
from ministack.core.responses import AccountRegionScopedDict, get_account_id, get_region, now_iso
from ministack.services import alb, ec2

from stand_in.insides import xml
from stand_in.network import classic_balancers

VERSION = "2012-06-01"
SPACE = f"http://elasticloadbalancing.amazonaws.com/doc/{VERSION}/"
# What AWS begins with.
ATTRIBUTES = {
    "CrossZoneLoadBalancing": {"Enabled": False}, "AccessLog": {"Enabled": False},
    "ConnectionDraining": {"Enabled": False, "Timeout": 300}, "ConnectionSettings": {"IdleTimeout": 60},
}
HEALTH_CHECK = {"Interval": 30, "Timeout": 5, "UnhealthyThreshold": 2, "HealthyThreshold": 10}
attributes_of = AccountRegionScopedDict()


def arn_of(name):
    return f"arn:aws:elasticloadbalancing:{get_region()}:{get_account_id()}:loadbalancer/{name}"


def answer(action, members):
    inner = f"<{action}Result>{xml(members, 'member')}</{action}Result>"
    body = f'<{action}Response xmlns="{SPACE}">{inner}<ResponseMetadata><RequestId>test</RequestId></ResponseMetadata></{action}Response>'
    return 200, {"Content-Type": "text/xml"}, body.encode()


def missing(name):
    return alb._error("LoadBalancerNotFound", f"There is no ACTIVE Load Balancer named '{name}'")


def with_balancer(act):
    """The second argument of an action is the load balancer that it is about."""

    def find_and_act(parameters):
        name = alb._p(parameters, "LoadBalancerName")
        return act(parameters, classic_balancers[name]) if name in classic_balancers else missing(name)

    return find_and_act


def members(parameters, prefix):
    """The parameters of each member, without what they have in common."""
    found = {}
    for key in parameters:
        if key.startswith(f"{prefix}.member."):
            number, _, name = key.removeprefix(f"{prefix}.member.").partition(".")
            found.setdefault(int(number), {})[name] = alb._p(parameters, key)
    return [found[number] for number in sorted(found)]


def describe_listener(listener):
    protocol = listener["Protocol"].upper()
    return {"Listener": {
        "Protocol": protocol, "LoadBalancerPort": int(listener.get("LoadBalancerPort", 0)),
        "InstanceProtocol": listener.get("InstanceProtocol", protocol).upper(), "InstancePort": int(listener.get("InstancePort", 0)),
        "SSLCertificateId": listener.get("SSLCertificateId")}, "PolicyNames": []}


def port_of(description):
    return description["Listener"]["LoadBalancerPort"]


def create(parameters):
    name, subnets = alb._p(parameters, "LoadBalancerName"), alb._parse_member_list(parameters, "Subnets")
    groups, listeners = alb._parse_member_list(parameters, "SecurityGroups"), members(parameters, "Listeners")
    if name in classic_balancers:
        return alb._error("DuplicateLoadBalancerName", f"There is already a Load Balancer named '{name}'")
    if not listeners:
        return alb._error("ValidationError", "Listeners cannot be empty")
    if unknown := [subnet for subnet in subnets if subnet not in ec2._subnets]:
        return alb._error("SubnetNotFound", f"The subnet '{unknown[0]}' does not exist")
    if unknown := [group for group in groups if group not in ec2._security_groups]:
        return alb._error("InvalidSecurityGroup", f"The security group '{unknown[0]}' does not exist")
    described = [describe_listener(listener) for listener in listeners]
    balancer = {
        "LoadBalancerName": name, "DNSName": f"{name}-1234567890.{get_region()}.elb.amazonaws.com",
        "Scheme": alb._p(parameters, "Scheme") or "internet-facing", "Subnets": subnets, "SecurityGroups": groups,
        "VPCId": ec2._subnets[subnets[0]]["VpcId"] if subnets else "",
        "AvailabilityZones": [ec2._subnets[subnet]["AvailabilityZone"] for subnet in subnets],
        "ListenerDescriptions": described, "BackendServerDescriptions": [], "Instances": [],
        "HealthCheck": {"Target": f"TCP:{described[0]['Listener']['InstancePort']}"} | HEALTH_CHECK, "CreatedTime": now_iso(),
    }
    classic_balancers[name] = balancer
    attributes_of[name] = ATTRIBUTES
    alb._tags[arn_of(name)] = alb._parse_tags(parameters)
    return answer("CreateLoadBalancer", {"DNSName": balancer["DNSName"]})


def create_listeners(parameters, balancer):
    wanted = [describe_listener(listener) for listener in members(parameters, "Listeners")]
    taken = {port_of(listener) for listener in balancer["ListenerDescriptions"]}
    if twice := [port_of(listener) for listener in wanted if port_of(listener) in taken]:
        return alb._error("DuplicateListener", f"A listener already exists for {balancer['LoadBalancerName']} "
                                               f"with LoadBalancerPort {twice[0]}")
    balancer["ListenerDescriptions"] = balancer["ListenerDescriptions"] + wanted
    return answer("CreateLoadBalancerListeners", {})


def delete_listeners(parameters, balancer):
    ports = {int(port) for port in alb._parse_member_list(parameters, "LoadBalancerPorts")}
    balancer["ListenerDescriptions"] = [
        listener for listener in balancer["ListenerDescriptions"] if port_of(listener) not in ports]
    return answer("DeleteLoadBalancerListeners", {})


def configure_health_check(parameters, balancer):
    given = {key: alb._p(parameters, f"HealthCheck.{key}") for key in ("Target", *HEALTH_CHECK)}
    if absent := [key for key, value in given.items() if not value]:
        return alb._error("ValidationError", f"{absent[0]} of the health check is missing")
    balancer["HealthCheck"] = given
    return answer("ConfigureHealthCheck", {"HealthCheck": given})


def register(parameters, balancer):
    named = [member["InstanceId"] for member in members(parameters, "Instances")]
    for instance_id in named:
        if ec2._instances.get(instance_id, {}).get("State", {}).get("Name") in (None, "terminated"):
            return alb._error("InvalidInstance", f"Could not find EC2 instance {instance_id}.")
    known = [instance["InstanceId"] for instance in balancer["Instances"]]
    balancer["Instances"] = [{"InstanceId": instance_id} for instance_id in dict.fromkeys(known + named)]
    return answer("RegisterInstancesWithLoadBalancer", {"Instances": balancer["Instances"]})


def deregister(parameters, balancer):
    named = {member["InstanceId"] for member in members(parameters, "Instances")}
    balancer["Instances"] = [instance for instance in balancer["Instances"] if instance["InstanceId"] not in named]
    return answer("DeregisterInstancesFromLoadBalancer", {"Instances": balancer["Instances"]})


def describe_attributes(_parameters, balancer):
    return answer("DescribeLoadBalancerAttributes", {"LoadBalancerAttributes": attributes_of[balancer["LoadBalancerName"]]})


def modify_attributes(parameters, balancer):
    """Those that are not named stay as they are."""
    name, prefix = balancer["LoadBalancerName"], "LoadBalancerAttributes."
    changed = {kind: dict(values) for kind, values in attributes_of[name].items()}
    for key in parameters:
        if key.startswith(prefix):
            kind, _, member = key.removeprefix(prefix).partition(".")
            if kind not in changed:
                return alb._error("InvalidAction", f"The stand-in knows no attribute {kind} of classic load balancers")
            changed[kind][member] = alb._p(parameters, key)
    attributes_of[name] = changed
    return answer("ModifyLoadBalancerAttributes", {"LoadBalancerName": name, "LoadBalancerAttributes": changed})


def describe(parameters):
    names = alb._parse_member_list(parameters, "LoadBalancerNames")
    if unknown := [name for name in names if name not in classic_balancers]:
        return missing(unknown[0])
    shown = [balancer for name, balancer in classic_balancers.items() if not names or name in names]
    return answer("DescribeLoadBalancers", {"LoadBalancerDescriptions": shown})


def describe_tags(parameters):
    names = alb._parse_member_list(parameters, "LoadBalancerNames")
    if unknown := [name for name in names if name not in classic_balancers]:
        return missing(unknown[0])
    return answer("DescribeTags", {"TagDescriptions": [
        {"LoadBalancerName": name, "Tags": alb._tags.get(arn_of(name), [])} for name in names]})


def add_tags(parameters):
    names = alb._parse_member_list(parameters, "LoadBalancerNames")
    if unknown := [name for name in names if name not in classic_balancers]:
        return missing(unknown[0])
    for name in names:
        tags = {tag["Key"]: tag for tag in alb._tags.get(arn_of(name), []) + alb._parse_tags(parameters)}
        alb._tags[arn_of(name)] = list(tags.values())
    return answer("AddTags", {})


def delete(parameters):
    """As AWS has it, one that is gone is no error."""
    name = alb._p(parameters, "LoadBalancerName")
    classic_balancers.pop(name, None)
    attributes_of.pop(name, None)
    alb._tags.pop(arn_of(name), None)
    return answer("DeleteLoadBalancer", {})


ACTIONS = {
    "AddTags": add_tags, "CreateLoadBalancer": create, "DeleteLoadBalancer": delete, "DescribeLoadBalancers": describe,
    "DescribeTags": describe_tags,
    **{name: with_balancer(act) for name, act in {
        "ConfigureHealthCheck": configure_health_check, "CreateLoadBalancerListeners": create_listeners,
        "DeleteLoadBalancerListeners": delete_listeners, "DeregisterInstancesFromLoadBalancer": deregister,
        "DescribeLoadBalancerAttributes": describe_attributes, "ModifyLoadBalancerAttributes": modify_attributes,
        "RegisterInstancesWithLoadBalancer": register}.items()},
}
answer_for_second = app.SERVICE_HANDLERS["elasticloadbalancing"]


async def answer_for_either(method, path, headers, body, query):
    parameters = dict(query) | urllib.parse.parse_qs((body or b"").decode())
    if alb._p(parameters, "Version") != VERSION:
        return await answer_for_second(method, path, headers, body, query)
    action = alb._p(parameters, "Action")
    if action not in ACTIONS:
        return alb._error("InvalidAction", f"The stand-in knows no {action} of classic load balancers")
    return ACTIONS[action](parameters)


app.SERVICE_HANDLERS["elasticloadbalancing"] = answer_for_either
