"""What EC2 has before anyone creates anything: availability zones, machine types, images, and settings of the account."""

import base64
import datetime
import hashlib
import pathlib
import re

from ministack.core.responses import AccountRegionScopedDict, get_account_id, get_region
from ministack.services import ec2

from stand_in.control import control, made_at
from stand_in.insides import xml

CLUSTERS = pathlib.Path(__file__).parents[2] / "clusters"


def answer(action, members):
    return ec2._xml(200, f"{action}Response", xml(members, "item"))


def matches(filters, **facts):
    """Only filters whose names are facts are applied: `instance_type` is the filter `instance-type`."""
    return all(any(ec2._filter_value_matches(fact, filters[name]) for fact in values)
               for name, values in ((name.replace("_", "-"), values) for name, values in facts.items()) if name in filters)


# --- Availability zones ------------------------------------------------------------------------------------------------------


def zones():
    usual = [get_region() + letter for letter in ("abcd" if get_region() == "us-west-2" else "abc")]
    return usual + [zone for zone in control().get("zones", []) if zone.startswith(get_region()) and zone not in usual]


def describe_zones(parameters):
    names, filters = ec2._parse_member_list(parameters, "ZoneName"), ec2._parse_filters(parameters)
    if unknown := [name for name in names if name not in zones()]:
        return ec2._error("InvalidParameterValue", f"Invalid availability zone: [{', '.join(unknown)}]", 400)
    region = get_region()
    shown = [zone for zone in zones() if (not names or zone in names)
             and matches(filters, zone_name=[zone], region_name=[region], state=["available"], zone_type=["availability-zone"])]
    return answer("DescribeAvailabilityZones", {"availabilityZoneInfo": [{
        "zoneName": zone, "zoneId": ec2._az_id_for_zone_name(zone), "zoneState": "available", "zoneType": "availability-zone",
        "regionName": region, "groupName": f"{region}-zg-1", "networkBorderGroup": region,
        "optInStatus": "opt-in-not-required"} for zone in shown]})


ec2._ACTION_MAP["DescribeAvailabilityZones"] = describe_zones


# --- Types of machines -------------------------------------------------------------------------------------------------------

# vCPUs, memory in GiB, GPUs.
MACHINES = {
    "t3.micro": (2, 1, 0), "t3.small": (2, 2, 0), "t3.medium": (2, 4, 0), "t3.large": (2, 8, 0),
    "m5.large": (2, 8, 0), "m5.xlarge": (4, 16, 0), "m5.2xlarge": (8, 32, 0), "m5.4xlarge": (16, 64, 0),
    "c5.large": (2, 4, 0), "c5.xlarge": (4, 8, 0), "c6i.large": (2, 4, 0), "c6i.xlarge": (4, 8, 0),
    "g4dn.xlarge": (4, 16, 1), "g4dn.2xlarge": (8, 32, 1), "g4dn.4xlarge": (16, 64, 1), "g4dn.8xlarge": (32, 128, 1),
    "g4dn.12xlarge": (48, 192, 4), "g4dn.16xlarge": (64, 256, 1),
    "g5.xlarge": (4, 16, 1), "g5.2xlarge": (8, 32, 1), "g5.4xlarge": (16, 64, 1), "g5.8xlarge": (32, 128, 1),
    "g5.12xlarge": (48, 192, 4), "g5.16xlarge": (64, 256, 1), "g5.24xlarge": (96, 384, 4), "g5.48xlarge": (192, 768, 8),
    "g6e.xlarge": (4, 32, 1), "g6e.12xlarge": (48, 384, 4),
    "p2.xlarge": (4, 61, 1), "p2.8xlarge": (32, 488, 8), "p2.16xlarge": (64, 732, 16),
    "p3.2xlarge": (8, 61, 1), "p3.8xlarge": (32, 244, 4), "p3.16xlarge": (64, 488, 8), "p3dn.24xlarge": (96, 768, 8),
    "p4d.24xlarge": (96, 1152, 8), "p5.48xlarge": (192, 2048, 8),
    # For a cluster.yaml with the wrong architecture.
    "t4g.medium": (2, 4, 0), "m6g.large": (2, 8, 0),
}
ARM = {"t4g", "m6g"}
# Name, memory in MiB.
ACCELERATORS = {"g4dn": ("T4", 16384), "g5": ("A10G", 24576), "g6e": ("L40S", 46080), "p2": ("K80", 12288), "p3": ("V100", 16384),
                "p3dn": ("V100", 32768), "p4d": ("A100", 40960), "p5": ("H100", 81920)}
