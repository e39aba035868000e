"""Drift detection of the stand-in for AWS."""

import json
import unittest

from account_case import setUpModule  # noqa: F401
from stack_case import StackCase, pool


class Drift(StackCase):
    """CloudFormation compares what is there with templates."""

    RULE = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8", "Description": "operators"}

    def setUp(self):
        super().setUp()
        template = pool()
        template["Resources"] |= {
            "Rule": {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"GroupId": {"Ref": "Group"}} | self.RULE},
            "Closed": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"VpcId": {"Ref": "Vpc"}, "GroupDescription": "closed"}},
            "Disk": {"Type": "AWS::EC2::Volume", "Properties": {
                "AvailabilityZone": "us-west-2a", "Size": 8, "VolumeType": "gp3", "Encrypted": True}},
            "Balancer": {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {
                "Type": "network", "Scheme": "internal", "Subnets": [{"Ref": "Subnet"}], "SecurityGroups": [{"Ref": "Group"}],
                "LoadBalancerAttributes": [{"Key": "deletion_protection.enabled", "Value": "false"}]}},
        }
        self.assertEqual(self.run_stack(template, "CREATE"), "CREATE_COMPLETE")

    def begin(self):
        return self.cloudformation.detect_stack_drift(StackName="pool")["StackDriftDetectionId"]

    def detection(self, detection_id):
        return self.cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=detection_id)

    def drifts(self):
        """What a detection finds now, without what is in sync."""
        detection_id = self.begin()
        self.soon(lambda: self.detection(detection_id)["DetectionStatus"] != "DETECTION_IN_PROGRESS")
        found = self.cloudformation.describe_stack_resource_drifts(StackName="pool")["StackResourceDrifts"]
        return {drift["LogicalResourceId"]: drift for drift in found if drift["StackResourceDriftStatus"] != "IN_SYNC"}

    def physical_id(self, logical_id):
        return self.cloudformation.describe_stack_resource(
            StackName="pool", LogicalResourceId=logical_id)["StackResourceDetail"]["PhysicalResourceId"]

    def differences(self, drift):
        return [(difference["PropertyPath"], difference["DifferenceType"], difference["ExpectedValue"], difference["ActualValue"])
                for difference in drift["PropertyDifferences"]]

    def test_nothing_has_changed(self):
        self.assertEqual(self.drifts(), {})
        checked = self.cloudformation.describe_stack_resource_drifts(StackName="pool")["StackResourceDrifts"]
        # AWS lists only what it can check.
        self.assertEqual({drift["LogicalResourceId"] for drift in checked},
                         {"Vpc", "Subnet", "Group", "Closed", "Nodes", "Disk", "Balancer"})

    def test_properties(self):
        group, closed = self.physical_id("Group"), self.physical_id("Closed")
        everybody = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        for group_id in (group, closed):
            self.ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[everybody])
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=self.physical_id("Nodes"), DesiredCapacity=3)
        self.elbv2.modify_load_balancer_attributes(LoadBalancerArn=self.physical_id("Balancer"), Attributes=[
            {"Key": "deletion_protection.enabled", "Value": "true"}])
        self.ec2.create_tags(Resources=[self.physical_id("Vpc")], Tags=[{"Key": "owner", "Value": "me"}])
        found = self.drifts()
        # Nothing is expected of a group whose rules no template mentions.
        self.assertEqual(set(found), {"Group", "Nodes", "Balancer", "Vpc"})
        [(path, kind, expected, actual)] = self.differences(found["Group"])
        self.assertEqual((path, kind, expected), ("/SecurityGroupIngress/1", "ADD", "null"))
        self.assertEqual(json.loads(actual), {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"})
        self.assertEqual(self.differences(found["Nodes"]), [("/DesiredCapacity", "NOT_EQUAL", "1", "3")])
        self.assertEqual(self.differences(found["Balancer"]), [("/LoadBalancerAttributes/0/Value", "NOT_EQUAL", "false", "true")])
        self.assertEqual([difference[:2] for difference in self.differences(found["Vpc"])], [("/Tags/1", "ADD")])

    def test_what_is_gone(self):
        self.ec2.delete_volume(VolumeId=self.physical_id("Disk"))
        self.ec2.revoke_security_group_ingress(GroupId=self.physical_id("Group"), IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}])
        found = self.drifts()
        self.assertEqual({name: drift["StackResourceDriftStatus"] for name, drift in found.items()},
                         {"Disk": "DELETED", "Group": "MODIFIED"})
        self.assertEqual([difference[:2] for difference in self.differences(found["Group"])], [("/SecurityGroupIngress/0", "REMOVE")])

    def test_one_detection_at_a_time(self):
        self.aws.control(drift_delay=600)
        detection_id = self.begin()
        self.assertEqual(self.detection(detection_id)["DetectionStatus"], "DETECTION_IN_PROGRESS")
        self.refused("Drift detection is already in progress for stack", self.begin)
        self.aws.control()
        self.assertEqual(self.detection(detection_id)["DetectionStatus"], "DETECTION_COMPLETE")
        self.begin()

    def test_failure(self):
        self.aws.control(fail_drift={"Disk": "Internal Failure"})
        found = self.drifts()
        self.assertEqual([(name, drift["StackResourceDriftStatus"], drift["DriftStatusReason"]) for name, drift in found.items()],
                         [("Disk", "UNKNOWN", "Internal Failure")])
        detection = self.detection(self.begin())
        self.assertEqual(detection["DetectionStatus"], "DETECTION_FAILED")
        self.assertEqual(json.loads(detection["DetectionStatusReason"]), {
            "Summary": "Failed to detect drift on resources [Disk]",
            "Failures": [{"Resource": "Disk", "FailureReason": "Internal Failure"}]})
        self.aws.control()
        self.assertEqual(self.drifts(), {})

    def test_wrong_status(self):
        self.aws.control(force_status={"pool": "UPDATE_IN_PROGRESS"})
        self.refused("is in UPDATE_IN_PROGRESS", self.begin)


if __name__ == "__main__":
    unittest.main()
