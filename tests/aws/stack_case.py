"""Small templates, and a test case that makes stacks of them."""

import itertools
import json

from account_case import TAGS, AccountCase


def made_network():
    return {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {
            "VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24", "AvailabilityZone": "us-west-2a"}},
        "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"VpcId": {"Ref": "Vpc"}, "GroupDescription": "nodes"}},
    }


def pool(machine="m5.large", count=1, maximum=4, signals=True, rolling=True):
    nodes = {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "UpdatePolicy": {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}},
        "Properties": {
            "VPCZoneIdentifier": [{"Ref": "Subnet"}], "MinSize": "0", "MaxSize": str(maximum), "DesiredCapacity": str(count),
            "LaunchTemplate": {"LaunchTemplateId": {"Ref": "Template"},
                               "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}},
        },
    }
    if signals:
        nodes["CreationPolicy"] = {"ResourceSignal": {"Count": count, "Timeout": "PT30M"}}
    if rolling:
        nodes["UpdatePolicy"]["AutoScalingRollingUpdate"] = {
            "MinInstancesInService": 0, "MaxBatchSize": 1, "WaitOnResourceSignals": True, "PauseTime": "PT30M"}
    template = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": {
        "ImageId": "ami-00000000000000001", "InstanceType": machine,
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [{"Ref": "Group"}]}]}}}
    return {"Resources": made_network() | {"Template": template, "Nodes": nodes}}


def gateways(*names, **properties):
    """A template that is soon made."""
    return {"Resources": {name: {"Type": "AWS::EC2::InternetGateway", "Properties": properties} for name in names}}


class StackCase(AccountCase):
    """Creates, changes and deletes stacks of a template."""

    names = itertools.count(1)

    def ask(self, template, kind="UPDATE", stack="pool", **more):
        made = self.cloudformation.create_change_set(**{
            "StackName": stack, "ChangeSetName": f"change-{next(self.names)}", "ChangeSetType": kind,
            "TemplateBody": json.dumps(template), "Tags": TAGS} | more)
        return self.cloudformation.describe_change_set(ChangeSetName=made["Id"])

    def start(self, template, kind="UPDATE", stack="pool", **more):
        change_set = self.ask(template, kind, stack)
        self.assertEqual(change_set["Status"], "CREATE_COMPLETE", change_set.get("StatusReason"))
        self.cloudformation.execute_change_set(ChangeSetName=change_set["ChangeSetId"], **more)
        return change_set["StackId"]

    def status(self, stack="pool"):
        return self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]

    def end(self, stack="pool"):
        def status_at_the_end():
            status = self.status(stack)
            return None if status.endswith("_IN_PROGRESS") else status

        return self.soon(status_at_the_end)

    def run_stack(self, template, kind="UPDATE", stack="pool", **more):
        return self.end(self.start(template, kind, stack, **more))

    def delete(self, stack="pool"):
        stack_id = self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
        self.cloudformation.delete_stack(StackName=stack)
        return self.end(stack_id)

    def events(self, stack="pool"):
        events = self.cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
        return [(event["LogicalResourceId"], event["ResourceStatus"], event.get("ResourceStatusReason", "")) for event in events]

    def group(self):
        return self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"][0]

    def activities(self, status):
        found = [activity for group in self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
                 for activity in self.autoscaling.describe_scaling_activities(
                     AutoScalingGroupName=group["AutoScalingGroupName"])["Activities"]]
        return [activity for activity in found if activity["StatusCode"] == status]

    def machines(self):
        live = [{"Name": "instance-state-name", "Values": ["running"]}]
        return {machine["InstanceId"]: machine for reservation in self.ec2.describe_instances(Filters=live)["Reservations"]
                for machine in reservation["Instances"]}