BURSTING = {"t3", "t4g"}
# Not of the Nitro system.
OLD = {"p2", "p3"}


def machines():
    return MACHINES | control().get("machines", {})


def describe_offerings(parameters):
    filters = ec2._parse_filters(parameters)
    kind = ec2._p(parameters, "LocationType") or "region"
    missing = {tuple(pair) for pair in control().get("not_offered", [])}
    places = zones() if kind == "availability-zone" else [get_region()]
    offered = [(machine, place) for machine in machines() for place in places
               if (machine, place) not in missing and matches(filters, instance_type=[machine], location=[place])]
    return answer("DescribeInstanceTypeOfferings", {"instanceTypeOfferingSet": [
        {"instanceType": machine, "locationType": kind, "location": place} for machine, place in offered]})


def describe_machine(name):
    virtual_processors, memory, accelerators = machines()[name]
    family = name.partition(".")[0]
    threads = 1 if family in ARM else 2
    facts = {
        "instanceType": name,
        "currentGeneration": family not in OLD,
        "supportedUsageClasses": ["on-demand", "spot"],
        "supportedRootDeviceTypes": ["ebs"],
        "supportedVirtualizationTypes": ["hvm"],
        "bareMetal": False,
        "processorInfo": {"supportedArchitectures": ["arm64" if family in ARM else "x86_64"]},
        "vCpuInfo": {"defaultVCpus": virtual_processors, "defaultCores": virtual_processors // threads,
                     "defaultThreadsPerCore": threads},
        "memoryInfo": {"sizeInMiB": memory * 1024},
        "burstablePerformanceSupported": family in BURSTING,
    }
    if accelerators:
        model, mebibytes = ACCELERATORS.get(family, ("GPU", 24576))
        facts["gpuInfo"] = {"gpus": [{"name": model, "manufacturer": "NVIDIA", "count": accelerators,
                                      "memoryInfo": {"sizeInMiB": mebibytes}}],
                            "totalGpuMemoryInMiB": accelerators * mebibytes}
    return facts


def describe_machines(parameters):
    names, filters = ec2._parse_member_list(parameters, "InstanceType"), ec2._parse_filters(parameters)
    if unknown := [name for name in names if name not in machines()]:
        return ec2._error("InvalidInstanceType", "The following supplied instance types do not exist: "
                                                 f"[{', '.join(unknown)}]", 400)
    return answer("DescribeInstanceTypes", {"instanceTypeSet": [
        describe_machine(name) for name in names or machines() if matches(filters, instance_type=[name])]})


ec2._ACTION_MAP["DescribeInstanceTypeOfferings"] = describe_offerings
ec2._ACTION_MAP["DescribeInstanceTypes"] = describe_machines


# --- Images ------------------------------------------------------------------------------------------------------------------

FLATCAR = "075585003325"
# Name, architecture, days since its creation: whatever the day of a test is, they are no reason for a warning. AWS deprecates public
# images two years after their creation.
FLATCAR_IMAGES = (
    ("Flatcar-stable-4230.2.3-hvm", "x86_64", 101),
    ("Flatcar-stable-4459.2.1-hvm", "x86_64", 30),
    ("Flatcar-stable-4459.2.1-arm64-hvm", "arm64", 30),
    ("Flatcar-beta-4459.1.2-hvm", "x86_64", 53),
    ("Flatcar-lts-4081.3.6-hvm", "x86_64", 115),
)
DEEP_LEARNING = "898082745236"
DEEP_LEARNING_IMAGES = (
    ("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20260918", "x86_64", 61),
    ("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20261009", "x86_64", 40),
    ("Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20261009", "arm64", 40),
)
DEPRECATED_AFTER = datetime.timedelta(days=730)


