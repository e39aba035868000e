"""What the stand-in for AWS answers about an account: machine types, images, quotas, keys, names and buckets."""

import base64
import json
import pathlib
import re
import unittest

import botocore.exceptions

from account_case import REGION, TAGS, AccountCase, days_since, new_account, setUpModule  # noqa: F401

CLUSTERS = pathlib.Path(__file__).parents[1] / "clusters"
FLATCAR = "075585003325"


class Machines(AccountCase):
    """Machine types."""

    def offered(self, machine):
        answer = self.ec2.describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [machine]}])
        return {offering["Location"] for offering in answer["InstanceTypeOfferings"]}

    def test_offered_in_zones(self):
        zones = {zone["ZoneName"] for zone in self.ec2.describe_availability_zones()["AvailabilityZones"]}
        self.assertEqual(zones, {"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"})
        configurations = " ".join(path.read_text() for path in CLUSTERS.glob("*/cluster.yaml"))
        for machine in {"t3.medium", *re.findall(r"\b[a-z]\w+\.\d*x?large\b", configurations)}:
            self.assertEqual(self.offered(machine), zones, machine)
        self.aws.control(not_offered=[["g5.xlarge", "us-west-2a"]])
        self.assertEqual(self.offered("g5.xlarge"), zones - {"us-west-2a"})
        self.assertEqual(self.offered("zz9.huge"), set())
        of_one_zone = self.ec2.describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "location", "Values": ["us-west-2a"]}])["InstanceTypeOfferings"]
        self.assertNotIn("g5.xlarge", [offering["InstanceType"] for offering in of_one_zone])

    def test_zone_that_is_not_there(self):
        self.refused("InvalidParameterValue", self.ec2.describe_availability_zones, ZoneNames=["us-west-2z"])

    def test_sizes(self):
        types = self.ec2.describe_instance_types(InstanceTypes=["t3.medium", "g5.12xlarge", "m6g.large"])["InstanceTypes"]
        facts = {kind["InstanceType"]: (kind["VCpuInfo"]["DefaultVCpus"], kind["MemoryInfo"]["SizeInMiB"],
                                        kind["ProcessorInfo"]["SupportedArchitectures"],
                                        sum(gpu["Count"] for gpu in kind.get("GpuInfo", {"Gpus": []})["Gpus"])) for kind in types}
        self.assertEqual(facts, {"t3.medium": (2, 4096, ["x86_64"], 0), "g5.12xlarge": (48, 196608, ["x86_64"], 4),
                                 "m6g.large": (2, 8192, ["arm64"], 0)})
        self.refused(r"InvalidInstanceType.*\[zz9.huge\]", self.ec2.describe_instance_types, InstanceTypes=["zz9.huge", "m5.large"])


