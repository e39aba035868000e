"""What the stand-in refuses to delete while something else holds it, as AWS does: each refusal, and the order that works.

So a destroy in a wrong order fails its tests.
"""

import json
import time
import unittest

from account_case import TAGS, NetworkCase, setUpModule  # noqa: F401


class Deletions(NetworkCase):
    """Each test in an account of its own, with a VPC, a subnet, a security group and an internet gateway."""

    def setUp(self):
        super().setUp()
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)

    def subnet_is_held(self):
        self.refused("DependencyViolation", self.ec2.delete_subnet, SubnetId=self.subnet)

    def group_is_held(self):
        self.refused("DependencyViolation.* has a dependent object", self.ec2.delete_security_group, GroupId=self.group)

    def gateway_is_held(self):
        self.refused("DependencyViolation.*mapped public address", self.ec2.detach_internet_gateway,
                     InternetGatewayId=self.gateway, VpcId=self.vpc)

    def all_go(self):
        """What setUp made, in the order that AWS allows."""
        self.ec2.delete_subnet(SubnetId=self.subnet)
        self.ec2.delete_security_group(GroupId=self.group)
        self.refused("DependencyViolation", self.ec2.delete_vpc, VpcId=self.vpc)
        self.refused("DependencyViolation", self.ec2.delete_internet_gateway, InternetGatewayId=self.gateway)
        self.ec2.detach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.ec2.delete_internet_gateway(InternetGatewayId=self.gateway)
        self.ec2.delete_vpc(VpcId=self.vpc)

    def descriptions(self):
        return [interface["Description"] for interface in self.ec2.describe_network_interfaces()["NetworkInterfaces"]]

    def test_interface(self):
        interface = self.ec2.create_network_interface(SubnetId=self.subnet, Groups=[self.group], Description="theirs")
        self.subnet_is_held()
        self.group_is_held()
        self.ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterface"]["NetworkInterfaceId"])
        self.all_go()

    def test_mount_target(self):
        system = self.efs.create_file_system(CreationToken="one")["FileSystemId"]
        target = self.efs.create_mount_target(FileSystemId=system, SubnetId=self.subnet, SecurityGroups=[self.group])
        target = target["MountTargetId"]
        self.assertEqual(self.descriptions(), [f"EFS mount target for {system} ({target})"])
        self.subnet_is_held()
        self.group_is_held()
        self.refused("FileSystemInUse", self.efs.delete_file_system, FileSystemId=system)
        interface = self.ec2.describe_network_interfaces()["NetworkInterfaces"][0]["NetworkInterfaceId"]
        self.refused("currently in use", self.ec2.delete_network_interface, NetworkInterfaceId=interface)
        self.efs.delete_mount_target(MountTargetId=target)
        self.efs.delete_file_system(FileSystemId=system)
        self.all_go()

    def test_load_balancer(self):
        balancer = self.elbv2.create_load_balancer(Name="a", Type="network", Subnets=[self.subnet], SecurityGroups=[self.group])
        arn = balancer["LoadBalancers"][0]["LoadBalancerArn"]
        self.assertEqual(self.descriptions(), [f"ELB {arn.split(':loadbalancer/')[1]}"])
        targets = self.elbv2.create_target_group(Name="a", Protocol="TCP", Port=80, VpcId=self.vpc)["TargetGroups"][0]
        targets = targets["TargetGroupArn"]
        self.elbv2.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=80,
                                   DefaultActions=[{"Type": "forward", "TargetGroupArn": targets}])
        self.subnet_is_held()
        self.group_is_held()
        self.gateway_is_held()
        self.refused("ResourceInUse", self.elbv2.delete_target_group, TargetGroupArn=targets)
        self.elbv2.delete_load_balancer(LoadBalancerArn=arn)
        self.elbv2.delete_target_group(TargetGroupArn=targets)
        self.all_go()

    def test_classic_load_balancer(self):
        listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30000}
        self.elb.create_load_balancer(LoadBalancerName="a1", Subnets=[self.subnet], SecurityGroups=[self.group], Tags=TAGS,
                                      Listeners=[listener])
        described = self.elb.describe_load_balancers(LoadBalancerNames=["a1"])["LoadBalancerDescriptions"]
        self.assertEqual([(balancer["VPCId"], balancer["Subnets"], balancer["SecurityGroups"]) for balancer in described],
                         [(self.vpc, [self.subnet], [self.group])])
        self.assertEqual(self.elb.describe_tags(LoadBalancerNames=["a1"])["TagDescriptions"],
                         [{"LoadBalancerName": "a1", "Tags": TAGS}])
        # Neither generation sees the other.
        self.assertEqual(self.elbv2.describe_load_balancers()["LoadBalancers"], [])
        self.assertEqual(self.descriptions(), ["ELB a1"])
        self.subnet_is_held()
        self.group_is_held()
        self.gateway_is_held()
        self.elb.delete_load_balancer(LoadBalancerName="a1")
        # Once more is no error, but whoever asks for it hears that it is gone.
        self.elb.delete_load_balancer(LoadBalancerName="a1")
        self.refused("LoadBalancerNotFound", self.elb.describe_load_balancers, LoadBalancerNames=["a1"])
        self.refused("LoadBalancerNotFound", self.elb.describe_tags, LoadBalancerNames=["a1"])
        self.all_go()

    def test_rule_of_another_group(self):
        for authorize in (self.ec2.authorize_security_group_ingress, self.ec2.authorize_security_group_egress):
            other = self.ec2.create_security_group(VpcId=self.vpc, GroupName="two", Description="two")["GroupId"]
            authorize(GroupId=other, IpPermissions=[
                {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "UserIdGroupPairs": [{"GroupId": self.group}]}])
            self.group_is_held()
            self.ec2.delete_security_group(GroupId=other)
        self.all_go()

    def test_address(self):
        interface = self.ec2.create_network_interface(SubnetId=self.subnet)["NetworkInterface"]["NetworkInterfaceId"]
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        association = self.ec2.associate_address(AllocationId=address, NetworkInterfaceId=interface)["AssociationId"]
        self.gateway_is_held()
        self.refused("InvalidIPAddress.InUse", self.ec2.release_address, AllocationId=address)
        self.ec2.disassociate_address(AssociationId=association)
        self.ec2.release_address(AllocationId=address)
        self.ec2.delete_network_interface(NetworkInterfaceId=interface)
        self.all_go()

    def test_translating_gateway(self):
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = self.ec2.create_nat_gateway(SubnetId=self.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
        self.assertEqual(self.descriptions(), [f"Interface for NAT Gateway {nat}"])
        self.subnet_is_held()
        self.gateway_is_held()
        self.refused("InvalidIPAddress.InUse", self.ec2.release_address, AllocationId=address)
        self.ec2.delete_nat_gateway(NatGatewayId=nat)
        self.ec2.release_address(AllocationId=address)
        self.all_go()

    def test_route_table(self):
        table = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        association = self.ec2.associate_route_table(RouteTableId=table, SubnetId=self.subnet)["AssociationId"]
        self.refused("DependencyViolation", self.ec2.delete_route_table, RouteTableId=table)
        self.ec2.disassociate_route_table(AssociationId=association)
        self.ec2.delete_route_table(RouteTableId=table)
        self.all_go()

    def test_endpoint(self):
        endpoint = self.ec2.create_vpc_endpoint(VpcId=self.vpc, ServiceName="com.amazonaws.us-west-2.s3")["VpcEndpoint"]
        self.ec2.delete_subnet(SubnetId=self.subnet)
        self.ec2.delete_security_group(GroupId=self.group)
        self.ec2.detach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.refused("DependencyViolation", self.ec2.delete_vpc, VpcId=self.vpc)
        self.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
        self.ec2.delete_vpc(VpcId=self.vpc)

    def test_zone(self):
        zone = self.route53.create_hosted_zone(Name="example.com", CallerReference="one")["HostedZone"]["Id"]
        record = {"Name": "a.example.com", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.9"}]}

        def change(action):
            self.route53.change_resource_record_sets(
                HostedZoneId=zone, ChangeBatch={"Changes": [{"Action": action, "ResourceRecordSet": record}]})

        change("CREATE")
        self.refused("HostedZoneNotEmpty", self.route53.delete_hosted_zone, Id=zone)
        change("DELETE")
        self.route53.delete_hosted_zone(Id=zone)

    def run_stack(self, resources):
        self.cloudformation.create_stack(StackName="one", TemplateBody=json.dumps({"Resources": resources}), Tags=TAGS,
                                         Capabilities=["CAPABILITY_IAM"])
        return self.end("one")

    def delete_stack(self):
        stack = self.cloudformation.describe_stacks(StackName="one")["Stacks"][0]["StackId"]
        self.cloudformation.delete_stack(StackName=stack)
        return self.end(stack)

    def end(self, stack):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            status = self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.02)
        raise AssertionError(f"{stack} is still {status}")

    def reasons(self):
        events = self.cloudformation.describe_stack_events(StackName="one")["StackEvents"]
        return " ".join(event.get("ResourceStatusReason", "") for event in events if event["ResourceStatus"] == "DELETE_FAILED")

    def test_stacks_are_refused_the_same(self):
        status = self.run_stack({
            "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}},
            "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.1.0.0/24"}},
            "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"VpcId": {"Ref": "Vpc"}, "GroupDescription": "x"}},
        })
        self.assertEqual(status, "CREATE_COMPLETE")
        ids = {resource["LogicalResourceId"]: resource["PhysicalResourceId"]
               for resource in self.cloudformation.describe_stack_resources(StackName="one")["StackResources"]}
        other = self.ec2.create_security_group(VpcId=ids["Vpc"], GroupName="other", Description="other")["GroupId"]
        self.ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "UserIdGroupPairs": [{"GroupId": ids["Group"]}]}])
        interface = self.ec2.create_network_interface(SubnetId=ids["Subnet"])["NetworkInterface"]["NetworkInterfaceId"]
        self.assertEqual(self.delete_stack(), "DELETE_FAILED")
        for name in ("Subnet", "Group"):
            self.assertIn(ids[name], self.reasons())
        self.ec2.delete_network_interface(NetworkInterfaceId=interface)
        self.ec2.revoke_security_group_ingress(GroupId=other, IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "UserIdGroupPairs": [{"GroupId": ids["Group"]}]}])
        # Only the VPC is left, and a foreign security group in it.
        self.assertEqual(self.delete_stack(), "DELETE_FAILED")
        self.assertIn(ids["Vpc"], self.reasons())
        self.ec2.delete_security_group(GroupId=other)
        self.assertEqual(self.delete_stack(), "DELETE_COMPLETE")

    def test_volume(self):
        self.run_stack({"Disk": {
            "Type": "AWS::EC2::Volume", "DeletionPolicy": "Snapshot",
            "Properties": {"AvailabilityZone": "us-west-2a", "Size": 8}}})
        disk = self.ec2.describe_volumes()["Volumes"][0]["VolumeId"]
        self.ec2.attach_volume(VolumeId=disk, InstanceId=self.machine(), Device="/dev/xvdb")
        self.refused("VolumeInUse", self.ec2.delete_volume, VolumeId=disk)
        self.assertEqual(self.delete_stack(), "DELETE_FAILED")
        self.assertIn("VolumeInUse", self.reasons())
        self.ec2.detach_volume(VolumeId=disk)
        before = {snapshot["SnapshotId"] for snapshot in self.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
        self.assertEqual(self.delete_stack(), "DELETE_COMPLETE")
        made = [snapshot for snapshot in self.ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
                if snapshot["SnapshotId"] not in before]
        self.assertEqual([snapshot["VolumeId"] for snapshot in made], [disk])
        self.assertIn(TAGS[0], made[0]["Tags"])

    def machine(self):
        return self.ec2.run_instances(ImageId="ami-00000000000000001", InstanceType="m5.large", MinCount=1, MaxCount=1,
                                      SubnetId=self.subnet)["Instances"][0]["InstanceId"]

    def test_role_in_a_profile(self):
        trust = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
        self.run_stack({"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}})
        role = self.iam.list_roles()["Roles"][0]["RoleName"]
        self.iam.create_instance_profile(InstanceProfileName="theirs")
        self.iam.add_role_to_instance_profile(InstanceProfileName="theirs", RoleName=role)
        self.assertEqual(self.delete_stack(), "DELETE_FAILED")
        self.assertIn("DeleteConflict", self.reasons())
        self.iam.remove_role_from_instance_profile(InstanceProfileName="theirs", RoleName=role)
        self.assertEqual(self.delete_stack(), "DELETE_COMPLETE")

    def test_tags_are_listed_for_a_while(self):
        def listed():
            found = self.resourcegroupstaggingapi.get_resources(TagFilters=[{"Key": "infra:cluster", "Values": ["mine"]}])
            return {entry["ResourceARN"].split(":", 5)[5].partition("/")[0] for entry in found["ResourceTagMappingList"]}

        self.assertEqual(listed(), set())
        machine = self.machine()
        self.ec2.create_tags(Resources=[machine, self.vpc], Tags=TAGS)
        self.elb.create_load_balancer(LoadBalancerName="a1", Subnets=[self.subnet], Tags=TAGS, Listeners=[
            {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30000}])
        self.assertEqual(listed(), {"instance", "loadbalancer", "vpc"})
        self.ec2.terminate_instances(InstanceIds=[machine])
        self.elb.delete_load_balancer(LoadBalancerName="a1")
        self.assertEqual(listed(), {"instance", "loadbalancer", "vpc"})
        self.ec2.delete_tags(Resources=[self.vpc], Tags=TAGS)
        self.assertEqual(listed(), {"instance", "loadbalancer"})


if __name__ == "__main__":
    unittest.main()