def flatcar_image(name, architecture, days):
    made = datetime.datetime.fromisoformat(made_at(name, made_at_age(days)).removesuffix("Z"))
    return {
        # The same in every region, unlike on AWS: tests may name it.
        "ImageId": f"ami-{hashlib.sha256(name.encode()).hexdigest()[:17]}",
        "Name": name, "Description": name, "Platform": "", "RootDeviceType": "ebs", "RootDeviceName": "/dev/xvda",
        "BlockDeviceMappings": [], "Architecture": architecture, "VirtualizationType": "hvm", "OwnerId": FLATCAR,
        "IsPublic": "true", "CreationDate": in_iso(made),
        "DeprecationTime": in_iso(made + DEPRECATED_AFTER),
    }


def deep_learning_image(name, architecture, days):
    return flatcar_image(name, architecture, days) | {"OwnerId": DEEP_LEARNING, "RootDeviceName": "/dev/sda1", "VolumeSize": 75}


def in_iso(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def made_at_age(days):
    return in_iso(datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days))


def images():
    """Those of the calling account, and the public ones."""
    own = [ec2._image_view(image) | {"CreationDate": made_at(image["Name"], image["CreationDate"])} for image in ec2._images.values()]
    gone = control().get("gone_images", [])
    return {image["ImageId"]: image for image in own + [flatcar_image(*facts) for facts in FLATCAR_IMAGES]
            + [deep_learning_image(*facts) for facts in DEEP_LEARNING_IMAGES]
            if image["ImageId"] not in gone}


def describe_images(parameters):
    names, owners = ec2._parse_member_list(parameters, "ImageId"), ec2._parse_member_list(parameters, "Owner")
    filters = ec2._parse_filters(parameters)
    known = images()
    for name in names:
        if not re.fullmatch("ami-([0-9a-f]{8}|[0-9a-f]{17})", name):
            return ec2._error("InvalidAMIID.Malformed", f'Invalid id: "{name}"', 400)
    if unknown := [name for name in names if name not in known]:
        words = ("ids", "do") if len(unknown) > 1 else ("id", "does")
        return ec2._error("InvalidAMIID.NotFound", f"The image {words[0]} '[{', '.join(unknown)}]' {words[1]} not exist", 400)
    shown = [image for image in known.values() if (not names or image["ImageId"] in names)
             and (not owners or ec2._image_owner_matches(image, owners)) and ec2._image_matches_filters(image, filters)]
    return answer("DescribeImages", {"imagesSet": [{
        "imageId": image["ImageId"], "imageLocation": f"{image['OwnerId']}/{image['Name']}", "imageState": "available",
        "imageOwnerId": image["OwnerId"], "isPublic": image["IsPublic"] == "true", "architecture": image["Architecture"],
        "imageType": "machine", "name": image["Name"], "description": image["Description"],
        "rootDeviceType": image["RootDeviceType"], "rootDeviceName": image["RootDeviceName"],
        "virtualizationType": image["VirtualizationType"], "hypervisor": "xen", "enaSupport": True,
        "blockDeviceMapping": [{"deviceName": image["RootDeviceName"], "ebs": {
            "volumeSize": image.get("VolumeSize", 8), "volumeType": "gp2", "deleteOnTermination": True, "encrypted": False}}],
        "creationDate": image["CreationDate"], "deprecationTime": image.get("DeprecationTime"),
    } for image in shown]})


ec2._ACTION_MAP["DescribeImages"] = describe_images


# --- Other calls to EC2 ------------------------------------------------------------------------------------------------------

disk_settings = AccountRegionScopedDict()


def set_encryption(enabled, action):
    def set_to(_parameters):
        disk_settings["encrypted"] = enabled
        return answer(action, {"ebsEncryptionByDefault": enabled})

    return set_to


def set_default_key(parameters):
    disk_settings["key"] = ec2._p(parameters, "KmsKeyId")
    return answer("ModifyEbsDefaultKmsKeyId", {"kmsKeyId": disk_settings["key"]})


def reset_default_key(_parameters):
    disk_settings.pop("key", None)
    return answer("ResetEbsDefaultKmsKeyId", {"kmsKeyId": f"arn:aws:kms:{get_region()}:{get_account_id()}:alias/aws/ebs"})