class Images(AccountCase):
    def find(self, **filters):
        named = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
        return self.ec2.describe_images(Owners=[FLATCAR], Filters=named)["Images"]

    def test_channel(self):
        found = self.find(name="Flatcar-stable-*-hvm", architecture="x86_64", virtualization_type="hvm", state="available")
        names = [image["Name"] for image in sorted(found, key=lambda image: image["CreationDate"])]
        self.assertEqual(names, ["Flatcar-stable-4230.2.3-hvm", "Flatcar-stable-4459.2.1-hvm"])
        for image in found:
            self.assertEqual((image["OwnerId"], image["RootDeviceName"], image["RootDeviceType"], image["State"], image["Public"]),
                             (FLATCAR, "/dev/xvda", "ebs", "available", True))
            self.assertGreater(image["DeprecationTime"], image["CreationDate"])
            self.assertLess(days_since(image["CreationDate"]), 180)
        self.assertEqual(len(self.find(name="Flatcar-beta-*-hvm")), 1)
        self.assertEqual(self.find(state="pending"), [])
        self.assertEqual(self.ec2.describe_images(Owners=["self"])["Images"], [])

    def test_ages(self):
        self.aws.control(ages={"Flatcar-stable-4459.2.1-hvm": 24 * 400, "ours": 24 * 3})
        image = self.find(name="Flatcar-stable-4459.2.1-hvm")[0]
        self.assertEqual((days_since(image["CreationDate"]), days_since(image["DeprecationTime"])), (400, 400 - 730))
        ours = self.ec2.register_image(Name="ours", Architecture="x86_64", VirtualizationType="hvm", RootDeviceName="/dev/xvda")
        image = self.ec2.describe_images(ImageIds=[ours["ImageId"]])["Images"][0]
        self.assertEqual(days_since(image["CreationDate"]), 3)

    def test_by_id(self):
        image = self.find(name="Flatcar-stable-4459.2.1-hvm")[0]["ImageId"]
        other = self.aws.client("ec2", new_account(), "eu-west-1")
        self.assertEqual(other.describe_images(ImageIds=[image])["Images"][0]["Name"], "Flatcar-stable-4459.2.1-hvm")
        self.refused(r"InvalidAMIID.NotFound.*The image id '\[ami-00000000000000000\]' does not exist", self.ec2.describe_images,
                     ImageIds=["ami-00000000000000000"])
        self.refused("InvalidAMIID.Malformed", self.ec2.describe_images, ImageIds=["flatcar"])
        self.aws.control(gone_images=[image])
        self.refused("InvalidAMIID.NotFound", self.ec2.describe_images, ImageIds=[image])
        self.assertEqual(self.find(name="Flatcar-stable-4459.2.1-hvm"), [])

    def test_as_parameter(self):
        template = {"Parameters": {"Image": {"Type": "AWS::EC2::Image::Id"}},
                    "Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}}

        def create(image):
            return self.cloudformation.create_stack(StackName="s", TemplateBody=json.dumps(template),
                                                    Parameters=[{"ParameterKey": "Image", "ParameterValue": image}])

        self.refused("does not exist", create, image="ami-00000000000000000")
        create(self.find(name="Flatcar-stable-4459.2.1-hvm")[0]["ImageId"])


class Account(AccountCase):
    """What an account has before anyone creates anything."""

    def test_disks(self):
        self.assertFalse(self.ec2.get_ebs_encryption_by_default()["EbsEncryptionByDefault"])
        self.assertEqual(self.ec2.get_ebs_default_kms_key_id()["KmsKeyId"], "alias/aws/ebs")
        self.ec2.enable_ebs_encryption_by_default()
        self.ec2.modify_ebs_default_kms_key_id(KmsKeyId="arn:key")
        self.assertTrue(self.ec2.get_ebs_encryption_by_default()["EbsEncryptionByDefault"])
        self.assertEqual(self.ec2.get_ebs_default_kms_key_id()["KmsKeyId"], "arn:key")
        self.assertTrue(self.ec2.reset_ebs_default_kms_key_id()["KmsKeyId"].endswith(":alias/aws/ebs"))
        self.assertEqual(self.ec2.get_ebs_default_kms_key_id()["KmsKeyId"], "alias/aws/ebs")

    def test_network(self):
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
        options = self.ec2.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])["DhcpOptions"][0]["DhcpConfigurations"]
        self.assertEqual({option["Key"]: [value["Value"] for value in option["Values"]] for option in options},
                         {"domain-name": ["us-west-2.compute.internal"], "domain-name-servers": ["AmazonProvidedDNS"]})
        self.refused("InvalidDhcpOptionID.NotFound", self.ec2.describe_dhcp_options, DhcpOptionsIds=["dopt-0000000a"])
        for attribute, value in (("enableDnsSupport", True), ("enableDnsHostnames", False)):
            answer = self.ec2.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute=attribute)
            self.assertEqual(answer[attribute[0].upper() + attribute[1:]]["Value"], value)
        subnet = self.ec2.create_subnet(VpcId=vpc["VpcId"], CidrBlock="10.0.0.0/24", AvailabilityZone="us-west-2d")["Subnet"]
        of_vpc = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
        by_id = [{"Name": "subnet-id", "Values": [subnet["SubnetId"], "subnet-00000000000000000"]}]
        for question in (of_vpc, by_id):
            found = self.ec2.describe_subnets(Filters=question)["Subnets"]
            self.assertEqual([one["SubnetId"] for one in found], [subnet["SubnetId"]])
        group = self.ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc["VpcId"])["GroupId"]
        by_id = [{"Name": "group-id", "Values": [group, "sg-00000000000000000"]}]
        found = self.ec2.describe_security_groups(Filters=by_id)["SecurityGroups"]
        self.assertEqual([one["GroupId"] for one in found], [group])
        self.assertEqual(len(self.ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]), 1)
        self.refused("InvalidRouteTableID.NotFound", self.ec2.describe_route_tables, RouteTableIds=["rtb-00000000000000000"])
        self.refused("InvalidVpcID.NotFound", self.ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"])
        self.refused("InvalidSubnetID.NotFound", self.ec2.describe_subnets, SubnetIds=["subnet-00000000000000000"])

    def test_addresses(self):
        tags = [{"ResourceType": "elastic-ip", "Tags": TAGS}]
        tagged, _ = (self.ec2.allocate_address(Domain="vpc", **more)["AllocationId"] for more in ({"TagSpecifications": tags}, {}))
        of_cluster = [{"Name": "tag:infra:cluster", "Values": ["mine"]}]
        found = self.ec2.describe_addresses(Filters=of_cluster)["Addresses"]
        self.assertEqual([address["AllocationId"] for address in found], [tagged])
        self.assertEqual(len(self.ec2.describe_addresses()["Addresses"]), 2)
        of_other = [{"Name": "tag:infra:cluster", "Values": ["other"]}]
        self.assertEqual(self.ec2.describe_addresses(Filters=of_other)["Addresses"], [])
        self.refused("InvalidAllocationID.NotFound", self.ec2.describe_addresses, AllocationIds=["eipalloc-00000000000000000"])

    def test_reservations(self):
        made = self.ec2.create_capacity_reservation(InstanceType="p3.2xlarge", InstancePlatform="Linux/UNIX",
                                                    AvailabilityZone="us-west-2a", InstanceCount=3)["CapacityReservation"]
        found = self.ec2.describe_capacity_reservations(
            CapacityReservationIds=[made["CapacityReservationId"]])["CapacityReservations"]
        self.assertEqual([(one["State"], one["InstanceType"], one["AvailabilityZone"], one["TotalInstanceCount"],
                           one["AvailableInstanceCount"]) for one in found], [("active", "p3.2xlarge", "us-west-2a", 3, 3)])
        self.refused("InvalidCapacityReservationId.NotFound", self.ec2.describe_capacity_reservations,
                     CapacityReservationIds=["cr-00000000000000000"])

    def test_nothing_yet(self):
        for answer in (self.ec2.describe_addresses()["Addresses"], self.ec2.describe_volumes()["Volumes"],
                       self.ec2.describe_instances()["Reservations"],
                       self.ec2.describe_capacity_reservations()["CapacityReservations"]):
            self.assertEqual(answer, [])
        self.refused("InvalidKeyPair.NotFound", self.ec2.describe_key_pairs, KeyNames=["team-key"])
        self.ec2.import_key_pair(KeyName="team-key", PublicKeyMaterial=b"ssh-ed25519 AAAA")
        self.assertEqual(len(self.ec2.describe_key_pairs(KeyNames=["team-key"])["KeyPairs"]), 1)

    def test_quotas(self):
        def value(code, service="ec2"):
            return self.service_quotas.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]

        for code in ("L-1216C47A", "L-DB2E81BA", "L-417A185B", "L-34B43A08", "L-3819A6DF", "L-7212CCBC"):
            self.assertEqual(value(code), 1152)
        self.assertEqual(value("L-0263D0A3"), 50)
        self.assertEqual(value("L-F678F1CE", "vpc"), 1152)
        self.aws.control(quotas={"L-DB2E81BA": 0})
        self.assertEqual((value("L-DB2E81BA"), value("L-1216C47A")), (0, 1152))
        default = self.service_quotas.get_aws_default_service_quota(ServiceCode="elasticfilesystem", QuotaCode="L-848C634D")
        self.assertEqual(default["Quota"]["Value"], 1152)
        for service, code in (("ec2", "L-00000000"), ("nothing", "L-DB2E81BA")):
            with self.assertRaises(self.service_quotas.exceptions.NoSuchResourceException):
                value(code, service)

    def test_roles(self):
        spot = "AWSServiceRoleForEC2Spot"
        for name in ("AWSServiceRoleForAutoScaling", spot, "AWSServiceRoleForElasticLoadBalancing",
                     "AWSServiceRoleForAmazonElasticFileSystem"):
            role = self.iam.get_role(RoleName=name)["Role"]
            self.assertEqual(role["Arn"], f"arn:aws:iam::{self.account}:role{role['Path']}{name}")
        self.assertEqual(self.iam.list_roles()["Roles"], [])
        self.aws.control(missing_roles=[spot])
        self.refused("NoSuchEntity.*cannot be found", self.iam.get_role, RoleName=spot)
        self.iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")
        self.iam.get_role(RoleName=spot)
        self.refused("InvalidInput.*has been taken", self.iam.create_service_linked_role, AWSServiceName="spot.amazonaws.com")

    def test_keys(self):
        configuration = (CLUSTERS / "minimal/cluster.yaml").read_text()
        arn = re.search(r"arn:aws:kms:\S+", configuration).group()
        key = self.kms.describe_key(KeyId=arn)["KeyMetadata"]
        self.assertEqual((key["Arn"], key["KeyState"], key["Enabled"], key["KeySpec"], key["KeyManager"]),
                         (arn, "Enabled", True, "SYMMETRIC_DEFAULT", "CUSTOMER"))
        self.aws.control(keys={key["KeyId"]: "Disabled", "other": "Enabled"})
        self.assertEqual(self.kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"], "Disabled")
        other = self.kms.describe_key(KeyId="other")["KeyMetadata"]
        self.assertEqual(other["Arn"], f"arn:aws:kms:{REGION}:{self.account}:key/other")
        self.aws.control()
        self.assertTrue(self.kms.describe_key(KeyId=arn)["KeyMetadata"]["Enabled"])
        for unknown in (arn.replace("1234abcd", "00000000"), arn.replace(REGION, "eu-west-3")):
            with self.assertRaises(self.kms.exceptions.NotFoundException):
                self.kms.describe_key(KeyId=unknown)
        grant = self.kms.create_grant(KeyId=arn, GranteePrincipal=f"arn:aws:iam::{self.account}:role/r", Operations=["Decrypt"])
        self.assertEqual(len(self.kms.list_grants(KeyId=arn)["Grants"]), 1)
        self.kms.retire_grant(KeyId=arn, GrantId=grant["GrantId"])
        self.assertEqual(self.kms.list_grants(KeyId=arn)["Grants"], [])


class Names(AccountCase):
    """Route 53."""

    def change(self, action, record):
        batch = {"Changes": [{"Action": action, "ResourceRecordSet": record}]}
        return self.route53.change_resource_record_sets(HostedZoneId=self.zone, ChangeBatch=batch)["ChangeInfo"]["Id"]

    def setUp(self):
        super().setUp()
        self.zone = self.route53.create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"]

    def test_changes_take_time(self):
        record = {"Name": "a.example.com", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}

        def status():
            return self.route53.get_change(Id=change)["ChangeInfo"]["Status"]

        self.aws.control(dns_pending=60)
        change = self.change("CREATE", record)
        self.assertEqual([status(), status(), status()], ["PENDING"] * 3)
        self.aws.control(dns_pending=0)
        self.assertEqual(status(), "INSYNC")
        self.aws.control()
        change = self.change("DELETE", record)
        self.soon(lambda: status() == "INSYNC")

    def test_private_and_public_zone_of_one_name(self):
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.route53.create_hosted_zone(Name="example.com", CallerReference="2", VPC={"VPCRegion": REGION, "VPCId": vpc})
        for zones in (self.route53.list_hosted_zones(), self.route53.list_hosted_zones_by_name(DNSName="example.com")):
            self.assertEqual({(zone["Name"], zone["Config"]["PrivateZone"]) for zone in zones["HostedZones"]},
                             {("example.com.", False), ("example.com.", True)})

    def test_alias(self):
        record = {"Name": "k8s.example.com.", "Type": "A", "AliasTarget": {
            "HostedZoneId": "Z18D5FSROUN65G", "DNSName": "api-1.elb.us-west-2.amazonaws.com.", "EvaluateTargetHealth": False}}
        self.change("UPSERT", record)
        self.refused("InvalidChangeBatch", self.change, action="CREATE", record=record)
        self.assertIn(record, self.route53.list_resource_record_sets(HostedZoneId=self.zone)["ResourceRecordSets"])
        self.change("DELETE", record)
        self.change("CREATE", record)


class Buckets(AccountCase):
    def setUp(self):
        super().setUp()
        self.bucket = f"bucket-{self.account}"
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION})

    def test_of_whom(self):
        self.refused("404", self.s3.head_bucket, Bucket="of-nobody")
        self.refused("403", self.aws.client("s3", new_account(), REGION).head_bucket, Bucket=self.bucket)
        self.assertEqual(self.s3.get_bucket_location(Bucket=self.bucket)["LocationConstraint"], REGION)

    def test_expected_owner(self):
        self.s3.head_bucket(Bucket=self.bucket, ExpectedBucketOwner=self.account)
        self.s3.put_object(Bucket=self.bucket, Key="a", Body=b"text", ExpectedBucketOwner=self.account)
        other = new_account()
        self.refused("403", self.s3.head_bucket, Bucket=self.bucket, ExpectedBucketOwner=other)
        self.refused("AccessDenied", self.s3.put_object, Bucket=self.bucket, Key="a", Body=b"text", ExpectedBucketOwner=other)
        self.refused("403", self.s3.head_object, Bucket=self.bucket, Key="a", ExpectedBucketOwner=other)

    def test_settings(self):
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:key"}}
        self.s3.put_bucket_encryption(Bucket=self.bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
        self.s3.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        self.s3.put_public_access_block(Bucket=self.bucket, PublicAccessBlockConfiguration={"BlockPublicAcls": True})
        self.s3.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": []}))
        self.s3.put_bucket_ownership_controls(Bucket=self.bucket, OwnershipControls={"Rules": [
            {"ObjectOwnership": "BucketOwnerEnforced"}]})
        self.assertEqual(self.s3.get_bucket_versioning(Bucket=self.bucket)["Status"], "Enabled")
        self.assertTrue(self.s3.get_public_access_block(Bucket=self.bucket)["PublicAccessBlockConfiguration"]["BlockPublicAcls"])

    def test_objects(self):
        arn = re.search(r"arn:aws:kms:\S+", (CLUSTERS / "minimal/cluster.yaml").read_text()).group()
        self.s3.put_object(Bucket=self.bucket, Key="a/b", Body=b"text", ServerSideEncryption="aws:kms", SSEKMSKeyId=arn,
                           Metadata={"of": "mine"}, ChecksumAlgorithm="SHA256", IfNoneMatch="*")
        head = self.s3.head_object(Bucket=self.bucket, Key="a/b", ChecksumMode="ENABLED")
        self.assertEqual((head["ContentLength"], head["Metadata"], head["SSEKMSKeyId"]), (4, {"of": "mine"}, arn))
        self.assertIn("ChecksumSHA256", head)
        self.refused("PreconditionFailed", self.s3.put_object, Bucket=self.bucket, Key="a/b", Body=b"text", IfNoneMatch="*")
        self.refused("BadDigest", self.s3.put_object, Bucket=self.bucket, Key="c", Body=b"text",
                     ChecksumSHA256=base64.b64encode(bytes(32)).decode())

    def put_rules(self, *rules, **more):
        self.s3.put_bucket_lifecycle_configuration(Bucket=self.bucket, LifecycleConfiguration={"Rules": list(rules)}, **more)

    def test_lifecycle_rules(self):
        self.refused("NoSuchLifecycleConfiguration", self.s3.get_bucket_lifecycle_configuration, Bucket=self.bucket)
        expiry = {"NoncurrentVersionExpiration": {"NoncurrentDays": 30, "NewerNoncurrentVersions": 48}}
        new = {"ID": "new", "Status": "Enabled", "Filter": {"Prefix": "a/"}} | expiry
        self.put_rules(new, TransitionDefaultMinimumObjectSize="varies_by_storage_class")
        found = self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket)
        self.assertEqual((found["Rules"], found["TransitionDefaultMinimumObjectSize"]), ([new], "varies_by_storage_class"))
        # All are replaced, and so is what is not named again.
        self.put_rules(new | {"ID": "other"})
        found = self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket)
        self.assertEqual([rule["ID"] for rule in found["Rules"]], ["other"])
        self.assertEqual(found["TransitionDefaultMinimumObjectSize"], "all_storage_classes_128K")
        old = {"ID": "old", "Status": "Enabled", "Prefix": "b/", "Expiration": {"Days": 1}}
        self.put_rules(old)
        self.assertEqual(self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket)["Rules"], [old])
        for rules, words in (((new, old), "InvalidRequest.*Lifecycle V2"), ((new, new), "InvalidArgument"), ((), "MalformedXML")):
            with self.assertRaisesRegex(botocore.exceptions.ClientError, words):
                self.put_rules(*rules)
        self.s3.delete_bucket_lifecycle(Bucket=self.bucket)
        self.refused("NoSuchLifecycleConfiguration", self.s3.get_bucket_lifecycle_configuration, Bucket=self.bucket)

    def test_ages(self):
        for key in ("a/1", "a/2"):
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=b"text")
        self.aws.control(ages={"a/1": 48})
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix="a/")["Contents"]
        self.assertEqual([days_since(entry["LastModified"].isoformat()) for entry in found], [2, 0])


if __name__ == "__main__":
    unittest.main()
