"""An account of its own at the stand-in for AWS, with the stacks of a golden cluster."""

import itertools
import json
import pathlib
import time

import yaml

from account_case import new_account, shared_stand_in

CLUSTERS = pathlib.Path(__file__).parents[1] / "clusters"
CAPABILITIES = ["CAPABILITY_IAM"]
# Parameters of pools that keep their defaults here: sizes, and no capacity block.
DEFAULTS = {"BlockBeginsAt", "BlockEndsAt", "DesiredCapacity", "InService", "MaxSize", "MinSize"}


def read_stacks(cluster):
    """In the order of creation: what comes later takes outputs of what came earlier."""
    directory = CLUSTERS / cluster / "expected/stacks"
    names = sorted(path.stem for path in directory.glob("*.json"))
    order = [name for name in ("network", "storage", "control-plane") if name in names]
    order += [name for name in names if name.startswith("pool-")]
    assert set(order) == set(names) and {"network", "control-plane"} < set(names), (cluster, names)
    return {name: (directory / f"{name}.json").read_text() for name in order}


class GoldenAccount:
    """An AWS account of its own, and the stacks of a golden cluster in it."""

    def __init__(self, cluster):
        self.configuration = yaml.safe_load((CLUSTERS / cluster / "cluster.yaml").read_text())
        self.name = self.configuration["clusterName"]
        self.account = new_account()
        self.bucket = f"assets-{self.account}"
        for service in ("autoscaling", "cloudformation", "ec2", "efs", "elbv2", "iam", "resourcegroupstaggingapi", "route53", "s3"):
            setattr(self, service, shared_stand_in().client(service, self.account, self.configuration["region"]))
        self.tags = [{"Key": "infra:cluster", "Value": self.name}]
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": self.configuration["region"]})
        image = self.ec2.register_image(Name="flatcar", RootDeviceName="/dev/xvda", Architecture="x86_64")["ImageId"]
        self.given = {"AssetBucket": self.bucket, "AssetPrefix": "prefix/", "ImageId": image, "RootDevice": "/dev/sda1"}
        self.adopted = self.make_adopted()
        self.templates = read_stacks(cluster)
        for rendered, real in self.adopted.items():
            self.templates = {name: text.replace(rendered, real) for name, text in self.templates.items()}
        self.ids = {}
        self.outputs = {}
        self.change_sets = itertools.count(1)

    def make_adopted(self):
        """What the cluster finds in the account: ids of cluster.yaml and what they stand for here."""
        adopted = {}
        network = self.configuration.get("network", {})
        if existing := network.get("existing"):
            vpc = self.ec2.create_vpc(CidrBlock=network["vpcCIDR"])["Vpc"]["VpcId"]
            adopted[existing["vpcId"]] = vpc
            gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
            self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
            start = network["vpcCIDR"].rsplit(".", 2)[0]
            for number, subnet in enumerate(existing["subnets"]):
                adopted[subnet["id"]] = self.ec2.create_subnet(
                    VpcId=vpc, CidrBlock=f"{start}.{number}.0/24",
                    AvailabilityZone=subnet["availabilityZone"])["Subnet"]["SubnetId"]
        if file_system := self.configuration.get("storage", {}).get("efs", {}).get("fileSystemId"):
            adopted[file_system] = self.efs.create_file_system(CreationToken="theirs")["FileSystemId"]
        return adopted

    def parameters(self, name):
        declared = json.loads(self.templates[name]).get("Parameters", {})
        values = self.given | self.outputs
        for name in DEFAULTS & set(declared):
            values[name] = str(declared[name]["Default"])
        # The file system of the test has no mount target before.
        return {parameter: "true" if parameter.endswith("Missing") else values[parameter] for parameter in declared}

    def change_set(self, name, template=None, **changes):
        """Asks what would change; gives back its description."""
        key = f"{name}-{next(self.change_sets)}.json"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=(template or self.templates[name]).encode())
        request = {
            "StackName": f"{self.name}-{name}",
            "ChangeSetName": key.replace(".", "-"),
            "ChangeSetType": "UPDATE" if name in self.ids else "CREATE",
            "TemplateURL": f"{shared_stand_in().url}/{self.bucket}/{key}",
            "Parameters": [{"ParameterKey": parameter, "ParameterValue": value}
                           for parameter, value in self.parameters(name).items()],
            "Capabilities": CAPABILITIES,
            "Tags": self.tags,
        }
        made = self.cloudformation.create_change_set(**request | changes)
        return self.cloudformation.describe_change_set(ChangeSetName=made["Id"])

    def execute(self, name, description):
        self.cloudformation.execute_change_set(ChangeSetName=description["ChangeSetId"])
        self.ids[name] = description["StackId"]
        stack = self.wait(name)
        self.outputs |= {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        return stack["StackStatus"]

    def create(self, name):
        return self.execute(name, self.change_set(name))

    def delete(self, name):
        self.cloudformation.delete_stack(StackName=self.ids[name])
        return self.wait(name)["StackStatus"]

    def wait(self, name):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            stack = self.cloudformation.describe_stacks(StackName=self.ids[name])["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                return stack
            time.sleep(0.02)
        raise AssertionError(f"{name} is still {stack['StackStatus']}")

    def failures(self, name):
        events = self.cloudformation.get_paginator("describe_stack_events").paginate(StackName=self.ids[name])
        return {event["LogicalResourceId"]: event["ResourceStatusReason"]
                for event in events.search("StackEvents") if event["ResourceStatus"].endswith("_FAILED")}

    def create_all(self, test):
        for name in self.templates:
            test.assertEqual(self.create(name), "CREATE_COMPLETE", (name, self.failures(name)))

    def physical_ids(self):
        return {(name, resource["LogicalResourceId"]): resource["PhysicalResourceId"] for name in self.ids
                for resource in self.cloudformation.describe_stack_resources(StackName=self.ids[name])["StackResources"]}

    def resources(self, kind):
        return [(name, logical_id) for name, text in self.templates.items()
                for logical_id, resource in json.loads(text)["Resources"].items() if resource["Type"] == kind]

    def tagged(self):
        pages = self.resourcegroupstaggingapi.get_paginator("get_resources").paginate(
            TagFilters=[{"Key": "infra:cluster", "Values": [self.name]}])
        return {resource["ResourceARN"] for resource in pages.search("ResourceTagMappingList")}

    def left(self):
        """What is there besides the account's own default VPC and what the cluster found."""
        default = {vpc["VpcId"] for vpc in self.ec2.describe_vpcs()["Vpcs"] if vpc["IsDefault"]}
        found = set(self.adopted.values())
        groups = self.ec2.describe_security_groups()["SecurityGroups"]
        live = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        kinds = {
            "VPCs": {vpc["VpcId"] for vpc in self.ec2.describe_vpcs()["Vpcs"]} - default - found,
            "subnets": {subnet["SubnetId"] for subnet in self.ec2.describe_subnets()["Subnets"]
                        if subnet["VpcId"] not in default} - found,
            "security groups": {group["GroupId"] for group in groups if group["GroupName"] != "default"},
            "gateways": {gateway["InternetGatewayId"]
                         for gateway in self.ec2.describe_internet_gateways()["InternetGateways"]
                         if not {attachment["VpcId"] for attachment in gateway["Attachments"]} & (default | found)},
            "NAT gateways": {gateway["NatGatewayId"] for gateway in self.ec2.describe_nat_gateways()["NatGateways"]
                             if gateway["State"] != "deleted"},
            "endpoints": {endpoint["VpcEndpointId"] for endpoint in self.ec2.describe_vpc_endpoints()["VpcEndpoints"]},
            "route tables": {table["RouteTableId"] for table in self.ec2.describe_route_tables()["RouteTables"]
                             if table["VpcId"] not in default and not any(entry["Main"] for entry in table["Associations"])},
            "interfaces": {interface["NetworkInterfaceId"]
                           for interface in self.ec2.describe_network_interfaces()["NetworkInterfaces"]},
            "addresses": {address["AllocationId"] for address in self.ec2.describe_addresses()["Addresses"]},
            "volumes": {volume["VolumeId"] for volume in self.ec2.describe_volumes()["Volumes"]},
            "machines": {machine["InstanceId"] for reservation in self.ec2.describe_instances(Filters=live)["Reservations"]
                         for machine in reservation["Instances"]},
            "launch templates": {template["LaunchTemplateId"]
                                 for template in self.ec2.describe_launch_templates()["LaunchTemplates"]},
            "groups": {group["AutoScalingGroupName"]
                       for group in self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]},
            "load balancers": {balancer["LoadBalancerArn"]
                               for balancer in self.elbv2.describe_load_balancers()["LoadBalancers"]},
            "target groups": {group["TargetGroupArn"] for group in self.elbv2.describe_target_groups()["TargetGroups"]},
            "roles": {role["RoleName"] for role in self.iam.list_roles()["Roles"]},
            "profiles": {profile["InstanceProfileName"] for profile in self.iam.list_instance_profiles()["InstanceProfiles"]},
            "zones": {zone["Id"] for zone in self.route53.list_hosted_zones()["HostedZones"]},
            "file systems": {system["FileSystemId"] for system in self.efs.describe_file_systems()["FileSystems"]} - found,
        }
        return {kind: ids for kind, ids in kinds.items() if ids}

    def mount_targets(self):
        systems = self.efs.describe_file_systems()["FileSystems"]
        return [target for system in systems
                for target in self.efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]]
