"""What the stand-in for AWS answers, so that tests of the program may rely on it."""

import base64
import datetime
import itertools
import json
import pathlib
import re
import secrets
import time
import unittest
import urllib.error
import urllib.request

import botocore.exceptions

from ministack import MiniStack

CLUSTERS = pathlib.Path(__file__).parents[1] / "clusters"
REGION = "us-west-2"
FLATCAR = "075585003325"
TAGS = [{"Key": "infra:cluster", "Value": "mine"}]
accounts = itertools.count(200000000001)


def setUpModule():
    global aws
    aws = MiniStack()
    unittest.addModuleCleanup(aws.close)


def days_since(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds() / 86400)


class Case(unittest.TestCase):
    """Each test in an account of its own."""

    def setUp(self):
        self.addCleanup(aws.control)
        self.account = str(next(accounts))

    def __getattr__(self, service):
        if service.startswith("_"):
            raise AttributeError(service)
        client = aws.client(service.replace("_", "-"), self.account, REGION)
        setattr(self, service, client)
        return client

    def refused(self, words, call, **arguments):
        with self.assertRaisesRegex(botocore.exceptions.ClientError, words):
            call(**arguments)

    def soon(self, question):
        """The first answer that is true; how long it takes depends on what else the machine does."""
        deadline = time.monotonic() + 120
        while not (answer := question()):
            self.assertLess(time.monotonic(), deadline, "it takes too long")
            time.sleep(0.02)
        return answer


class Calls(Case):
    def test_are_counted_by_caller(self):
        before = aws.calls().get("Boto3", 0)
        self.sts.get_caller_identity()
        self.sts.get_caller_identity()
        self.assertEqual(aws.calls()["Boto3"], before + 2)


class Control(Case):
    def answer(self):
        request = urllib.request.Request(aws.url, method="POST", data=b"Action=GetCallerIdentity&Version=2011-06-15")
        with self.assertRaises(urllib.error.HTTPError) as raised:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
        with raised.exception as answer:
            return answer.code, answer.read().decode()

    def test_unknown_key_is_not_passed_over(self):
        aws.control(fail_lunch={})
        self.assertEqual(self.answer(), (500, "the control file has an unknown key: fail_lunch"))
        self.assertIn("unknown key: fail_lunch", aws.log())

    def test_value_of_wrong_type(self):
        aws.control(fail_create="Nodes")
        self.assertEqual(self.answer()[0], 500)

    def test_settings_of_one_account(self):
        def quota(account):
            client = aws.client("service-quotas", account, REGION)
            return client.get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")["Quota"]["Value"]

        aws.control(quotas={"L-DB2E81BA": 1}, accounts={self.account: {"quotas": {"L-DB2E81BA": 0}}})
        self.assertEqual([quota(self.account), quota(str(next(accounts)))], [0, 1])
        aws.control(accounts={self.account: {"fail_lunch": {}}})
        self.assertEqual(self.answer()[0], 500)

    def test_every_key_is_described(self):
        launcher = pathlib.Path(__file__).with_name("launcher.py").read_text()
        keys = re.findall(r'(?m)^    "(\w+)": ', pathlib.Path(__file__).with_name("stand_in").joinpath("control.py").read_text())
        self.assertGreater(len(keys), 15)
        self.assertEqual(keys, [key for key in keys if re.search(rf"(?m)^    {key}  ", launcher)])


class Machines(Case):
    """Types of them."""

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
        aws.control(not_offered=[["g5.xlarge", "us-west-2a"]])
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


class Images(Case):
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
        aws.control(ages={"Flatcar-stable-4459.2.1-hvm": 24 * 400, "ours": 24 * 3})
        image = self.find(name="Flatcar-stable-4459.2.1-hvm")[0]
        self.assertEqual((days_since(image["CreationDate"]), days_since(image["DeprecationTime"])), (400, 400 - 730))
        ours = self.ec2.register_image(Name="ours", Architecture="x86_64", VirtualizationType="hvm", RootDeviceName="/dev/xvda")
        image = self.ec2.describe_images(ImageIds=[ours["ImageId"]])["Images"][0]
        self.assertEqual(days_since(image["CreationDate"]), 3)

    def test_by_id(self):
        image = self.find(name="Flatcar-stable-4459.2.1-hvm")[0]["ImageId"]
        other = aws.client("ec2", str(next(accounts)), "eu-west-1")
        self.assertEqual(other.describe_images(ImageIds=[image])["Images"][0]["Name"], "Flatcar-stable-4459.2.1-hvm")
        self.refused(r"InvalidAMIID.NotFound.*The image id '\[ami-00000000000000000\]' does not exist", self.ec2.describe_images,
                     ImageIds=["ami-00000000000000000"])
        self.refused("InvalidAMIID.Malformed", self.ec2.describe_images, ImageIds=["flatcar"])
        aws.control(gone_images=[image])
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


