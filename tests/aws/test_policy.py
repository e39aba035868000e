"""The policies that `infra policy` prints, on a stand-in that checks rights: with them a cluster comes and goes, without them not.

What that cannot show: what CloudFormation may do in the caller's name, since the stand-in's makes its resources without asking.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import botocore.exceptions

from ministack import MiniStack
from policies import ROOT, S3_URI as PLACE, split

REGION = "us-west-2"
PAYS = ["--delete-data", "--confirm", "paddle-cluster"]

# Each right of our own calls, removed where it is needed first. A missing right to read before anything is created is a
# warning; everything else ends the run.
BEFORE_A_CLUSTER = [
    "ec2:DescribeAddresses", "ec2:DescribeAvailabilityZones", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes", "ec2:DescribeKeyPairs", "kms:DescribeKey", "s3:GetBucketPublicAccessBlock",
    "s3:ListBucket", "route53:ListHostedZones"]
MAKING_A_BUCKET = [
    "s3:CreateBucket", "s3:PutBucketPublicAccessBlock", "s3:PutEncryptionConfiguration", "s3:PutBucketVersioning", "s3:PutBucketPolicy"]
ON_THE_WAY_UP = [
    "cloudformation:DescribeStacks", "autoscaling:DescribeAutoScalingGroups", "s3:GetObject", "s3:PutObject", "kms:ListGrants",
    "kms:CreateGrant", "cloudformation:CreateChangeSet", "cloudformation:DescribeChangeSet", "cloudformation:ExecuteChangeSet",
    "cloudformation:DescribeStackEvents", "cloudformation:UpdateTerminationProtection", "cloudformation:GetStackPolicy",
    "cloudformation:SetStackPolicy", "cloudformation:GetTemplate", "route53:ListResourceRecordSets", "route53:ChangeResourceRecordSets",
    "route53:GetChange"]
# Without these the cluster comes up, and old snapshots stay.
FOR_OLD_SNAPSHOTS = ["s3:GetBucketVersioning", "s3:GetLifecycleConfiguration", "s3:PutLifecycleConfiguration"]
OF_A_WHOLE_CLUSTER = {
    ("destroy", "--plan-only"): [
        "cloudformation:ListStackResources", "cloudformation:ListStacks", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups",
        "ec2:DescribeSnapshots", "elasticfilesystem:DescribeFileSystems",
        "elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroups",
        "s3:ListBucketVersions"],
    ("drift",): [
        "cloudformation:DescribeStackDriftDetectionStatus", "cloudformation:DescribeStackResourceDrifts",
        "cloudformation:DetectStackDrift"],
    ("list", "--all-regions", "--region", REGION): ["ec2:DescribeRegions"],
    ("logs", "controller"): ["ec2:DescribeInstances", "ec2:GetConsoleOutput"],
    ("cost", "--online"): ["cloudformation:EstimateTemplateCost"],
}
ROLLING_BACK = {"UPDATE_ROLLBACK_FAILED": "cloudformation:ContinueUpdateRollback", "UPDATE_FAILED": "cloudformation:RollbackStack"}
ON_THE_WAY_DOWN = [
    "cloudformation:DeleteStack", "kms:RevokeGrant", "elasticfilesystem:DescribeMountTargets", "elasticfilesystem:DeleteFileSystem",
    "ec2:DeleteSnapshot", "tag:GetResources"]
# What no run here asks for, and where its words are tried instead.
ELSEWHERE = {
    "the life of this cluster, but only while machines start or when a user cancels: tests/lifecycle/launches, interruptions": [
        "autoscaling:DescribeScalingActivities", "cloudformation:CancelUpdateStack", "cloudformation:DeleteChangeSet"],
    "a change set that CloudFormation refuses: tests/lifecycle/change_set_checks": ["cloudformation:DescribeEvents"],
    "up --replace-nodes, which needs a Kubernetes API: tests/lifecycle/pools": ["autoscaling:TerminateInstanceInAutoScalingGroup"],
    "pools in several zones: tests/lifecycle/network_faults": ["autoscaling:SuspendProcesses"],
    "a pool with a schedule: tests/lifecycle/schedules": [
        "autoscaling:DescribeScheduledActions", "autoscaling:UpdateAutoScalingGroup"],
    "an adopted network or file system, a reservation, a zone by its id: tests/lifecycle/preflight_adopted": [
        "ec2:DescribeCapacityReservations", "ec2:DescribeDhcpOptions", "ec2:DescribeVpcAttribute",
        "elasticfilesystem:DescribeMountTargetSecurityGroups", "route53:GetHostedZone"],
    "what Kubernetes or another user left in the network: tests/lifecycle/destroy": [
        "ec2:DeleteNetworkInterface", "ec2:DeleteSecurityGroup", "ec2:RevokeSecurityGroupIngress", "elasticfilesystem:DeleteMountTarget",
        "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup"],
    "the audit, for what the tagging service still lists: tests/lifecycle/destroy": [
        "ec2:DescribeInternetGateways", "ec2:DescribeLaunchTemplates", "ec2:DescribeNatGateways", "ec2:DescribePlacementGroups",
        "ec2:DescribeRouteTables", "ec2:DescribeSubnets", "ec2:DescribeVolumes", "ec2:DescribeVpcEndpoints", "ec2:DescribeVpcs"],
    "disks with the account's own key: tests/lifecycle/network_faults": ["ec2:GetEbsDefaultKmsKeyId"],
    "a key of the caller's own account: tests/lifecycle/preflight_keys": ["kms:GetKeyPolicy"],
    "init --create-key, before there is a cluster and a policy for it: tests/lifecycle/created_keys": [
        "kms:CreateAlias", "kms:CreateKey", "kms:EnableKeyRotation", "kms:ListAliases", "kms:ListKeys", "kms:ListResourceTags"],
    "the stand-in answers these without asking who is there: tests/lifecycle/network_faults": [
        "iam:GetRole", "pricing:GetProducts", "servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota"],
    "pools of spot machines: tests/lifecycle/prices": ["ec2:DescribeSpotPriceHistory"],
    "the stand-in lets everybody delete several objects at once": ["s3:DeleteObjectVersion"],
    "AWS allows it to every caller": ["sts:GetCallerIdentity"],
}


class Stand(unittest.TestCase):
    """A stand-in that checks rights, a bucket, and the files of a cluster."""

    golden = "minimal"

    def setUp(self):
        self.aws = MiniStack(checks_rights=True)
        self.addCleanup(self.aws.close)
        self.iam = self.aws.client("iam", "test", REGION, "test")
        # Created by another user: the policy of a bucket that infra creates refuses calls without TLS, as all calls here are.
        self.aws.client("s3", "test", REGION, "test").create_bucket(
            Bucket="assets", CreateBucketConfiguration={"LocationConstraint": REGION})
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        golden = ROOT / "tests/clusters" / self.golden
        shutil.copy(golden / "cluster.yaml", self.directory)
        shutil.copytree(golden / "credentials", self.directory / "credentials")
        (self.directory / "credentials").chmod(0o700)
        for key in (self.directory / "credentials").glob("*key*"):
            key.chmod(0o600)
        self.print_policies()

    def print_policies(self):
        printed = json.loads(self.infra("policy", "--s3-uri", PLACE, "--output", "json", keys=None).stdout)
        self.policies, self.boundary = split(printed)

    def infra(self, *arguments, keys):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "AWS_EC2_METADATA_DISABLED": "true",
                       "INFRA_RELEASE_SERVER": self.aws.url, "INFRA_TEST_TEMPO": "0.05"}
        if keys:
            environment |= {"AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"]}
            arguments = (*arguments, "--endpoint-url", self.aws.url)
        return subprocess.run([ROOT / "target/debug/infra", "-C", self.directory, *arguments], env=environment,
                              capture_output=True, text=True, timeout=300)

    def up(self, keys, *more):
        return self.infra("up", "--s3-uri", PLACE, "--wait", "stacks", *more, keys=keys)

    def operator(self, name, without=None):
        """A user with exactly these policies, one right perhaps aside."""
        self.iam.create_user(UserName=name)
        for policy, document in self.policies.items():
            document = json.loads(json.dumps(document))
            for statement in document["Statement"]:
                if isinstance(statement["Action"], list) and without in statement["Action"]:
                    statement["Action"].remove(without)
            # Without any action a statement would fit all.
            document["Statement"] = [statement for statement in document["Statement"] if statement["Action"]]
            made = self.iam.create_policy(PolicyName=f"{policy}-{name}", PolicyDocument=json.dumps(document))
            self.iam.attach_user_policy(UserName=name, PolicyArn=made["Policy"]["Arn"])
        return self.iam.create_access_key(UserName=name)["AccessKey"]

    def check(self, outcome, code, words=""):
        self.assertEqual(outcome.returncode, code, outcome.stderr)
        self.assertIn(words, outcome.stderr)


class Operator(Stand):
    def setUp(self):
        super().setUp()
        made = self.iam.create_policy(PolicyName="infra-minimal-boundary", PolicyDocument=json.dumps(self.boundary))
        self.boundary_arn = made["Policy"]["Arn"]
        with (self.directory / "cluster.yaml").open("a") as file:
            file.write(f"permissionsBoundaryArn: {self.boundary_arn}\n")
        self.print_policies()

    def test_with_them_a_cluster_is_created_changed_and_deleted(self):
        keys = self.operator("ada")
        up = self.up(keys)
        self.check(up, 0, "done: https://")
        self.assertNotIn("could not be checked", up.stderr)
        self.check(self.infra("plan", "--detailed-exitcode", keys=keys), 0)
        stacks = self.aws.client("cloudformation", "test", REGION, "test")
        templates = [stacks.get_template(StackName=f"minimal-{part}")["TemplateBody"] for part in ("control-plane", "pool-cpu")]
        resources = [resource for template in templates for resource in template["Resources"].values()]
        roles = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::IAM::Role"]
        self.assertEqual([role["PermissionsBoundary"] for role in roles], 3 * [self.boundary_arn])
        described = (self.directory / "cluster.yaml").read_text()
        (self.directory / "cluster.yaml").write_text(described.replace("m5.large}", "m5.large, rootVolumeGiB: 50}"))
        self.check(self.up(keys, "--yes"), 0, "done: https://")
        self.check(self.infra("drift", keys=keys), 0)
        # No API server answers here; everything else was looked at.
        self.check(self.infra("status", keys=keys), 3)
        self.check(self.infra("destroy", "--yes", keys=keys), 0, "minimal is deleted")

    def test_another_user_may_do_nothing(self):
        self.iam.create_user(UserName="other")
        keys = self.iam.create_access_key(UserName="other")["AccessKey"]
        self.check(self.infra("up", "--s3-uri", PLACE, keys=keys), 1, "`infra policy` prints all that this cluster needs")


class SecondUser(Stand):
    """A user with exactly these policies, by hand: what they may do to the cluster `minimal`, and not to what others have."""

    def setUp(self):
        super().setUp()
        self.eve = self.operator("eve")

    def client(self, service):
        return self.aws.client(service, self.eve["AccessKeyId"], REGION, self.eve["SecretAccessKey"])

    def root(self, service):
        return self.aws.client(service, "test", REGION, "test")

    def denied(self, action, call, **arguments):
        with self.subTest(action=action), self.assertRaises(botocore.exceptions.ClientError) as caught:
            call(**arguments)
        error = caught.exception.response["Error"]
        self.assertIn(error["Code"], ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation"), error)

    def make(self, tags):
        """A file system with a mount target, a security group and a load balancer, as one with these tags."""
        tags = [{"Key": key, "Value": value} for key, value in tags.items()]
        ec2, efs, balancers = (self.root(service) for service in ("ec2", "efs", "elbv2"))
        network = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=network, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName="of-another-user", Description="x", VpcId=network, TagSpecifications=[
            {"ResourceType": "security-group", "Tags": tags}])["GroupId"]
        files = efs.create_file_system(CreationToken=str(tags), Tags=tags)["FileSystemId"]
        mount = efs.create_mount_target(FileSystemId=files, SubnetId=subnet)["MountTargetId"]
        balancer = balancers.create_load_balancer(Name=f"b{len(str(tags))}", Type="network", Subnets=[subnet], Tags=tags)
        return {"group": group, "files": files, "mount": mount, "balancer": balancer["LoadBalancers"][0]["LoadBalancerArn"]}

    def deletions(self, made):
        yield "elasticfilesystem:DeleteMountTarget", self.client("efs").delete_mount_target, {"MountTargetId": made["mount"]}
        yield "elasticfilesystem:DeleteFileSystem", self.client("efs").delete_file_system, {"FileSystemId": made["files"]}
        yield ("elasticloadbalancing:DeleteLoadBalancer", self.client("elbv2").delete_load_balancer,
               {"LoadBalancerArn": made["balancer"]})
        yield "ec2:DeleteSecurityGroup", self.client("ec2").delete_security_group, {"GroupId": made["group"]}

    def test_what_others_have_stays(self):
        for tags in ({"team": "speech"}, {"infra:cluster": "minimal-eu"}, {"kubernetes.io/cluster/minimal": "shared"}):
            for action, call, arguments in self.deletions(self.make(tags)):
                self.denied(action, call, **arguments)
        for _, call, arguments in self.deletions(self.make({"infra:cluster": "minimal"})):
            call(**arguments)

    def test_no_role_is_made_and_no_stack_of_others_is_changed(self):
        trust = json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})
        iam, stacks = self.client("iam"), self.client("cloudformation")
        for name in ("minimal-control-plane-X", "minimal-pool-X", "admin"):
            self.denied("iam:CreateRole", iam.create_role, RoleName=name, AssumeRolePolicyDocument=trust)
        self.iam.create_role(RoleName="minimal-pool-cpu-NodeRole-1", AssumeRolePolicyDocument=trust)
        for call, more in ((iam.attach_role_policy, {"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}),
                           (iam.update_assume_role_policy, {"PolicyDocument": trust}), (iam.delete_role, {})):
            self.denied(call.__name__, call, RoleName="minimal-pool-cpu-NodeRole-1", **more)
        template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
        self.root("cloudformation").create_stack(StackName="minimal-eu-network", TemplateBody=template)
        self.denied("cloudformation:DeleteStack", stacks.delete_stack, StackName="minimal-eu-network")
        for stack, tags in {"minimal-eu-network": "minimal", "minimal-network": "minimal-eu"}.items():
            self.denied("cloudformation:CreateChangeSet", stacks.create_change_set, StackName=stack, ChangeSetName="infra-1",
                        TemplateBody=template, Tags=[{"Key": "infra:cluster", "Value": tags}])

    def test_no_record_of_others_is_changed_and_no_key_is_given_away(self):
        zone = self.root("route53").create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"]

        def change(name):
            record = {"Name": name, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
            self.client("route53").change_resource_record_sets(
                HostedZoneId=zone, ChangeBatch={"Changes": [{"Action": "UPSERT", "ResourceRecordSet": record}]})

        self.denied("route53:ChangeResourceRecordSets", change, name="www.example.com")
        described = (self.directory / "cluster.yaml").read_text()
        change(re.search(r"externalDNSName: (\S+)", described)[1])
        self.denied("kms:CreateGrant", self.client("kms").create_grant, KeyId=re.search(r"arn:aws:kms:\S+", described)[0],
                    GranteePrincipal="arn:aws:iam::000000000000:user/eve", Operations=["Decrypt"])


class MissingRights(Stand):
    """One cluster with a file system, a key for its disks and a public name; its life goes on from one missing right to the next."""

    golden = "paddle-tutorial"

    def setUp(self):
        super().setUp()
        self.aws.client("s3", "test", REGION, "test").put_bucket_versioning(
            Bucket="assets", VersioningConfiguration={"Status": "Enabled"})
        self.aws.client("ec2", "test", REGION, "test").create_key_pair(KeyName="key-pair-name")
        self.aws.client("route53", "test", REGION, "test").create_hosted_zone(Name="example.com", CallerReference="once")
        with (self.directory / "cluster.yaml").open("a") as file:
            file.write("encryptDisksWithKmsKey: true\n")
        self.all_rights = self.operator("ada")

    def miss(self, right, *arguments):
        """The run without the right names it, in an error that ends it or in a warning that does not."""
        with self.subTest(right=right, command=arguments[0]):
            keys = self.operator(f"without-{right.replace(':', '-')}-{arguments[0]}", without=right)
            outcome = self.infra(*arguments, keys=keys)
            named = [line for line in outcome.stderr.splitlines() if right in line]
            self.assertTrue(named, f"{outcome.returncode}: {outcome.stderr}")
            ends = right == "s3:ListBucket" or any(word in line for line in named for word in ("error: ", "refused: "))
            code = 2 if arguments[0] == "validate" else 1
            self.assertEqual(outcome.returncode, code if ends else 0, outcome.stderr)

    def miss_all(self, rights, *arguments):
        """At the same time, since nothing is changed."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(self.miss, right, *arguments) for right in rights]:
                done.result()

    def make_snapshot(self):
        """As etcd's disk left one; that is gone by then, since one thing that cannot be deleted keeps nothing else."""
        ec2 = self.aws.client("ec2", "test", REGION, "test")
        volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
        tags = [{"Key": "infra:cluster", "Value": "paddle-cluster"}]
        ec2.create_snapshot(VolumeId=volume, TagSpecifications=[{"ResourceType": "snapshot", "Tags": tags}])
        ec2.delete_volume(VolumeId=volume)

    def test_each_missing_right_is_named_and_the_run_with_it_continues(self):
        self.miss_all(BEFORE_A_CLUSTER, "validate", "--online", "--s3-uri", PLACE)
        for right in ON_THE_WAY_UP:
            self.miss(right, "up", "--s3-uri", PLACE, "--wait", "stacks", "--yes")
        self.check(self.up(self.all_rights), 0, "done: https://")
        self.aws.client("s3", "test", REGION, "test").delete_bucket_lifecycle(Bucket="assets")
        for right in FOR_OLD_SNAPSHOTS:
            self.miss(right, "up", "--s3-uri", PLACE, "--wait", "stacks", "--yes")
        self.check(self.up(self.all_rights), 0, "old versions of etcd's snapshots are deleted from now on")
        for command, rights in OF_A_WHOLE_CLUSTER.items():
            self.miss_all(rights, *command)
        for status, right in ROLLING_BACK.items():
            self.aws.control(force_status={"paddle-cluster-pool-workers": status})
            self.miss(right, "rollback", "--yes")
            self.check(self.infra("rollback", "--yes", keys=self.all_rights), 0)
        self.aws.control()
        self.check(self.up(self.all_rights), 0, "no stack had to change")
        for right in ON_THE_WAY_DOWN:
            if right == "ec2:DeleteSnapshot":
                self.make_snapshot()
            self.miss(right, "destroy", *PAYS)
        self.check(self.infra("destroy", *PAYS, keys=self.all_rights), 0)
        stacks = self.aws.client("cloudformation", "test", REGION, "test").describe_stacks()["Stacks"]
        self.assertEqual(stacks, [])
        self.check(self.infra("status", keys=self.all_rights), 3)

    def test_a_bucket_is_created_by_a_caller_with_the_rights(self):
        self.aws.client("s3", "test", REGION, "test").delete_bucket(Bucket="assets")
        for right in MAKING_A_BUCKET:
            self.miss(right, "up", "--s3-uri", PLACE, "--create-bucket")

    def test_none_is_forgotten(self):
        known = re.findall(r'= "([a-z0-9]+:\w+)"', (ROOT / "src/aws/actions.rs").read_text())
        tried = [*BEFORE_A_CLUSTER, *MAKING_A_BUCKET, *ON_THE_WAY_UP, *FOR_OLD_SNAPSHOTS, *ON_THE_WAY_DOWN, *ROLLING_BACK.values()]
        tried += [right for rights in (*OF_A_WHOLE_CLUSTER.values(), *ELSEWHERE.values()) for right in rights]
        self.assertEqual(sorted(tried), sorted(known))


if __name__ == "__main__":
    unittest.main()
