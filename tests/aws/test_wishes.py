"""Things that the stand-in for AWS makes under ids, and offers under names, that a cluster.yaml has for them already."""

import unittest

from ministack import MiniStack

ACCOUNT, REGION = "200000000001", "us-east-1"


class Wishes(unittest.TestCase):
    def setUp(self):
        self.aws = MiniStack()
        self.addCleanup(self.aws.close)

    def client(self, service):
        return self.aws.client(service, ACCOUNT, REGION)

    def test_ids(self):
        wanted = ["vpc-1", "subnet-1", "subnet-2", "fs-1", "ZONE1", "cr-1"]
        self.aws.control(ids=wanted)
        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"]
        subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.40.{number}.0/24")["Subnet"]["SubnetId"] for number in range(2)]
        files = self.client("efs").create_file_system(CreationToken="mine")["FileSystemId"]
        zone = self.client("route53").create_hosted_zone(Name="example.com", CallerReference="mine")["HostedZone"]["Id"]
        reservation = ec2.create_capacity_reservation(
            InstanceType="g5.xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=2)
        reservation = reservation["CapacityReservation"]["CapacityReservationId"]
        self.assertEqual([vpc, *subnets, files, zone.removeprefix("/hostedzone/"), reservation], wanted)
        other = ec2.create_vpc(CidrBlock="10.41.0.0/16")["Vpc"]["VpcId"]
        self.assertRegex(other, "^vpc-[0-9a-f]{17}$")

    def test_zones_and_machines(self):
        self.aws.control(zones=["us-east-1f", "eu-west-1f"], machines={"g6.xlarge": [4, 16, 1]})
        ec2 = self.client("ec2")
        zones = [zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]]
        self.assertEqual(zones, ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1f"])
        machine = ec2.describe_instance_types(InstanceTypes=["g6.xlarge"])["InstanceTypes"][0]
        self.assertEqual((machine["VCpuInfo"]["DefaultVCpus"], machine["GpuInfo"]["Gpus"][0]["Count"]), (4, 1))
        offers = ec2.describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["g6.xlarge"]}])
        self.assertEqual([offer["Location"] for offer in offers["InstanceTypeOfferings"]], zones)


if __name__ == "__main__":
    unittest.main()
