"""Rendered stacks, judged by cfn-lint: no error and no warning, in every region and partition that is meant."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINT = ROOT / "target/test-tools/venv/bin/cfn-lint"
CLUSTERS = ROOT / "tests/clusters"

# g5 machines are not offered everywhere, g4dn ones are.
OTHER_REGIONS = ["us-east-1", "eu-west-1", "ap-northeast-1", "cn-north-1", "us-gov-west-1"]
CLUSTERS_FOR_OTHER_REGIONS = ["adopted", "tensorflow-tutorial"]
# Those with p4d, p5 and g6e machines, as cfn-lint lists what each region offers.
REGIONS_OF_LARGE_MACHINES = ["us-east-1", "us-east-2", "us-west-2", "ap-northeast-1", "ap-south-1", "eu-north-1"]


def stacks(*clusters):
    found = [path for cluster in clusters for path in sorted(CLUSTERS.glob(f"{cluster}/expected/stacks/*.json"))]
    assert found, f"no stacks of {clusters}"
    return found


def lint(regions, files):
    return subprocess.run([LINT, "--regions", *regions, "--", *files], capture_output=True, text=True)


class Lint(unittest.TestCase):
    def test_every_stack_in_its_region(self):
        run = lint(["us-west-2"], stacks("*"))
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def test_other_regions_and_partitions(self):
        run = lint(OTHER_REGIONS, stacks(*CLUSTERS_FOR_OTHER_REGIONS))
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def test_large_machines_in_the_regions_that_have_them(self):
        run = lint(REGIONS_OF_LARGE_MACHINES, stacks("deep-learning"))
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))
        elsewhere = lint(["eu-west-1"], stacks("deep-learning"))
        self.assertIn("'p5.48xlarge' is not one of", elsewhere.stdout)

    def test_the_judge_can_refuse(self):
        document = json.loads(stacks("minimal")[0].read_text())
        next(iter(document["Resources"].values()))["Properties"]["Bananas"] = 1
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(document, file)
            file.flush()
            self.assertNotEqual(lint(["us-west-2"], [file.name]).returncode, 0)

    def test_drift_of_every_security_group_can_be_detected(self):
        """CloudFormation does not compare the rules of a group that has none in its stack."""
        for path in stacks("*"):
            resources = json.loads(path.read_text())["Resources"]
            rules = [rule["Properties"] for rule in resources.values() if rule["Type"] == "AWS::EC2::SecurityGroupIngress"]
            opened = {rule["GroupId"]["Fn::GetAtt"][0] for rule in rules}
            groups = {name for name, resource in resources.items() if resource["Type"] == "AWS::EC2::SecurityGroup"}
            self.assertEqual(groups - opened, set(), path)

    def test_a_pool_whose_reservation_may_be_a_block_serves_both_kinds(self):
        template = json.loads((CLUSTERS / "deep-learning/expected/stacks/pool-block.json").read_text())
        resources = template["Resources"]
        self.assertEqual({template["Parameters"][name]["Default"] for name in ("BlockBeginsAt", "BlockEndsAt")}, {""}, "an ordinary reservation")
        launch = resources["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]
        self.assertEqual(launch["InstanceMarketOptions"], {"Fn::If": ["HasBlock", {"MarketType": "capacity-block"}, {"Ref": "AWS::NoValue"}]})
        # The Auto Scaling guide: no mixed instances in a block, and the id and the type in the launch template.
        self.assertNotIn("MixedInstancesPolicy", resources["Nodes"]["Properties"])
        self.assertEqual((launch["InstanceType"], list(launch["CapacityReservationSpecification"])), ("p5.48xlarge", ["CapacityReservationTarget"]))
        self.assertEqual(resources["Nodes"]["CreationPolicy"]["ResourceSignal"]["Count"], {"Ref": "MinSize"})
        for name, condition, sizes in (("BlockBegins", "BlockIsToCome", [1, 2, 2]), ("BlockEnds", "HasBlock", [0, 0, 0])):
            action = resources[name]
            self.assertEqual((action["Condition"], action["Properties"]["Recurrence"]), (condition, {"Ref": f"{name}At"}))
            self.assertEqual([action["Properties"][key] for key in ("MinSize", "MaxSize", "DesiredCapacity")], sizes)
            self.assertEqual(template["Conditions"][condition], {"Fn::Not": [{"Fn::Equals": [{"Ref": f"{name}At"}, ""]}]})
        self.assertNotIn("PlacementGroup", resources)

    def test_machines_with_efa_have_its_interfaces_and_a_group_that_only_they_are_in(self):
        for pool, adapters, placed in (("h100", 32, True), ("a100", 4, False)):
            resources = json.loads((CLUSTERS / f"deep-learning/expected/stacks/pool-{pool}.json").read_text())["Resources"]
            own, *others = resources["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]
            self.assertEqual(own, {"DeviceIndex": 0, "DeleteOnTermination": True, "Groups": [{"Ref": "NodesGroupId"}]})
            # The EC2 User Guide: the second interface of card 0, the first of the others.
            self.assertEqual([(other["NetworkCardIndex"], other["DeviceIndex"]) for other in others],
                             [(card, int(card == 0)) for card in range(adapters)])
            group = {"Fn::GetAtt": ["EfaGroup", "GroupId"]}
            for other in others:
                self.assertEqual((other["InterfaceType"], other["Groups"], other["DeleteOnTermination"]), ("efa-only", [group], True))
            rules = {name: resources[name]["Properties"] for name in ("EfaFromEfaAll", "EfaToEfaAll")}
            self.assertEqual({rule["IpProtocol"] for rule in rules.values()}, {"-1"})
            self.assertEqual(rules["EfaFromEfaAll"]["SourceSecurityGroupId"], group)
            self.assertEqual(rules["EfaToEfaAll"]["DestinationSecurityGroupId"], group)
            self.assertEqual([rule["CidrIp"] for rule in resources["EfaGroup"]["Properties"]["SecurityGroupEgress"]], ["127.0.0.1/32"])
            self.assertEqual(set(resources["Nodes"]["DependsOn"]), set(rules))
            self.assertEqual("PlacementGroup" in resources, placed)
            tags = {tag["Key"]: tag["Value"] for tag in resources["Nodes"]["Properties"]["Tags"]}
            self.assertEqual(tags["k8s.io/cluster-autoscaler/node-template/resources/vpc.amazonaws.com/efa"], str(adapters))

    def test_no_partition_domain_region_or_name_is_written_down(self):
        for path in stacks("*"):
            text = path.read_text()
            document = json.loads(text)
            # What the user wrote is the user's.
            for own in re.findall(r"arn:[^\s\"\]]+", (path.parent.parent.parent / "cluster.yaml").read_text()):
                text = text.replace(own, "")
            for word in ["arn:aws:s3", "arn:aws:iam", "arn:aws:ec2", "amazonaws.com.cn"]:
                self.assertFalse(word in text, f"{path} says {word}")
            for name, resource in document["Resources"].items():
                properties = resource.get("Properties", {})
                for key in ["LoadBalancerName", "GroupName", "RoleName", "AutoScalingGroupName", "LaunchTemplateName", "InstanceProfileName"]:
                    # What belongs to a group names it by reference.
                    self.assertIn(list(properties.get(key, {"Ref": None})), [["Ref"]], f"{path}: {name}")
                if resource["Type"] == "AWS::ElasticLoadBalancingV2::TargetGroup":
                    self.assertNotIn("Name", properties)

    def test_what_holds_data_outlives_mistakes(self):
        kinds = {"AWS::EFS::FileSystem": ("RetainExceptOnCreate", "Retain"), "AWS::EC2::Volume": ("Snapshot", "Snapshot")}
        seen = set()
        for path in stacks("*"):
            for name, resource in json.loads(path.read_text())["Resources"].items():
                if resource["Type"] in kinds:
                    seen.add(resource["Type"])
                    policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
                    self.assertEqual(policies, kinds[resource["Type"]], f"{path}: {name}")
        self.assertEqual(seen, set(kinds))

    def test_members_and_controllers_come_one_after_the_other(self):
        document = json.loads((CLUSTERS / "ha-gpu-efs/expected/stacks/control-plane.json").read_text())
        resources = document["Resources"]
        # Nobody asks for a name before it is there.
        self.assertLessEqual({f"EtcdRecord{member}" for member in range(3)}, set(resources["EtcdMember0"]["DependsOn"]))
        for later, earlier in [("EtcdMember1", "EtcdMember0"), ("EtcdMember2", "EtcdMember1"), ("Controllers", "EtcdMember2")]:
            self.assertIn(earlier, resources[later]["DependsOn"])
        self.assertLessEqual({"ApiRecord", "InternalListener", "PublicListener"}, set(resources["Controllers"]["DependsOn"]))
        for member in range(3):
            group = resources[f"EtcdMember{member}"]
            update = group["UpdatePolicy"]["AutoScalingRollingUpdate"]
            self.assertEqual((update["MinInstancesInService"], update["WaitOnResourceSignals"]), (0, True))
            self.assertIn(f"EtcdAddressAssociation{member}", group["DependsOn"])
            self.assertNotIn("VPCZoneIdentifier", group["Properties"])
            self.assertEqual(group["Properties"]["HealthCheckType"], "EC2")


if __name__ == "__main__":
    unittest.main()