ec2._ACTION_MAP.update({
    "GetEbsEncryptionByDefault": lambda _parameters: answer(
        "GetEbsEncryptionByDefault", {"ebsEncryptionByDefault": disk_settings.get("encrypted", False)}),
    "GetEbsDefaultKmsKeyId": lambda _parameters: answer(
        "GetEbsDefaultKmsKeyId", {"kmsKeyId": disk_settings.get("key", "alias/aws/ebs")}),
    "EnableEbsEncryptionByDefault": set_encryption(True, "EnableEbsEncryptionByDefault"),
    "DisableEbsEncryptionByDefault": set_encryption(False, "DisableEbsEncryptionByDefault"),
    "ModifyEbsDefaultKmsKeyId": set_default_key,
    "ResetEbsDefaultKmsKeyId": reset_default_key,
})

DEFAULT_OPTIONS = "dopt-00000001"
describe_made_options = ec2._ACTION_MAP["DescribeDhcpOptions"]


def describe_options(parameters):
    domain = "ec2.internal" if get_region() == "us-east-1" else f"{get_region()}.compute.internal"
    ec2._dhcp_options.setdefault(DEFAULT_OPTIONS, {
        "DhcpOptionsId": DEFAULT_OPTIONS, "OwnerId": get_account_id(), "DhcpConfigurations": [
            {"Key": "domain-name", "Values": [domain]}, {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]}]})
    for name in ec2._parse_member_list(parameters, "DhcpOptionsId"):
        if name not in ec2._dhcp_options:
            return ec2._error("InvalidDhcpOptionID.NotFound", f"The dhcpOption ID '{name}' does not exist", 400)
    return describe_made_options(parameters)


ec2._ACTION_MAP["DescribeDhcpOptions"] = describe_options


def known_ones(action, parameter, element, store, code, words, facts):
    """MiniStack ignores unknown ids, and filters. `element` is the list that it answers with."""
    describe = ec2._ACTION_MAP[action]

    def describe_known(parameters):
        ids, filters = ec2._parse_member_list(parameters, parameter), ec2._parse_filters(parameters)
        if unknown := [name for name in ids if name not in store]:
            return ec2._error(code, words.format(unknown[0]), 400)
        shown = [name for name, record in store.items() if (not ids or name in ids)
                 and ec2._resource_matches_tag_filters(name, filters) and matches(filters, **facts(record))]
        if not shown:
            # Without ids all are listed.
            return answer(action, {element: []})
        others = {key: value for key, value in parameters.items() if not key.startswith(f"{parameter}.")}
        return describe(others | {f"{parameter}.{number}": [name] for number, name in enumerate(shown, 1)})

    ec2._ACTION_MAP[action] = describe_known


known_ones("DescribeAddresses", "AllocationId", "addressesSet", ec2._addresses, "InvalidAllocationID.NotFound",
           "The allocation ID '{}' does not exist",
           lambda address: {"public_ip": [address["PublicIp"]], "allocation_id": [address["AllocationId"]]})
known_ones("DescribeRouteTables", "RouteTableId", "routeTableSet", ec2._route_tables, "InvalidRouteTableID.NotFound",
           "The routeTable ID '{}' does not exist", lambda _table: {})
known_ones("DescribeSecurityGroups", "GroupId", "securityGroupInfo", ec2._security_groups, "InvalidGroup.NotFound",
           "The security group '{}' does not exist", lambda group: {
               "group_id": [group["GroupId"]],
               "ip_permission.group_id": [pair.get("GroupId", "") for rule in group["IpPermissions"] for pair in rule["UserIdGroupPairs"]]})


def console_output(parameters):
    instance_id = ec2._p(parameters, "InstanceId")
    if instance_id not in ec2._instances:
        return ec2._error("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist", 400)
    family = ec2._instances[instance_id]["InstanceType"].partition(".")[0]
    if ec2._p(parameters, "Latest") == "true" and family in OLD:
        return ec2._error("UnsupportedOperation", "This instance type does not support retrieving the latest console logs.", 400)
    tags = {entry["Key"]: entry["Value"] for entry in ec2._tags.get(instance_id, [])}
    names = (instance_id, tags.get("aws:autoscaling:groupName"), tags.get("aws:cloudformation:logical-id"), "*")
    texts = control().get("console", {})
    text = next((texts[name] for name in names if name in texts), "")
    return answer("GetConsoleOutput", {"instanceId": instance_id, "timestamp": ec2._now_ts(),
                                       "output": base64.b64encode(text.encode()).decode()})


ec2._ACTION_MAP["GetConsoleOutput"] = console_output
