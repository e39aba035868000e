"""What other services than EC2 know before anyone creates anything: quotas, roles of services, keys, and changes of DNS."""

import json
import re
import time
import urllib.parse

from ministack import app
from ministack.core import iam_actions, router
from ministack.core.responses import get_account_id, get_region
from ministack.services import iam, kms, route53

from stand_in.control import control
from stand_in.insides import xml
from stand_in.lookups import CLUSTERS

# --- Quotas ------------------------------------------------------------------------------------------------------------------

QUOTAS = {
    "ec2": {
        "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152),
        "L-DB2E81BA": ("Running On-Demand G and VT instances", 1152),
        "L-417A185B": ("Running On-Demand P instances", 1152),
        "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 1152),
        "L-3819A6DF": ("All G and VT Spot Instance Requests", 1152),
        "L-7212CCBC": ("All P Spot Instance Requests", 1152),
        "L-0263D0A3": ("EC2-VPC Elastic IPs", 50),
    },
    "vpc": {"L-F678F1CE": ("VPCs per Region", 1152)},
    "elasticfilesystem": {"L-848C634D": ("File systems per account", 1152)},
}


def describe_quota(service, code):
    name, value = QUOTAS[service][code]
    value = control().get("quotas", {}).get(code, value)
    return {"ServiceCode": service, "QuotaCode": code, "QuotaName": name, "Value": float(value),
            "QuotaArn": f"arn:aws:servicequotas:{get_region()}:{get_account_id()}:{service}/{code}", "Unit": "None",
            "Adjustable": True, "GlobalQuota": False}


async def answer_quotas(_method, _path, headers, body, _query):
    action = headers.get("x-amz-target", "").rpartition(".")[2]
    asked = json.loads(body or b"{}")
    service, code = asked.get("ServiceCode"), asked.get("QuotaCode")
    status, content = 200, None
    if action in ("GetServiceQuota", "GetAWSDefaultServiceQuota") and code in QUOTAS.get(service, {}):
        content = {"Quota": describe_quota(service, code)}
    elif action == "ListServiceQuotas" and service in QUOTAS:
        content = {"Quotas": [describe_quota(service, code) for code in QUOTAS[service]]}
    else:
        status, content = 400, {"__type": "NoSuchResourceException", "Message": "The specified resource does not exist."}
    return status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(content).encode()


router.SERVICE_PATTERNS["servicequotas"] = {"target_prefixes": ["ServiceQuotasV20190624"], "host_patterns": [r"servicequotas\."],
                                            "credential_scope": "servicequotas"}
app.SERVICE_HANDLERS["servicequotas"] = answer_quotas


# --- Roles of services -------------------------------------------------------------------------------------------------------

SERVICE_ROLES = {
    "AWSServiceRoleForAutoScaling": "autoscaling.amazonaws.com",
    "AWSServiceRoleForEC2Spot": "spot.amazonaws.com",
    "AWSServiceRoleForElasticLoadBalancing": "elasticloadbalancing.amazonaws.com",
    "AWSServiceRoleForAmazonElasticFileSystem": "elasticfilesystem.amazonaws.com",
}

name_resource = iam_actions.extract_resource_arn


def name_resource_with_path(service, *arguments, **named):
    """The roles of services have paths, which policies name."""
    arn = name_resource(service, *arguments, **named)
    role = arn.rpartition("/")[2] if service == "iam" else None
    return arn.replace(f":role/{role}", f":role/aws-service-role/{SERVICE_ROLES[role]}/{role}") if role in SERVICE_ROLES else arn


iam_actions.extract_resource_arn = name_resource_with_path

roles_made = set()
get_made_role, make_role = iam._IAM_HANDLERS["GetRole"], iam._IAM_HANDLERS["CreateServiceLinkedRole"]


def has_role(name):
    return name not in control().get("missing_roles", []) or (get_account_id(), name) in roles_made


def describe_role(action, name):
    service = SERVICE_ROLES[name]
    path = f"/aws-service-role/{service}/"
    trust = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}]}
    role = {"RoleName": name, "Path": path, "Arn": f"arn:aws:iam::{get_account_id()}:role{path}{name}",
            "RoleId": "AROASERVICEROLE00000", "CreateDate": "2024-01-01T00:00:00Z", "MaxSessionDuration": 3600,
            "AssumeRolePolicyDocument": urllib.parse.quote(json.dumps(trust))}
    return iam._xml(200, f"{action}Response", xml({f"{action}Result": {"Role": role}}, "member"), ns="iam")


def get_role(parameters):
    name = iam._p(parameters, "RoleName")
    if name in SERVICE_ROLES and has_role(name):
        return describe_role("GetRole", name)
    if name not in iam._roles:
        return iam._error(404, "NoSuchEntity", f"The role with name {name} cannot be found.", ns="iam")
    return get_made_role(parameters)


def make_service_role(parameters):
    name = next((name for name, service in SERVICE_ROLES.items() if service == iam._p(parameters, "AWSServiceName")), None)
    if not name:
        return make_role(parameters)
    if has_role(name):
        return iam._error(400, "InvalidInput", f"Service role name {name} has been taken in this account, "
                                               "please try a different suffix.", ns="iam")
    roles_made.add((get_account_id(), name))
    return describe_role("CreateServiceLinkedRole", name)


iam._IAM_HANDLERS.update(GetRole=get_role, CreateServiceLinkedRole=make_service_role)


# --- Keys that cluster.yaml names --------------------------------------------------------------------------------------------

GOLDEN_KEYS = {key for path in CLUSTERS.glob("*/cluster.yaml") for key in re.findall(r":key/([0-9a-f-]+)", path.read_text())}
resolve_made_key = kms._resolve_key


def resolve_key(name):
    """A key of a golden cluster is in whichever account asks for it."""
    parts = name.split(":")
    is_arn = len(parts) == 6 and parts[0] == "arn" and parts[5].startswith("key/")
    key_id = parts[5].removeprefix("key/") if is_arn else name
    states = dict.fromkeys(GOLDEN_KEYS, "Enabled") | control().get("keys", {})
    if key_id not in states or is_arn and parts[3] != get_region():
        return resolve_made_key(name)
    record = kms._keys.get(key_id)
    if not record:
        kms._create_key({})
        # The newest one: made under a random id just now.
        record = kms._keys.pop(list(kms._keys)[-1])
        record.update(KeyId=key_id)
        kms._keys[key_id] = record
    record.update(Arn=name if is_arn else kms._arn(key_id), KeyState=states[key_id], Enabled=states[key_id] == "Enabled")
    return record


kms._resolve_key = resolve_key


# --- Changes of DNS ----------------------------------------------------------------------------------------------------------

record_change, get_recorded_change = route53._new_change, route53._get_change


def new_change(comment=""):
    change = record_change(comment)
    change["since"] = time.monotonic()
    return change


def get_change(change_id):
    # MiniStack's own rule is that only the first question is answered with PENDING.
    if change := route53._changes.get(change_id):
        over = time.monotonic() - change["since"] >= control().get("dns_pending", 0.2)
        change["status"] = "INSYNC" if over else "PENDING"
    return get_recorded_change(change_id)


route53._new_change, route53._get_change = new_change, get_change
