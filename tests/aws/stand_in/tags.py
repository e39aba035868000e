"""The Resource Groups Tagging API: everything that stacks create and AWS lists there, also for a while after it is deleted."""

from ministack.core.responses import AccountRegionScopedDict, AccountScopedDict, get_account_id, get_region
from ministack.services import alb, cloudformation, ec2, route53, tagging

from stand_in.control import control

NAMES_IN_ARNS = {
    "eipalloc": "elastic-ip", "eni": "network-interface", "i": "instance", "igw": "internet-gateway", "lt": "launch-template",
    "nat": "natgateway", "pg": "placement-group", "rtb": "route-table", "sg": "security-group", "snap": "snapshot",
    "subnet": "subnet", "vol": "volume", "vpc": "vpc", "vpce": "vpc-endpoint",
}


def remembering(kind, store):
    """The same store, and what has ever been in it: AWS forgets tags of deleted things about an hour late."""
    memory = kind()

    class Remembering(kind):
        __slots__ = ()

        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            memory[key] = value

        def setdefault(self, key, default=None):
            value = super().setdefault(key, default)
            memory[key] = value
            return value

    made = Remembering()
    made.update(store)
    return made, memory


ec2._tags, ec2_memory = remembering(AccountRegionScopedDict, ec2._tags)
alb._tags, balancer_memory = remembering(AccountScopedDict, alb._tags)
# Placement groups are called by their name in ARNs, and by an id where their tags are.
names_of_placement_groups = AccountRegionScopedDict()


def tagged_in_ec2():
    for name, group in ec2._placement_groups.items():
        names_of_placement_groups[group["GroupId"]] = name
    for resource_id, tags in ec2_memory.items():
        kind = NAMES_IN_ARNS.get(resource_id.rpartition("-")[0])
        if kind and tags:
            name = names_of_placement_groups.get(resource_id, resource_id)
            yield f"arn:aws:ec2:{get_region()}:{get_account_id()}:{kind}/{name}", list(tags)


def tagged_load_balancers():
    for arn, tags in balancer_memory.items():
        if f":{get_region()}:" in arn:
            yield arn, list(tags)


def tagged_stacks():
    for stack in cloudformation._stacks.values():
        yield stack["StackId"], list(stack["Tags"])


def tagged_zones():
    """What has no region is listed in one."""
    for (kind, zone_id), tags in route53._tags.items():
        if kind == "hostedzone" and get_region() == "us-east-1":
            yield f"arn:aws:route53:::hostedzone/{zone_id}", [{"Key": key, "Value": value} for key, value in tags.items()]


collect_vaults = tagging._COLLECTORS["backup"]


def tagged_backups():
    yield from collect_vaults()
    for arn, cluster in control().get("recovery_points", {}).items():
        yield arn, [{"Key": "infra:cluster", "Value": cluster}]


tagging._COLLECTORS.update(backup=tagged_backups, cloudformation=tagged_stacks, ec2=tagged_in_ec2,
                           elasticloadbalancing=tagged_load_balancers, route53=tagged_zones)