class Account(Case):
    """What an account has before anybody does anything."""

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
        aws.control(quotas={"L-DB2E81BA": 0})
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
        aws.control(missing_roles=[spot])
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
        aws.control(keys={key["KeyId"]: "Disabled", "other": "Enabled"})
        self.assertEqual(self.kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"], "Disabled")
        other = self.kms.describe_key(KeyId="other")["KeyMetadata"]
        self.assertEqual(other["Arn"], f"arn:aws:kms:{REGION}:{self.account}:key/other")
        aws.control()
        self.assertTrue(self.kms.describe_key(KeyId=arn)["KeyMetadata"]["Enabled"])
        for unknown in (arn.replace("1234abcd", "00000000"), arn.replace(REGION, "eu-west-3")):
            with self.assertRaises(self.kms.exceptions.NotFoundException):
                self.kms.describe_key(KeyId=unknown)
        grant = self.kms.create_grant(KeyId=arn, GranteePrincipal=f"arn:aws:iam::{self.account}:role/r", Operations=["Decrypt"])
        self.assertEqual(len(self.kms.list_grants(KeyId=arn)["Grants"]), 1)
        self.kms.retire_grant(KeyId=arn, GrantId=grant["GrantId"])
        self.assertEqual(self.kms.list_grants(KeyId=arn)["Grants"], [])


class Names(Case):
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

        aws.control(dns_pending=60)
        change = self.change("CREATE", record)
        self.assertEqual([status(), status(), status()], ["PENDING"] * 3)
        aws.control(dns_pending=0)
        self.assertEqual(status(), "INSYNC")
        aws.control()
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


class Buckets(Case):
    def setUp(self):
        super().setUp()
        self.bucket = f"bucket-{self.account}"
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION})

    def test_of_whom(self):
        self.refused("404", self.s3.head_bucket, Bucket="of-nobody")
        self.refused("403", aws.client("s3", str(next(accounts)), REGION).head_bucket, Bucket=self.bucket)
        self.assertEqual(self.s3.get_bucket_location(Bucket=self.bucket)["LocationConstraint"], REGION)

    def test_expected_owner(self):
        self.s3.head_bucket(Bucket=self.bucket, ExpectedBucketOwner=self.account)
        self.s3.put_object(Bucket=self.bucket, Key="a", Body=b"text", ExpectedBucketOwner=self.account)
        other = str(next(accounts))
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
        aws.control(ages={"a/1": 48})
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix="a/")["Contents"]
        self.assertEqual([days_since(entry["LastModified"].isoformat()) for entry in found], [2, 0])


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


class StackCase(Case):
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


