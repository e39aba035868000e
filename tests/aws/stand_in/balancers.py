"""The first generation of load balancers, which the cloud controller makes for Services unless it is told otherwise.

MiniStack answers for the second generation only. Both come to the same place and are told apart by the version of the API.
"""

import urllib.parse

from ministack import app
from ministack.core.responses import get_account_id, get_region
from ministack.services import alb, ec2

from stand_in.insides import xml
from stand_in.network import classic_balancers

VERSION = "2012-06-01"
SPACE = f"http://elasticloadbalancing.amazonaws.com/doc/{VERSION}/"


def arn_of(name):
    return f"arn:aws:elasticloadbalancing:{get_region()}:{get_account_id()}:loadbalancer/{name}"


def answer(action, members):
    inner = f"<{action}Result>{xml(members, 'member')}</{action}Result>"
    body = f'<{action}Response xmlns="{SPACE}">{inner}<ResponseMetadata><RequestId>test</RequestId></ResponseMetadata></{action}Response>'
    return 200, {"Content-Type": "text/xml"}, body.encode()


def missing(name):
    return alb._error("LoadBalancerNotFound", f"There is no ACTIVE Load Balancer named '{name}'")


def create(parameters):
    name, subnets = alb._p(parameters, "LoadBalancerName"), alb._parse_member_list(parameters, "Subnets")
    if name in classic_balancers:
        return alb._error("DuplicateLoadBalancerName", f"There is already a Load Balancer named '{name}'")
    if unknown := [subnet for subnet in subnets if subnet not in ec2._subnets]:
        return alb._error("SubnetNotFound", f"The subnet '{unknown[0]}' does not exist")
    balancer = {
        "LoadBalancerName": name, "DNSName": f"{name}-1234567890.{get_region()}.elb.amazonaws.com",
        "Scheme": alb._p(parameters, "Scheme") or "internet-facing", "Subnets": subnets,
        "SecurityGroups": alb._parse_member_list(parameters, "SecurityGroups"),
        "VPCId": ec2._subnets[subnets[0]]["VpcId"] if subnets else "",
    }
    classic_balancers[name] = balancer
    alb._tags[arn_of(name)] = alb._parse_tags(parameters)
    return answer("CreateLoadBalancer", {"DNSName": balancer["DNSName"]})


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


def delete(parameters):
    """As AWS has it, one that is gone is no error."""
    name = alb._p(parameters, "LoadBalancerName")
    classic_balancers.pop(name, None)
    alb._tags.pop(arn_of(name), None)
    return answer("DeleteLoadBalancer", {})


ACTIONS = {"CreateLoadBalancer": create, "DescribeLoadBalancers": describe, "DescribeTags": describe_tags,
           "DeleteLoadBalancer": delete}
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
