"""Whole lives of the golden clusters' stacks on a stand-in for AWS: created, left alone, changed, deleted.

What that cannot show: whether AWS takes every property, how long it takes, and machines that really start and signal.
"""

import collections
import json
import re
import unittest

import botocore.exceptions

from account_case import setUpModule, shared_stand_in  # noqa: F401
from golden_account import CLUSTERS, DEFAULTS, GoldenAccount, read_stacks

GOLDEN = sorted(path.parent.name for path in CLUSTERS.glob("*/cluster.yaml"))

# What does not come from another stack.
GIVEN = {"AssetBucket", "AssetPrefix", "ImageId", "RootDevice"} | DEFAULTS

# How ARNs call what the tagging service lists.
TAGGED_KINDS = {
    "AWS::EC2::EIP": "elastic-ip", "AWS::EC2::InternetGateway": "internet-gateway", "AWS::EC2::LaunchTemplate": "launch-template",
    "AWS::EC2::NatGateway": "natgateway", "AWS::EC2::NetworkInterface": "network-interface",
    "AWS::EC2::PlacementGroup": "placement-group", "AWS::EC2::RouteTable": "route-table",
    "AWS::EC2::SecurityGroup": "security-group", "AWS::EC2::Subnet": "subnet", "AWS::EC2::VPC": "vpc",
    "AWS::EC2::VPCEndpoint": "vpc-endpoint", "AWS::EC2::Volume": "volume", "AWS::EFS::FileSystem": "file-system",
    "AWS::ElasticLoadBalancingV2::Listener": "listener", "AWS::ElasticLoadBalancingV2::LoadBalancer": "loadbalancer",
    "AWS::ElasticLoadBalancingV2::TargetGroup": "targetgroup",
}
# What it does not list: without tags of their own, without a region, or not known to it.
UNTAGGED = {
    "AWS::AutoScaling::AutoScalingGroup", "AWS::AutoScaling::ScheduledAction", "AWS::EC2::EIPAssociation", "AWS::EC2::Route",
    "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPCGatewayAttachment", "AWS::EFS::MountTarget",
    "AWS::IAM::InstanceProfile", "AWS::IAM::Role", "AWS::Route53::HostedZone", "AWS::Route53::RecordSet",
}