class Groups(StackCase):
    """Auto Scaling."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")

    def test_description(self):
        group = self.group()
        self.assertEqual({(member["LifecycleState"], member["HealthStatus"], member["AvailabilityZone"], member["InstanceType"],
                           member["LaunchTemplate"]["Version"]) for member in group["Instances"]},
                         {("InService", "Healthy", "us-west-2a", "m5.large", "1")})
        self.assertIn(TAGS[0], [{"Key": tag["Key"], "Value": tag["Value"]} for tag in group["Tags"]])
        self.assertEqual(group["AvailabilityZones"], ["us-west-2a"])

        def found(**question):
            return len(self.autoscaling.describe_auto_scaling_groups(**question)["AutoScalingGroups"])

        self.assertEqual([found(Filters=[{"Name": "tag:infra:cluster", "Values": [name]}]) for name in ("mine", "other")], [1, 0])
        self.assertEqual([found(AutoScalingGroupNames=[name]) for name in (group["AutoScalingGroupName"], "other")], [1, 0])

    def test_mixed(self):
        template = pool()
        nodes = template["Resources"]["Nodes"]["Properties"]
        nodes["MixedInstancesPolicy"] = {
            "InstancesDistribution": {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0},
            "LaunchTemplate": {"LaunchTemplateSpecification": nodes.pop("LaunchTemplate"),
                               "Overrides": [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g5.2xlarge"}]}}
        self.assertEqual(self.run_stack(template, "CREATE", "other"), "CREATE_COMPLETE")
        group = next(group for group in self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
                     if "MixedInstancesPolicy" in group)
        policy = group["MixedInstancesPolicy"]
        self.assertEqual([override["InstanceType"] for override in policy["LaunchTemplate"]["Overrides"]],
                         ["g5.xlarge", "g5.2xlarge"])
        self.assertEqual(policy["InstancesDistribution"]["OnDemandBaseCapacity"], 0)
        self.assertEqual(group["Instances"][0]["InstanceType"], "g5.xlarge")
        self.assertEqual({machine["InstanceType"]: machine.get("InstanceLifecycle") for machine in self.machines().values()},
                         {"g5.xlarge": "spot", "m5.large": None})

    def test_activities(self):
        self.assertEqual(len(self.activities("Successful")), 2)
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=4)
        pages = [self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=3)]
        pages.append(self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=3,
                                                                  NextToken=pages[0]["NextToken"]))
        self.assertEqual([len(page["Activities"]) for page in pages], [3, 1])
        self.assertNotIn("NextToken", pages[1])
        starts = [activity["StartTime"] for page in pages for activity in page["Activities"]]
        self.assertEqual(starts, sorted(starts, reverse=True))
        self.assertEqual(pages[0]["Activities"][0]["Progress"], 100)
        self.refused("ValidationError", self.autoscaling.describe_scaling_activities, AutoScalingGroupName="other")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        self.refused("ValidationError", self.autoscaling.describe_scaling_activities, AutoScalingGroupName=name)
        remembered = self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, IncludeDeletedGroups=True)
        launches = [activity for activity in remembered["Activities"] if activity["Description"].startswith("Launching")]
        self.assertEqual(len(launches), 4)

    def test_termination(self):
        def terminate(machine, fewer):
            return self.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=machine, ShouldDecrementDesiredCapacity=fewer)["Activity"]

        first, second = self.machines()
        self.assertEqual(terminate(first, False)["StatusCode"], "InProgress")
        self.assertEqual((len(self.machines()), first in self.machines(), second in self.machines()), (2, False, True))
        terminate(second, True)
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))
        self.refused("ValidationError.*not found", terminate, machine=first, fewer=False)
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=self.group()["AutoScalingGroupName"], MinSize=1)
        self.refused("desiredSize equals minSize", terminate, machine=list(self.machines())[0], fewer=True)

    def test_sizes(self):
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
        self.assertEqual(len(self.machines()), 3)
        self.refused("above max value 4", self.autoscaling.set_desired_capacity, AutoScalingGroupName=name, DesiredCapacity=5)
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=1)
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
        self.assertEqual(self.machines(), {})

    def test_sizes_that_somebody_else_has_set_stay(self):
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=self.group()["AutoScalingGroupName"], DesiredCapacity=3)
        self.assertEqual(self.run_stack(pool(count=2, maximum=5)), "UPDATE_COMPLETE")
        self.assertEqual((self.group()["DesiredCapacity"], self.group()["MaxSize"], len(self.machines())), (3, 5, 3))
        self.assertEqual(self.run_stack(pool(count=1, maximum=5)), "UPDATE_COMPLETE")
        self.assertEqual(self.group()["DesiredCapacity"], 1)

    def test_processes(self):
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch", "AZRebalance"])
        self.autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
        self.assertEqual([process["ProcessName"] for process in self.group()["SuspendedProcesses"]], ["AZRebalance"])

    def test_machines(self):
        first, second = self.machines()
        of_cluster = [{"Name": "tag:infra:cluster", "Values": ["mine"]}]
        found = self.ec2.describe_instances(Filters=of_cluster + [{"Name": "instance-id", "Values": [first]}])["Reservations"]
        self.assertEqual([machine["InstanceId"] for reservation in found for machine in reservation["Instances"]], [first])
        self.assertRegex(self.machines()[first]["PrivateDnsName"], r"^ip-10-0-0-\d+\.us-west-2\.compute\.internal$")

        def console(machine):
            return self.ec2.get_console_output(InstanceId=machine).get("Output", "")

        self.assertEqual(console(first), "")
        for name in (first, "Nodes", self.group()["AutoScalingGroupName"], "*"):
            aws.control(console={name: "no route to host"})
            self.assertEqual(console(first), "no route to host", name)
        aws.control(console={first: "one", "*": "other"})
        self.assertEqual((console(first), console(second)), ("one", "other"))
        self.refused("InvalidInstanceID.NotFound", self.ec2.get_console_output, InstanceId="i-00000000000000000")

    def test_latest_console_output_of_an_old_machine(self):
        self.assertEqual(self.run_stack(pool("p3.2xlarge"), "CREATE", "other"), "CREATE_COMPLETE")
        old, new = sorted(self.machines().values(), key=lambda machine: machine["InstanceType"], reverse=True)[:2]
        self.refused("UnsupportedOperation", self.ec2.get_console_output, InstanceId=old["InstanceId"], Latest=True)
        self.ec2.get_console_output(InstanceId=old["InstanceId"])
        self.ec2.get_console_output(InstanceId=new["InstanceId"], Latest=True)


class Launches(StackCase):
    NOT_ENOUGH = r"Received 0 SUCCESS signal\(s\) out of {}\.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"

    def reason(self, logical_id="Nodes"):
        return next(reason for name, status, reason in self.events() if name == logical_id and status.endswith("_FAILED"))

    def test_creation_waits_and_goes_on(self):
        aws.control(fail_launch={"Nodes": "We currently do not have sufficient capacity"}, launch_interval=0.05, signal_timeout=600)
        self.start(pool(count=2), "CREATE")
        failed = self.soon(lambda: self.activities("Failed")[2:] and self.activities("Failed"))
        self.assertEqual(failed[0]["StatusMessage"], "We currently do not have sufficient capacity")
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        resource = self.cloudformation.describe_stack_resource(StackName="pool", LogicalResourceId="Nodes")["StackResourceDetail"]
        self.assertEqual((resource["ResourceStatus"], resource["PhysicalResourceId"]),
                         ("CREATE_IN_PROGRESS", self.group()["AutoScalingGroupName"]))
        aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.assertEqual(len(self.machines()), 2)
        signals = [reason for name, _, reason in self.events() if name == "Nodes" and "SUCCESS signal with UniqueId i-" in reason]
        self.assertEqual(len(signals), 2)

    def test_creation_fails_for_want_of_signals(self):
        for fault in ({"fail_launch": {"Nodes": "no capacity"}}, {"no_signal": ["Nodes"]}, {"no_signal": ["pool/Nodes"]}):
            with self.subTest(fault):
                aws.control(signal_timeout=0.3, **fault)
                self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "ROLLBACK_COMPLETE")
                self.assertRegex(self.reason(), self.NOT_ENOUGH.format(2))
                self.assertIn(("Nodes", "DELETE_COMPLETE", ""), self.events())
                self.assertEqual((self.machines(), self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]), ({}, []))
                self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_other_groups_start(self):
        aws.control(signal_timeout=600, fail_launch={"Others": "no capacity"}, no_signal=["other/Nodes"])
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")

    def test_a_machine_that_did_not_live_is_cancelled(self):
        aws.control(fail_launch={"Nodes": "Instance became unhealthy while waiting for instance to be in InService state."})
        self.assertEqual(self.run_stack(pool(signals=False), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual((bool(self.activities("Cancelled")), self.activities("Failed")), (True, []))

    def test_without_signals_nobody_waits(self):
        aws.control(fail_launch={"Nodes": "no capacity"}, launch_interval=0.05)
        self.assertEqual(self.run_stack(pool(signals=False), "CREATE"), "CREATE_COMPLETE")
        self.soon(lambda: len(self.activities("Failed")) > 2)
        self.assertEqual(self.machines(), {})
        aws.control()
        self.soon(self.machines)
        self.assertEqual(len(self.activities("Successful")), 1)

    def test_deletion_ends_the_waiting(self):
        aws.control(no_signal=["Nodes"], signal_timeout=600)
        stack = self.start(pool(), "CREATE")
        self.soon(self.machines)
        self.cloudformation.delete_stack(StackName="pool")
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        # By now its name is gone; what it went through is told by its events.
        self.assertIn(("pool", "DELETE_IN_PROGRESS", "User Initiated"), self.events(stack))
        self.assertEqual((self.machines(), [vpc for vpc in self.ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]), ({}, []))

    def test_deletion_stops_a_creation(self):
        aws.control(delay=600)
        stack = self.start(gateways(*(f"Gateway{number}" for number in range(30))), "CREATE")
        self.cloudformation.delete_stack(StackName="pool")
        aws.control()
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        self.assertIn("Resource creation cancelled", [reason for _, _, reason in self.events(stack)])
        self.assertLess(len(self.events(stack)), 20)

    def test_rolling_update(self):
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")
        before = set(self.machines())
        change_set = self.ask(pool("m5.xlarge", count=2))
        self.assertEqual({change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]["Replacement"]
                          for change in change_set["Changes"]}, {"Template": "False", "Nodes": "False"})
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2)), "UPDATE_COMPLETE")
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.xlarge"] * 2)
        self.assertEqual(before & set(self.machines()), set())
        self.assertEqual({member["LaunchTemplate"]["Version"] for member in self.group()["Instances"]}, {"2"})

    def test_rolling_update_shrinks_to_what_stays_in_service(self):
        def limited(machine, in_service):
            template = pool(machine, count=2, maximum=5)
            template["Parameters"] = {"InService": {"Type": "Number", "Default": in_service}}
            template["Resources"]["Nodes"]["UpdatePolicy"]["AutoScalingRollingUpdate"]["MinInstancesInService"] = {"Ref": "InService"}
            return template

        self.assertEqual(self.run_stack(limited("m5.large", 1), "CREATE"), "CREATE_COMPLETE")
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=self.group()["AutoScalingGroupName"], DesiredCapacity=4)
        self.assertEqual(self.run_stack(limited("m5.xlarge", 4)), "UPDATE_COMPLETE")
        shrinking = "Temporarily setting autoscaling group MinSize and DesiredCapacity to 2."
        self.assertNotIn(shrinking, [reason for _, _, reason in self.events()])
        self.assertEqual(self.run_stack(limited("m5.2xlarge", 1)), "UPDATE_COMPLETE")
        self.assertIn(shrinking, [reason for _, _, reason in self.events()])
        self.assertEqual((self.group()["DesiredCapacity"], len(self.machines())), (4, 4))
        self.assertEqual(self.run_stack(limited("m5.large", 5)), "UPDATE_ROLLBACK_COMPLETE")

    def test_rollout_by_hand(self):
        self.assertEqual(self.run_stack(pool(count=2, rolling=False), "CREATE"), "CREATE_COMPLETE")
        before = list(self.machines())
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2, rolling=False)), "UPDATE_COMPLETE")
        self.assertEqual(list(self.machines()), before)
        self.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=before[0], ShouldDecrementDesiredCapacity=False)
        self.assertEqual(sorted(machine["InstanceType"] for machine in self.machines().values()), ["m5.large", "m5.xlarge"])

    def test_rolling_update_without_signals_goes_back(self):
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")
        aws.control(no_signal=["Nodes"], signal_timeout=0.3)
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2)), "UPDATE_ROLLBACK_COMPLETE")
        self.assertRegex(self.reason(), self.NOT_ENOUGH.format(1))
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.large"] * 2)

    def test_update_that_needs_a_machine(self):
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")
        aws.control(fail_launch={"Nodes": "no capacity"}, signal_timeout=0.3)
        self.assertEqual(self.run_stack(pool(count=2)), "UPDATE_ROLLBACK_COMPLETE")
        self.assertRegex(self.reason(), self.NOT_ENOUGH.format(1))
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))

    def test_cancelling_ends_the_waiting(self):
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")
        self.refused("CancelUpdateStack cannot be called from current stack status", self.cloudformation.cancel_update_stack,
                     StackName="pool")
        aws.control(fail_launch={"Nodes": "no capacity"}, signal_timeout=600)
        self.start(pool("m5.xlarge"))
        self.soon(lambda: self.activities("Failed"))
        self.refused(r"Stack \[arn:\S+ cannot be deleted while in status UPDATE_IN_PROGRESS", self.cloudformation.delete_stack,
                     StackName="pool")
        self.cloudformation.cancel_update_stack(StackName="pool")
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        self.assertIn(("pool", "UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated"), self.events())
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.large"])

    def test_others_are_answered_meanwhile(self):
        aws.control(no_signal=["Nodes"], signal_timeout=6000)
        self.start(pool(), "CREATE")
        self.soon(self.machines)
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")

    def test_one_stack_is_held_and_others_are_not(self):
        aws.control(hold=["pool"])
        self.start(gateways("One"), "CREATE")
        self.assertEqual(self.run_stack(gateways("One"), "CREATE", "other"), "CREATE_COMPLETE")
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")


class RealMachines(StackCase):
    """Somebody else boots them: the stand-in says what there is to boot, and waits for their own signals."""

    def signal(self, status, instance_id):
        self.cloudformation.signal_resource(StackName="pool", LogicalResourceId="Nodes", UniqueId=instance_id, Status=status)

    def site(self):
        url = f"{aws.url}/_site?account={self.account}&region={REGION}"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
            return json.load(answer)

    def setUp(self):
        super().setUp()
        aws.control(real_machines=True, signal_timeout=600)

    def test_creation_ends_with_the_last_signal(self):
        self.start(pool(count=2), "CREATE")
        first, second = self.soon(lambda: len(self.machines()) == 2 and sorted(self.machines()))
        self.signal("SUCCESS", first)
        self.signal("SUCCESS", first)
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        self.signal("SUCCESS", second)
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.refused("is in CREATE_COMPLETE state and cannot be signaled", self.cloudformation.signal_resource,
                     StackName="pool", LogicalResourceId="Nodes", UniqueId=first, Status="SUCCESS")

    def test_a_failure_ends_the_waiting(self):
        self.start(pool(), "CREATE")
        [machine] = self.soon(self.machines)
        self.signal("FAILURE", machine)
        self.assertEqual(self.end(), "ROLLBACK_COMPLETE")
        self.assertTrue(any("Received 1 FAILURE signal(s) out of 1." in reason for _, _, reason in self.events()))

    def test_the_site_says_what_to_boot(self):
        self.start(pool(), "CREATE")
        [machine] = self.soon(self.machines)
        [told] = self.site()["machines"]
        instance = self.ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
        self.assertEqual((told["id"], told["state"], told["address"], told["name"]),
                         (machine, "running", instance["PrivateIpAddress"], instance["PrivateDnsName"]))
        self.assertEqual(told["tags"]["infra:cluster"], "mine")
        self.signal("SUCCESS", machine)
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.ec2.terminate_instances(InstanceIds=[machine])
        states = {told["id"]: told["state"] for told in self.site()["machines"]}
        self.assertEqual((states.pop(machine), list(states.values())), ("terminated", ["running"]), "its group starts another")


class ChangeSets(StackCase):
    def replacement(self, before, after, logical_id):
        self.assertEqual(self.run_stack(before, "CREATE"), "CREATE_COMPLETE", self.events())
        return next(change["ResourceChange"]["Replacement"] for change in self.ask(after)["Changes"]
                    if change["ResourceChange"]["LogicalResourceId"] == logical_id)

    def role(self, **properties):
        trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"},
                                                         "Action": "sts:AssumeRole"}]}
        return {"Resources": {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust} | properties}}}

    def system(self, **properties):
        return {"Resources": {"Files": {"Type": "AWS::EFS::FileSystem", "Properties": properties}}}

    def test_replacement_as_the_schemas_say(self):
        self.assertEqual(self.replacement(self.system(ThroughputMode="bursting"), self.system(
            ThroughputMode="bursting", PerformanceMode="maxIO"), "Files"), "True")

    def test_change_in_place(self):
        self.assertEqual(self.replacement(self.system(ThroughputMode="bursting"), self.system(ThroughputMode="elastic"), "Files"),
                         "False")

    def test_size_of_template(self):
        long = gateways("One") | {"Metadata": {"Text": "x" * 51200}}
        self.refused("1 validation error detected: .* at 'templateBody' failed to satisfy constraint: "
                     "Member must have length less than or equal to 51200", self.ask, template=long, kind="CREATE")
        self.s3.create_bucket(Bucket=f"templates-{self.account}", CreateBucketConfiguration={"LocationConstraint": REGION})
        self.s3.put_object(Bucket=f"templates-{self.account}", Key="a/t.json", Body=json.dumps(long).encode())
        made = self.cloudformation.create_change_set(StackName="pool", ChangeSetName="c", ChangeSetType="CREATE",
                                                     TemplateURL=f"{aws.url}/templates-{self.account}/a/t.json")
        self.assertEqual(self.cloudformation.describe_change_set(ChangeSetName=made["Id"])["Status"], "CREATE_COMPLETE")

    def test_version_of_template(self):
        bucket = f"versions-{self.account}"
        self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        older, newer = (self.s3.put_object(Bucket=bucket, Key="t.json", Body=json.dumps(gateways(name)).encode())["VersionId"]
                        for name in ("Older", "Newer"))

        def template(more):
            made = self.cloudformation.create_change_set(
                StackName="versions", ChangeSetName=f"c{secrets.token_hex(4)}", ChangeSetType="CREATE",
                TemplateURL=f"{aws.url}/{bucket}/t.json{more}")
            return json.dumps(self.cloudformation.get_template(StackName="versions", ChangeSetName=made["Id"])["TemplateBody"])

        self.assertIn("Older", template(f"?versionId={older}"))
        self.assertIn("Newer", template(f"?versionId={newer}"))
        self.assertIn("Newer", template(""))
        self.refused("The specified version does not exist", template, more=f"?versionId={'0' * 32}")

    def test_cost(self):
        answer = self.cloudformation.estimate_template_cost(TemplateBody=json.dumps(gateways("One")))
        self.assertEqual(answer["Url"], "https://calculator.aws/#/estimate?key=test")

    def test_outputs_alone(self):
        outputs = lambda value: gateways("One") | {"Outputs": {"Said": {"Value": value}}}
        said = lambda: self.cloudformation.describe_stacks(StackName="pool")["Stacks"][0]["Outputs"][0]["OutputValue"]
        self.start(outputs("before"), "CREATE")
        self.assertEqual((self.end(), said()), ("CREATE_COMPLETE", "before"))
        same = self.ask(outputs("before"))
        self.assertEqual((same["Status"], "didn't contain changes" in same["StatusReason"]), ("FAILED", True))
        other = self.ask(outputs("after"))
        self.assertEqual((other["Status"], other["ExecutionStatus"], other["Changes"]), ("CREATE_COMPLETE", "AVAILABLE", []))
        self.cloudformation.execute_change_set(ChangeSetName=other["ChangeSetId"])
        self.assertEqual((self.end(), said()), ("UPDATE_COMPLETE", "after"))

    def test_second_one_of_a_new_stack(self):
        first, second = self.ask(gateways("One"), "CREATE"), self.ask(gateways("One", "Two"), "CREATE")
        self.assertEqual(first["StackId"], second["StackId"])
        self.refused("InsufficientCapabilities", self.ask, template=self.role(), kind="CREATE")
        self.assertEqual(self.status(), "REVIEW_IN_PROGRESS")
        self.refused(r"Stack \[pool\] does not exist", self.ask, template=gateways("One"))
        self.cloudformation.delete_change_set(ChangeSetName=first["ChangeSetId"])
        self.cloudformation.execute_change_set(ChangeSetName=second["ChangeSetId"])
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.assertEqual(len(self.cloudformation.describe_stack_resources(StackName="pool")["StackResources"]), 2)

    def test_new_stack_is_deleted(self):
        self.ask(gateways("One"), "CREATE")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        for name in ("pool", "never"):
            for call in (self.cloudformation.describe_stacks, self.cloudformation.describe_stack_resources,
                         self.cloudformation.list_stack_resources, self.cloudformation.get_template):
                self.refused(f"ValidationError.*Stack with id {name} does not exist", call, StackName=name)
            self.refused(rf"ValidationError.*Stack \[{name}\] does not exist", self.cloudformation.describe_stack_events,
                         StackName=name)

    def test_wrong_status(self):
        stack = self.start(gateways("One"), "CREATE")
        self.end()
        self.refused(r"Stack \[pool\] already exists and cannot be created again", self.ask, template=gateways("Two"),
                     kind="CREATE")
        ready = self.ask(gateways("Two"))
        for status in ("ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "DELETE_FAILED", "UPDATE_ROLLBACK_FAILED"):
            aws.control(force_status={"pool": status})
            words = f"ValidationError.*Stack:{stack} is in {status} state and can not be updated."
            self.refused(words, self.ask, template=gateways("Two"))
            self.refused(words, self.ask, template=gateways("Two"), kind="CREATE")
            self.refused(words, self.cloudformation.execute_change_set, ChangeSetName=ready["ChangeSetId"])

    def test_requests_that_come_twice(self):
        once = {"StackName": "pool", "ChangeSetName": "c", "ChangeSetType": "CREATE", "ClientToken": "t1",
                "TemplateBody": json.dumps(gateways("One"))}
        made = [self.cloudformation.create_change_set(**once)["Id"] for _ in range(2)]
        self.assertEqual(made[0], made[1])
        self.refused("AlreadyExists", self.cloudformation.create_change_set, **once | {"ClientToken": "t2"})
        for _ in range(2):
            self.cloudformation.execute_change_set(ChangeSetName=made[0], ClientRequestToken="t3")
        self.refused("InvalidChangeSetStatus", self.cloudformation.execute_change_set, ChangeSetName=made[0],
                     ClientRequestToken="t4")
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        stack = self.cloudformation.describe_stacks(StackName="pool")["Stacks"][0]["StackId"]
        aws.control(fail_delete={"One": "busy"})
        self.cloudformation.delete_stack(StackName="pool", ClientRequestToken="t5")
        self.assertEqual(self.end(), "DELETE_FAILED")
        aws.control(delay=600)
        for token in ("t5", "t6", "t6", "t7"):
            self.cloudformation.delete_stack(StackName="pool", ClientRequestToken=token)
            self.assertEqual(self.status(), "DELETE_FAILED" if token == "t5" else "DELETE_IN_PROGRESS")
        aws.control()
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        # One that failed, and one that did not.
        deletions = [event for event in self.events(stack) if event[:2] == ("One", "DELETE_IN_PROGRESS")]
        self.assertEqual(len(deletions), 2)


class Checks(StackCase):
    """Of change sets, before they are accepted."""

    def failed(self, change_set, **more):
        pages = self.cloudformation.get_paginator("describe_events").paginate(
            ChangeSetName=change_set["ChangeSetId"], Filters={"FailedEvents": True}, **more)
        return [event for page in pages for event in page["OperationEvents"]]

    def test_new_stack(self):
        aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "Tags/0", "no such key"]]})
        change_set = self.ask(gateways("One", "Two"), "CREATE")
        self.assertEqual((change_set["Status"], change_set["ExecutionStatus"], change_set["Changes"]), ("FAILED", "UNAVAILABLE", []))
        self.assertEqual(change_set["StatusReason"], "The following hook(s)/validation failed: "
                         "[AWS::EarlyValidation::PropertyValidation]. To troubleshoot Early Validation errors, use the "
                         "DescribeEvents API for detailed failure information.")
        event, = self.failed(change_set, StackName=change_set["StackId"])
        told = {key: event[key] for key in ("EventType", "OperationType", "OperationStatus", "LogicalResourceId", "ResourceType",
                                            "ValidationName", "ValidationStatus", "ValidationStatusReason", "ValidationPath",
                                            "ValidationFailureMode", "StackId")}
        self.assertEqual(told, {
            "EventType": "VALIDATION_ERROR", "OperationType": "CREATE_CHANGESET", "OperationStatus": "FAILED",
            "LogicalResourceId": "One", "ResourceType": "AWS::EC2::InternetGateway", "ValidationName": "PROPERTY_VALIDATION",
            "ValidationStatus": "FAILED", "ValidationStatusReason": "no such key",
            "ValidationPath": "/Resources/One/Properties/Tags/0", "ValidationFailureMode": "FAIL", "StackId": change_set["StackId"]})
        every = self.cloudformation.describe_events(ChangeSetName=change_set["ChangeSetId"])["OperationEvents"]
        self.assertEqual([event["OperationStatus"] for event in every], ["FAILED", "IN_PROGRESS"])
        self.refused("One of ChangeSetName", self.cloudformation.describe_events, ChangeSetName=change_set["ChangeSetName"])
        self.delete()
        self.refused("ChangeSetNotFound", self.cloudformation.describe_events, ChangeSetName=change_set["ChangeSetId"])

    def test_several_of_an_update_in_pages(self):
        self.run_stack(gateways("One"), "CREATE")
        aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "", "untouched"]], "pool/Two": [
            ["NAME_CONFLICT_VALIDATION", "", "it exists"], ["PROPERTY_VALIDATION", "Tags", "no list"],
            ["Acme::Ec2::Guard", "", "needs an owner"]]})
        change_set = self.ask(gateways("One", "Two"))
        self.assertIn("[AWS::EarlyValidation::ResourceExistenceCheck, AWS::EarlyValidation::PropertyValidation, Acme::Ec2::Guard]",
                      change_set["StatusReason"])
        events = self.failed(change_set)
        self.assertEqual([event.get("ValidationPath", event.get("HookType")) for event in events],
                         ["Acme::Ec2::Guard", "/Resources/Two/Properties/Tags", "/Resources/Two"])
        self.assertEqual(events[0]["HookStatusReason"], "needs an owner")
        aws.control()
        self.assertEqual(self.run_stack(gateways("One", "Two")), "UPDATE_COMPLETE")

    def test_events_that_come_later(self):
        aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "Tags", "no list"]]}, checks_told_after=1)
        change_set = self.ask(gateways("One"), "CREATE")
        self.assertEqual([len(self.failed(change_set)) for _ in range(2)], [0, 1])


class LostEvents(StackCase):
    def statuses(self, logical_id="pool"):
        return [status for name, status, _ in self.events() if name == logical_id]

    def test_never(self):
        aws.control(lose_events={"pool": ["CREATE_COMPLETE"]})
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual(self.statuses()[0], "CREATE_IN_PROGRESS")
        self.assertEqual(self.statuses("One")[0], "CREATE_COMPLETE")
        aws.control()
        self.assertEqual(self.statuses()[0], "CREATE_COMPLETE")

    def test_late(self):
        aws.control(late_events={"One": ["CREATE_FAILED"]}, fail_create={"One": "no"})
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "ROLLBACK_COMPLETE")
        self.assertNotIn("CREATE_FAILED", self.statuses("One"))
        self.assertIn("CREATE_FAILED", self.statuses("One"))
        self.assertEqual(self.statuses()[0], "ROLLBACK_COMPLETE")


class Ends(StackCase):
    """Of operations that do not go well."""

    def changed(self, colour, *more):
        return gateways("One", "Two", *more, Tags=[{"Key": "colour", "Value": colour}])

    def test_update_goes_back(self):
        self.run_stack(self.changed("red"), "CREATE")
        aws.control(fail_update={"Two": "no"})
        self.assertEqual(self.run_stack(self.changed("blue", "Three")), "UPDATE_ROLLBACK_COMPLETE")
        colours = {tag["Value"] for gateway in self.ec2.describe_internet_gateways()["InternetGateways"]
                   for tag in gateway["Tags"] if tag["Key"] == "colour"}
        self.assertEqual(colours, {"red"})

    def test_update_cannot_go_back(self):
        self.run_stack(self.changed("red"), "CREATE")
        for failed in ("One", "Two"):
            aws.control(fail_update={"Two": "no"}, fail_rollback={failed: "stuck"})
            self.assertEqual(self.run_stack(self.changed("blue")), "UPDATE_ROLLBACK_FAILED", failed)
            self.assertIn((failed, "UPDATE_FAILED", "stuck"), self.events())
            self.cloudformation.continue_update_rollback(StackName="pool")
            self.soon(lambda: self.status() == "UPDATE_ROLLBACK_FAILED")
            self.refused("cannot be skipped", self.cloudformation.continue_update_rollback, StackName="pool",
                         ResourcesToSkip=["Three"])
            self.cloudformation.continue_update_rollback(StackName="pool", ResourcesToSkip=[failed])
            self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        self.refused("ContinueUpdateRollback cannot be called", self.cloudformation.continue_update_rollback, StackName="pool")

    def test_creation_cannot_go_back(self):
        aws.control(fail_create={"Two": "no"}, fail_delete={"One": "stuck"})
        self.assertEqual(self.run_stack(self.changed("red"), "CREATE"), "ROLLBACK_FAILED")
        aws.control()
        self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_untouched_resources_are_not_mentioned(self):
        self.run_stack(self.changed("red"), "CREATE")
        aws.control(fail_update={"One": "never asked for"})
        self.assertEqual(self.run_stack(self.changed("red", "Three")), "UPDATE_COMPLETE")
        self.assertEqual({name for name, status, _ in self.events() if status.startswith("UPDATE_")}, {"pool", "Three"})

    def test_retained_except_when_created(self):
        def files(policy):
            template = gateways("Two")
            template["Resources"]["Files"] = {"Type": "AWS::EFS::FileSystem", "DeletionPolicy": policy}
            template["Resources"]["Two"]["DependsOn"] = "Files"
            return template

        aws.control(fail_create={"Two": "no"})
        asked = {"RetainExceptOnCreate": True}
        for policy, more, left in (("RetainExceptOnCreate", {}, 0), ("Retain", asked, 0), ("Retain", {}, 1)):
            self.assertEqual(self.run_stack(files(policy), "CREATE", **more), "ROLLBACK_COMPLETE")
            self.assertEqual(len(self.efs.describe_file_systems()["FileSystems"]), left, (policy, more))
            self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_protection(self):
        self.run_stack(gateways("One"), "CREATE")
        self.cloudformation.update_termination_protection(StackName="pool", EnableTerminationProtection=True)
        self.refused(r"Stack \[.*pool.*\] cannot be deleted while TerminationProtection is enabled",
                     self.cloudformation.delete_stack, StackName="pool")

    def test_policy(self):
        policy = {"Statement": [
            {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*", "Resource": "*",
             "Condition": {"StringEquals": {"ResourceType": ["AWS::EFS::FileSystem", "AWS::EC2::Subnet"]}}}]}

        def template(**properties):
            return {"Resources": gateways("One")["Resources"] | {
                "Files": {"Type": "AWS::EFS::FileSystem", "Properties": properties}}}

        self.run_stack(template(), "CREATE")
        self.cloudformation.set_stack_policy(StackName="pool", StackPolicyBody=json.dumps(policy))
        self.assertEqual(json.loads(self.cloudformation.get_stack_policy(StackName="pool")["StackPolicyBody"]), policy)
        before = self.efs.describe_file_systems()["FileSystems"][0]["FileSystemId"]
        for denied, action in ((template(PerformanceMode="maxIO"), "Replace"), (gateways("One"), "Delete")):
            self.assertEqual(self.run_stack(denied), "UPDATE_ROLLBACK_COMPLETE")
            self.assertTrue([reason for name, status, reason in self.events() if (name, status) == ("Files", "UPDATE_FAILED")
                             and reason.startswith("Action denied by stack policy") and f"[Update:{action}]" in reason])
        self.assertEqual(self.run_stack(template(ThroughputMode="elastic")), "UPDATE_COMPLETE")
        self.assertEqual([system["FileSystemId"] for system in self.efs.describe_file_systems()["FileSystems"]], [before])


class Ages(StackCase):
    def test_of_stacks(self):
        self.run_stack(gateways("One"), "CREATE", "first")
        self.run_stack(gateways("One"), "CREATE", "second")
        aws.control(ages={"first": 72})
        found = {stack["StackName"]: stack["CreationTime"] for stack in self.cloudformation.describe_stacks()["Stacks"]}
        self.assertEqual({name: days_since(made.isoformat()) for name, made in found.items()}, {"first": 3, "second": 0})


class Beginnings(StackCase):
    """Statuses that a test begins with."""

    def setUp(self):
        super().setUp()
        self.run_stack(gateways("One"), "CREATE")

    def test_status_moves_on(self):
        aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"})
        self.assertEqual([self.status(), self.status()], ["UPDATE_ROLLBACK_FAILED"] * 2)
        self.cloudformation.continue_update_rollback(StackName="pool")
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"})
        self.assertEqual(self.status(), "UPDATE_ROLLBACK_FAILED")

    def test_resources_that_failed(self):
        aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"}, fail_rollback={"One": "stuck"})
        self.assertEqual(self.status(), "UPDATE_ROLLBACK_FAILED")
        resource = self.cloudformation.describe_stack_resource(StackName="pool", LogicalResourceId="One")["StackResourceDetail"]
        self.assertEqual(resource["ResourceStatus"], "UPDATE_FAILED")
        self.cloudformation.continue_update_rollback(StackName="pool", ResourcesToSkip=["One"])
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")

    def test_failure_that_was_not_taken_back(self):
        for status, last in (("UPDATE_FAILED", "UPDATE_ROLLBACK_COMPLETE"), ("CREATE_FAILED", "ROLLBACK_COMPLETE")):
            aws.control(force_status={"pool": status})
            self.cloudformation.rollback_stack(StackName="pool")
            self.assertEqual(self.end(), last)
        self.refused("RollbackStack cannot be called", self.cloudformation.rollback_stack, StackName="pool")

    def test_not_again_for_a_new_stack(self):
        aws.control(force_status={"pool": "ROLLBACK_COMPLETE"})
        self.assertEqual(self.status(), "ROLLBACK_COMPLETE")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "CREATE_COMPLETE")

    def test_operation_of_somebody_else_ends(self):
        aws.control(force_status={"pool": "UPDATE_IN_PROGRESS"}, finish_status="UPDATE_COMPLETE", finish_after=600)
        self.assertEqual(self.status(), "UPDATE_IN_PROGRESS")
        aws.control()
        self.assertEqual(self.end(), "UPDATE_COMPLETE")
        statuses = [status for name, status, _ in self.events() if name == "pool"]
        self.assertEqual(statuses[:2], ["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS"])


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
        aws.control(drift_delay=600)
        detection_id = self.begin()
        self.assertEqual(self.detection(detection_id)["DetectionStatus"], "DETECTION_IN_PROGRESS")
        self.refused("Drift detection is already in progress for stack", self.begin)
        aws.control()
        self.assertEqual(self.detection(detection_id)["DetectionStatus"], "DETECTION_COMPLETE")
        self.begin()

    def test_failure(self):
        aws.control(fail_drift={"Disk": "Internal Failure"})
        found = self.drifts()
        self.assertEqual([(name, drift["StackResourceDriftStatus"], drift["DriftStatusReason"]) for name, drift in found.items()],
                         [("Disk", "UNKNOWN", "Internal Failure")])
        detection = self.detection(self.begin())
        self.assertEqual(detection["DetectionStatus"], "DETECTION_FAILED")
        self.assertEqual(json.loads(detection["DetectionStatusReason"]), {
            "Summary": "Failed to detect drift on resources [Disk]",
            "Failures": [{"Resource": "Disk", "FailureReason": "Internal Failure"}]})
        aws.control()
        self.assertEqual(self.drifts(), {})

    def test_wrong_status(self):
        aws.control(force_status={"pool": "UPDATE_IN_PROGRESS"})
        self.refused("is in UPDATE_IN_PROGRESS", self.begin)


if __name__ == "__main__":
    unittest.main()
