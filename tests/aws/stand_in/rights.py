"""What conditions of policies need and MiniStack does not provide: tags of more resources, and keys of single services."""

import json
import re

from ministack.core import iam_actions
from ministack.services import efs, tagging

from stand_in.balancers import arn_of
from stand_in.tags import tagged_in_ec2, tagged_load_balancers

tagging._RESOURCE_TAG_COLLECTORS.update(
    ec2=tagged_in_ec2, elasticfilesystem=tagging._COLLECTORS["elasticfilesystem"], elasticloadbalancing=tagged_load_balancers)

name_resource, name_tags = iam_actions.extract_resource_arn, iam_actions.request_tag_context


def name_more_resources(service, method, path, headers, body, parameters, region, account):
    """A mount target is judged by its file system, a classic load balancer by its name."""
    arn = name_resource(service, method, path, headers, body, parameters, region, account)
    mount = re.search(r"/mount-targets/(fsmt-\w+)", path) if service == "elasticfilesystem" else None
    if mount and mount[1] in efs._mount_targets:
        return arn.replace("file-system/*", f"file-system/{efs._mount_targets[mount[1]]['FileSystemId']}")
    if service == "elasticloadbalancing" and arn == "*":
        name = iam_actions._query_param(parameters, "LoadBalancerName")
        return arn_of(name) if name else arn
    return arn


def name_more_keys(service, action, body, parameters):
    keys = name_tags(service, action, body, parameters)
    if action == "kms:CreateGrant":
        keys["kms:GranteePrincipal"] = json.loads(body)["GranteePrincipal"]
    if action == "route53:ChangeResourceRecordSets":
        names = re.findall(rb"<Name>([^<]+)</Name>", body)
        keys["route53:ChangeResourceRecordSetsNormalizedRecordNames"] = [name.decode().lower().rstrip(".") for name in names]
    if service == "iam":
        keys["iam:PermissionsBoundary"] = iam_actions._query_param(parameters, "PermissionsBoundary") or None
    return keys


iam_actions.extract_resource_arn, iam_actions.request_tag_context = name_more_resources, name_more_keys