def references(value):
    """Every name that Ref, Fn::GetAtt and Fn::Sub mention."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item
            elif key == "Fn::GetAtt":
                yield item[0]
            elif key == "Fn::Sub":
                text, own = item if isinstance(item, list) else (item, {})
                yield from (name for name in re.findall(r"\$\{([^!}.]+)[^}]*\}", text) if name not in own)
                yield from references(own)
            else:
                yield from references(item)


class Parameters(unittest.TestCase):
    def test_declared_is_what_is_used(self):
        for cluster in GOLDEN:
            for name, text in read_stacks(cluster).items():
                with self.subTest(cluster=cluster, stack=name):
                    template = json.loads(text)
                    declared = set(template.get("Parameters", {}))
                    used = set(references([template.get("Conditions", {}), template["Resources"], template.get("Outputs", {})]))
                    foreign = {reference for reference in used - set(template["Resources"]) if not reference.startswith("AWS::")}
                    self.assertEqual(declared, foreign)

    def test_each_can_be_filled_from_one_place(self):
        for cluster in GOLDEN:
            outputs = collections.Counter()
            for name, text in read_stacks(cluster).items():
                with self.subTest(cluster=cluster, stack=name):
                    template = json.loads(text)
                    for parameter in template.get("Parameters", {}):
                        looked_up = parameter in GIVEN or re.fullmatch(r"MountTarget\d+Missing", parameter) is not None
                        self.assertEqual(outputs[parameter] + looked_up, 1, parameter)
                    # Pools do not hand on anything.
                    if not name.startswith("pool-"):
                        outputs.update(list(template["Outputs"]))


class Lives(unittest.TestCase):
    """One test per golden cluster."""

    def live(self, cluster):
        account = GoldenAccount(cluster)
        account.create_all(self)
        self.assertEqual(set(account.outputs) & GIVEN, set())
        self.look(account)
        self.change_nothing(account)
        self.change_one_pool(account)
        self.delete(account)

    def look(self, account):
        """What the stacks made is there for the APIs that people and our own commands ask."""
        there = account.left()
        for kind, resource_type in (("addresses", "EC2::EIP"), ("NAT gateways", "EC2::NatGateway"), ("roles", "IAM::Role"),
                                    ("load balancers", "ElasticLoadBalancingV2::LoadBalancer")):
            self.assertEqual(len(there.get(kind, ())), len(account.resources(f"AWS::{resource_type}")), kind)
        # The disks that outlive their machine: each member has claimed its own.
        claimed = [attachment for volume in account.ec2.describe_volumes()["Volumes"] for attachment in volume["Attachments"]
                   if not attachment["DeleteOnTermination"]]
        self.assertEqual(len({attachment["InstanceId"] for attachment in claimed}), len(account.resources("AWS::EC2::Volume")))
        zones = account.route53.list_hosted_zones()["HostedZones"]
        self.assertEqual([(zone["Name"], zone["Config"]["PrivateZone"]) for zone in zones],
                         [(f"{account.name}.infra.internal.", True)])
        reservations = account.ec2.describe_instances()["Reservations"]
        machines = [machine for reservation in reservations for machine in reservation["Instances"]]
        tagged = {
            "machines": [machine["Tags"] for machine in machines],
            "volumes": [volume["Tags"] for volume in account.ec2.describe_volumes()["Volumes"]],
            "interfaces": [interface["TagSet"] for interface in account.ec2.describe_network_interfaces()["NetworkInterfaces"]
                           if "Attachment" in interface],
            "groups": [group["Tags"] for group in account.ec2.describe_security_groups()["SecurityGroups"]
                       if group["GroupName"] != "default"],
        }
        for kind, lists in tagged.items():
            for tags in lists:
                self.assertIn({"Key": "infra:cluster", "Value": account.name}, tags, kind)
        # One each, and the adapters of those with EFA.
        attached = [len(machine["NetworkInterfaces"]) for machine in machines]
        self.assertGreaterEqual(min(attached), 1)
        self.assertEqual(len(tagged["interfaces"]), sum(attached))
        # The search by tag, which tells what is left of a cluster. Of stacks' resources it lists all but these.
        kinds = collections.Counter(arn.split(":", 5)[5].partition("/")[0] for arn in account.tagged())
        for resource_type, kind in TAGGED_KINDS.items():
            self.assertGreaterEqual(kinds[kind], len(account.resources(resource_type)), resource_type)
        made = {resource["Type"] for text in account.templates.values() for resource in json.loads(text)["Resources"].values()}
        self.assertEqual(made - set(TAGGED_KINDS) - UNTAGGED, set())

    def change_nothing(self, account):
        for name in account.templates:
            description = account.change_set(name)
            self.assertEqual((description["Status"], description.get("Changes", [])), ("FAILED", []), name)
            self.assertRegex(description["StatusReason"], "didn't contain changes|No updates are to be performed")

    def change_one_pool(self, account):
        changed = next(name for name in account.templates if name.startswith("pool-"))
        template = json.loads(account.templates[changed])
        nodes = template["Resources"]["Nodes"]["Properties"]
        # A pool with a schedule takes its limits as parameters.
        most = account.parameters(changed).get("MaxSize") or nodes["MaxSize"]
        nodes["MaxSize"] = str(int(most) + 1)
        before = account.physical_ids()
        description = account.change_set(changed, json.dumps(template))
        changes = [change["ResourceChange"] for change in description["Changes"]]
        self.assertEqual([(change["Action"], change["LogicalResourceId"], change["Replacement"]) for change in changes],
                         [("Modify", "Nodes", "False")])
        self.assertEqual([detail["Target"]["Name"] for detail in changes[0]["Details"]], ["MaxSize"])
        self.assertEqual(account.execute(changed, description), "UPDATE_COMPLETE", account.failures(changed))
        self.assertEqual(account.physical_ids(), before)
        group = account.autoscaling.describe_auto_scaling_groups(
            AutoScalingGroupNames=[before[changed, "Nodes"]])["AutoScalingGroups"][0]
        self.assertEqual(str(group["MaxSize"]), nodes["MaxSize"])
        account.templates[changed] = json.dumps(template)
        self.change_nothing(account)

    def delete(self, account):
        last = "storage" if "storage" in account.templates else "control-plane"
        order = sorted(account.templates, key=lambda name: (name == "network", name == last, not name.startswith("pool-")))
        for name in order[:-2]:
            self.assertEqual(account.delete(name), "DELETE_COMPLETE", (name, account.failures(name)))
        self.assertEqual(account.delete("network"), "DELETE_FAILED")
        self.assertRegex(" ".join(account.failures("network").values()), "DependencyViolation|HostedZoneNotEmpty")
        for name in order[-2:]:
            self.assertEqual(account.delete(name), "DELETE_COMPLETE", (name, account.failures(name)))

        made = account.resources("AWS::EFS::FileSystem")
        left = account.left()
        self.assertEqual(left, {"file systems": {account.outputs["FileSystemId"]}} if made else {})
        self.assertEqual(account.mount_targets(), [])
        # What is gone is listed for a while; whoever asks looks twice.
        self.assertEqual({arn.rpartition("/")[2] for arn in account.tagged() if ":file-system/" in arn},
                         left.get("file systems", set()))
        snapshots = account.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
        self.assertEqual(len(snapshots), len(account.resources("AWS::EC2::Volume")))


def add_lives():
    for cluster in GOLDEN:
        name = cluster.replace("-", "_")
        setattr(Lives, f"test_{name}", lambda self, cluster=cluster: self.live(cluster))

        # What a resource needs without saying so is more likely to be missing in one of two orders.
        def backwards(self, cluster=cluster):
            shared_stand_in().control(backwards=True)
            self.addCleanup(shared_stand_in().control)
            self.live(cluster)

        setattr(Lives, f"test_{name}_backwards", backwards)


add_lives()


class Failures(unittest.TestCase):
    """Of creations and deletions: what is left, and what reports it."""

    def setUp(self):
        self.addCleanup(shared_stand_in().control)

    def test_file_system_is_deleted_when_its_creation_fails(self):
        account = GoldenAccount("ha-gpu-efs")
        self.assertEqual(account.create("network"), "CREATE_COMPLETE")
        shared_stand_in().control(fail_create={"MountTarget1": "no more mount targets"})
        self.assertEqual(account.create("storage"), "ROLLBACK_COMPLETE")
        self.assertEqual(account.failures("storage")["MountTarget1"], "no more mount targets")
        self.assertNotIn("file systems", account.left())

    def test_failed_creation_of_controllers_leaves_nothing(self):
        account = GoldenAccount("ha-gpu-efs")
        self.assertEqual(account.create("network"), "CREATE_COMPLETE")
        before = account.left()
        shared_stand_in().control(fail_create={"Controllers": "no capacity"})
        self.assertEqual(account.create("control-plane"), "ROLLBACK_COMPLETE", account.failures("control-plane"))
        self.assertEqual(account.left(), before)

    def test_deletion_that_fails_is_retried(self):
        account = GoldenAccount("paddle-tutorial")
        account.create_all(self)
        shared_stand_in().control(fail_delete={"AWS::AutoScaling::AutoScalingGroup": "still busy"})
        self.assertEqual(account.delete("pool-workers"), "DELETE_FAILED")
        shared_stand_in().control()
        self.assertEqual(account.delete("pool-workers"), "DELETE_COMPLETE", account.failures("pool-workers"))

    def test_creation_can_be_watched(self):
        account = GoldenAccount("paddle-tutorial")
        shared_stand_in().control(delay=600)
        description = account.change_set("network")
        account.cloudformation.execute_change_set(ChangeSetName=description["ChangeSetId"])
        stack = account.cloudformation.describe_stacks(StackName=description["StackId"])["Stacks"][0]
        self.assertEqual(stack["StackStatus"], "CREATE_IN_PROGRESS")
        shared_stand_in().control()
        account.ids["network"] = description["StackId"]
        self.assertEqual(account.wait("network")["StackStatus"], "CREATE_COMPLETE", account.failures("network"))


class Refusals(unittest.TestCase):
    """The stand-in refuses what AWS refuses; without this the lives above would prove less."""

    @classmethod
    def setUpClass(cls):
        cls.account = GoldenAccount("paddle-tutorial")
        assert cls.account.create("network") == "CREATE_COMPLETE", cls.account.failures("network")

    def refused(self, words, call, *arguments, **named):
        with self.assertRaisesRegex(botocore.exceptions.ClientError, words):
            call(*arguments, **named)

    def test_missing_capabilities(self):
        self.refused("InsufficientCapabilities", self.account.change_set, "control-plane", Capabilities=[])

    def test_unknown_parameter(self):
        parameters = [{"ParameterKey": "Colour", "ParameterValue": "blue"}]
        self.refused(r"\[Colour\] do not exist in the template", self.account.change_set, "network", Parameters=parameters)

    def test_missing_parameter(self):
        self.refused("ImageId|AssetBucket|VpcId", self.account.change_set, "control-plane", Parameters=[])

    def test_parameter_that_names_nothing(self):
        parameters = [{"ParameterKey": parameter, "ParameterValue": "ami-00000000000000000" if parameter == "ImageId" else value}
                      for parameter, value in self.account.parameters("control-plane").items()]
        self.refused("ImageId does not exist", self.account.change_set, "control-plane", Parameters=parameters)

    def test_reference_to_nothing(self):
        for part in ({"Properties": {"VpcId": {"Ref": "Nowhere"}}}, {"DependsOn": "Nowhere"}):
            template = json.loads(self.account.templates["network"])
            template["Resources"]["NodesGroup"] |= part
            self.refused(r"Unresolved resource dependencies \[Nowhere\]", self.account.change_set, "network", json.dumps(template))

    def test_protected_stack(self):
        cloudformation, name = self.account.cloudformation, self.account.ids["network"]
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=True)
        self.refused("TerminationProtection is enabled", cloudformation.delete_stack, StackName=name)
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)

    def test_held_by_mount_target(self):
        account, subnet, group = self.account, self.account.outputs["PublicSubnet0Id"], self.account.outputs["FileSystemGroupId"]
        system = account.efs.create_file_system(CreationToken="held")["FileSystemId"]
        target = account.efs.create_mount_target(FileSystemId=system, SubnetId=subnet, SecurityGroups=[group])["MountTargetId"]
        self.refused("DependencyViolation", account.ec2.delete_subnet, SubnetId=subnet)
        self.refused("DependencyViolation", account.ec2.delete_security_group, GroupId=group)
        interfaces = account.ec2.describe_network_interfaces(Filters=[{"Name": "group-id", "Values": [group]}])["NetworkInterfaces"]
        self.assertEqual([interface["Description"] for interface in interfaces], [f"EFS mount target for {system} ({target})"])
        account.efs.delete_mount_target(MountTargetId=target)
        account.efs.delete_file_system(FileSystemId=system)
        self.assertEqual(account.ec2.describe_network_interfaces()["NetworkInterfaces"], [])

    def test_group_in_rules_of_another(self):
        self.refused("DependencyViolation", self.account.ec2.delete_security_group, GroupId=self.account.outputs["NodesGroupId"])

    def test_zone_with_records(self):
        account = GoldenAccount("minimal")
        self.assertEqual(account.create("network"), "CREATE_COMPLETE")
        zone = account.outputs["PrivateZoneId"]

        def change(action):
            record = {"Name": f"other.{account.name}.infra.internal", "Type": "A", "TTL": 60,
                      "ResourceRecords": [{"Value": "10.0.0.9"}]}
            account.route53.change_resource_record_sets(
                HostedZoneId=zone, ChangeBatch={"Changes": [{"Action": action, "ResourceRecordSet": record}]})

        change("CREATE")
        self.assertEqual(account.delete("network"), "DELETE_FAILED")
        self.assertIn("non-required resource record sets", account.failures("network")["PrivateZone"])
        change("DELETE")
        self.assertEqual(account.delete("network"), "DELETE_COMPLETE", account.failures("network"))
        self.assertEqual(account.left(), {})


if __name__ == "__main__":
    unittest.main()
