"""What the IAM roles of machines allow: their own work, and nothing of what others in the account have."""

import json
import pathlib
import re
import unittest

import yaml

from judge import ACCOUNT, REGION, Judge, conditions, listed
from policies import policies_of

CLUSTERS = pathlib.Path(__file__).parents[1] / "clusters"
VALUES = {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT, "AWS::URLSuffix": "amazonaws.com",
          "AssetBucket": "assets", "AssetPrefix": "clusters/", "VpcId": "vpc-own"}
SESSION = ["ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
           "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]
PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]


def resolve(value, known):
    """A part of a template with every reference in its place; a resource's own name is used for its id."""
    if isinstance(value, list):
        return [resolve(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return known.get(value["Ref"], value["Ref"])
    if set(value) == {"Fn::Sub"}:
        return re.sub(r"\$\{([^}]+)\}", lambda match: known.get(match[1], match[1]), value["Fn::Sub"])
    return {key: resolve(one, known) for key, one in value.items()}


def described(cluster):
    return yaml.safe_load((CLUSTERS / cluster / "cluster.yaml").read_text())


def values_in(cluster, stack):
    name, region = described(cluster)["clusterName"], described(cluster)["region"]
    return VALUES | {"AWS::Region": region, "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT}:stack/{name}-{stack}/1"}


def roles():
    """Of every golden cluster: its name, the logical id of a role, and the role."""
    for path in sorted(CLUSTERS.glob("*/expected/stacks/*.json")):
        for name, resource in json.loads(path.read_text())["Resources"].items():
            if resource["Type"] == "AWS::IAM::Role":
                cluster = path.parents[2].name
                yield cluster, name, resolve(resource["Properties"], values_in(cluster, path.stem))


def judge_of(role):
    return Judge([policy["PolicyDocument"] for policy in role["Policies"]])


def repository(account, region=REGION):
    return f"arn:aws:ecr:{region}:{account}:repository/train"


class EveryRole(unittest.TestCase):
    def test_a_session_is_all_that_it_has_of_systems_manager(self):
        for cluster, name, role in roles():
            with self.subTest(cluster=cluster, role=name):
                judge = judge_of(role)
                self.assertEqual([action for action in SESSION if not judge.allows(action)], [])
                for action in ("ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:GetDocument", "ssm:SendCommand",
                               "ssm:StartSession", "ssm:PutInventory"):
                    self.assertFalse(judge.allows(action, f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/database/password"), action)
                self.assertFalse([arn for arn in role.get("ManagedPolicyArns", []) if "SSM" in arn or "Registry" in arn])

    def test_images_are_pulled_from_the_account_and_by_pools_from_awss_own(self):
        for cluster, name, role in roles():
            with self.subTest(cluster=cluster, role=name):
                judge = judge_of(role)
                pulls, of_pool = not name.startswith("Etcd"), name == "NodeRole"
                self.assertEqual(judge.allows("ecr:GetAuthorizationToken"), pulls)
                for action in PULL:
                    self.assertEqual(judge.allows(action, repository(ACCOUNT)), pulls)
                    self.assertEqual(judge.allows(action, repository(ACCOUNT, "eu-west-1")), pulls)
                    self.assertEqual(judge.allows(action, repository("763104351884")), of_pool)
                    self.assertFalse(judge.allows(action, repository("444455556666")))
                for action in ("ecr:DescribeRepositories", "ecr:GetRepositoryPolicy", "ecr:PutImage", "ecr:DescribeImageScanFindings"):
                    self.assertFalse(judge.allows(action, repository(ACCOUNT)), action)


# What the cloud controller manager of v1.35 and v1.36 changes (pkg/providers/v1), by what it is done to. Classic load balancers first.
ON_LOAD_BALANCERS = [
    "AddTags", "ApplySecurityGroupsToLoadBalancer", "AttachLoadBalancerToSubnets", "ConfigureHealthCheck", "CreateLoadBalancerListeners",
    "CreateLoadBalancerPolicy", "DeleteLoadBalancer", "DeleteLoadBalancerListeners", "DeregisterInstancesFromLoadBalancer",
    "DetachLoadBalancerFromSubnets", "ModifyLoadBalancerAttributes", "RegisterInstancesWithLoadBalancer",
    "SetLoadBalancerPoliciesForBackendServer", "SetLoadBalancerPoliciesOfListener"]
ON_LISTENERS = ["DeleteListener", "ModifyListener"]
ON_TARGET_GROUPS = ["DeleteTargetGroup", "DeregisterTargets", "ModifyTargetGroup", "ModifyTargetGroupAttributes", "RegisterTargets"]
ON_SECURITY_GROUPS = ["AuthorizeSecurityGroupIngress", "DeleteSecurityGroup", "RevokeSecurityGroupIngress"]
CREATED = {"CreateLoadBalancer": "loadbalancer/a1", "CreateTargetGroup": "targetgroup/k8s-web/1"}
# Nothing that it does, or only for routes of pods, which it does not make here.
NEVER = [
    "ec2:CreateRoute", "ec2:DeleteRoute", "ec2:DeleteTags", "ec2:ModifyInstanceAttribute", "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:RunInstances", "ec2:TerminateInstances", "elasticloadbalancing:RemoveTags", "elasticloadbalancing:SetSecurityGroups"]


def of_balancers(resource):
    return f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:{resource}"


def of_ec2(resource, account=ACCOUNT):
    return f"arn:aws:ec2:{REGION}:{account}:{resource}"


class Boundary(unittest.TestCase):
    def test_roles_keep_all_that_their_policies_allow(self):
        boundaries = {path.parent.name: policies_of(path).boundary for path in CLUSTERS.glob("*/cluster.yaml")}
        for cluster, name, role in roles():
            judge = Judge([boundaries[cluster]])
            tags = {"infra:cluster": described(cluster)["clusterName"]}
            for statement in (statement for policy in role["Policies"] for statement in policy["PolicyDocument"]["Statement"]):
                for action in listed(statement["Action"]):
                    for resource in listed(statement["Resource"]):
                        with self.subTest(cluster=cluster, role=name, action=action, resource=resource):
                            self.assertTrue(judge.allows(action, resource, tags=tags, context=conditions(statement)))

    def test_every_role_has_the_boundary_that_cluster_yaml_names(self):
        named = {described(path.parent.name).get("permissionsBoundaryArn") for path in CLUSTERS.glob("*/cluster.yaml")}
        self.assertEqual(len(named), 2)
        for cluster, name, role in roles():
            self.assertEqual(role.get("PermissionsBoundary"), described(cluster).get("permissionsBoundaryArn"), (cluster, name))

    def test_no_policy_makes_a_role_more_than_machines_are(self):
        everything = [{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}]
        own = {"kubernetes.io/cluster/minimal": "owned"}
        judge = Judge(everything, policies_of(CLUSTERS / "minimal/cluster.yaml").boundary)
        self.assertTrue(judge.allows("ec2:DescribeInstances"))
        self.assertTrue(judge.allows("ec2:DeleteSecurityGroup", of_ec2("security-group/sg-1"), tags=own))
        for action, resource in {
            "iam:CreateUser": "*", "iam:AttachRolePolicy": f"arn:aws:iam::{ACCOUNT}:role/minimal-pool-x", "iam:PassRole": "*",
            "sts:AssumeRole": f"arn:aws:iam::{ACCOUNT}:role/admin", "s3:GetObject": "arn:aws:s3:::assets/clusters/minimal-eu/etcd-0/1.ign",
            "s3:DeleteObject": "arn:aws:s3:::assets/clusters/minimal/etcd-0/1.ign", "ec2:DescribeInstanceAttribute": "*",
            "ec2:RunInstances": "*", "ec2:DeleteSecurityGroup": of_ec2("security-group/sg-1"), "ssm:GetParameter": "*",
            "elasticfilesystem:DeleteFileSystem": "*", "kms:Decrypt": "*", "cloudformation:CreateStack": "*",
            "elasticloadbalancing:DeleteLoadBalancer": of_balancers("loadbalancer/b1"),
            "ec2:AttachVolume": of_ec2("volume/vol-1"),
        }.items():
            self.assertFalse(judge.allows(action, resource), action)
        # Not by tagging it first either.
        self.assertFalse(judge.allows("elasticloadbalancing:AddTags", of_balancers("loadbalancer/b1"), request_tags=own))
        self.assertFalse(judge.allows("ec2:CreateTags", of_ec2("security-group/sg-1"), request_tags=own))


class EtcdRole(unittest.TestCase):
    def setUp(self):
        self.judge = judge_of(next(role for cluster, name, role in roles() if (cluster, name) == ("minimal", "EtcdRole0")))

    def test_it_reads_and_writes_snapshots_in_all_versions_and_deletes_none(self):
        own, bucket = "arn:aws:s3:::assets/clusters/minimal/snapshots/etcd.db", "arn:aws:s3:::assets"
        for action in ("s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"):
            self.assertTrue(self.judge.allows(action, own), action)
            for other in ("minimal-eu/snapshots/etcd.db", "minimal/stacks/1.json", "minimal/controller/1.ign", "minimal/etcd-1/1.ign"):
                self.assertFalse(self.judge.allows(action, f"arn:aws:s3:::assets/clusters/{other}"), f"{action} of {other}")
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObjectRetention"):
            self.assertFalse(self.judge.allows(action, own), action)
        # A version of its configuration would be an old one.
        self.assertFalse(self.judge.allows("s3:GetObjectVersion", "arn:aws:s3:::assets/clusters/minimal/etcd-0/1.ign"))
        self.assertTrue(self.judge.allows("s3:GetBucketVersioning", bucket))
        for action in ("s3:GetBucketPolicy", "s3:GetLifecycleConfiguration", "s3:PutBucketVersioning", "s3:PutLifecycleConfiguration"):
            self.assertFalse(self.judge.allows(action, bucket), action)
        self.assertFalse(self.judge.allows("s3:GetBucketVersioning", "arn:aws:s3:::assets-of-others"))
        for prefix, allowed in {"clusters/minimal/snapshots/etcd.db": True, "clusters/minimal/snapshots/": True, "clusters/minimal/": False,
                                "clusters/minimal-eu/snapshots/": False, "": False}.items():
            self.assertEqual(self.judge.allows("s3:ListBucket", bucket, context={"s3:prefix": prefix}), allowed, prefix)


class ControllerRole(unittest.TestCase):
    """Of one golden cluster; the roles of all are rendered from the same lines."""

    def setUp(self):
        self.role = next(role for cluster, name, role in roles() if (cluster, name) == ("minimal", "ControllerRole"))
        self.judge = judge_of(self.role)
        self.own = {"kubernetes.io/cluster/minimal": "owned"}
        self.foreign = [{}, {"kubernetes.io/cluster/minimal": "shared"}, {"kubernetes.io/cluster/minimal-eu": "owned"},
                        {"infra:cluster": "minimal"}]

    def check(self, action, resource):
        """Allowed on what has the cluster's tag, and on nothing else."""
        self.assertTrue(self.judge.allows(action, resource, tags=self.own), action)
        for tags in self.foreign:
            self.assertFalse(self.judge.allows(action, resource, tags=tags), f"{action} with {tags}")
            # Not by naming the tag in the request either.
            self.assertFalse(self.judge.allows(action, resource, tags=tags, request_tags=self.own), f"{action} with {tags}")

    def test_it_changes_load_balancers_and_security_groups_of_the_cluster_alone(self):
        for resource in ("loadbalancer/a1", "loadbalancer/net/a1/2"):
            for action in ON_LOAD_BALANCERS:
                self.check(f"elasticloadbalancing:{action}", of_balancers(resource))
        for action in ON_LISTENERS:
            self.check(f"elasticloadbalancing:{action}", of_balancers("listener/net/a1/2/3"))
        for action in ON_TARGET_GROUPS:
            self.check(f"elasticloadbalancing:{action}", of_balancers("targetgroup/k8s-web/1"))
        for action in ON_SECURITY_GROUPS:
            self.check(f"ec2:{action}", of_ec2("security-group/sg-1"))

    def test_what_it_creates_has_the_tag_from_the_beginning(self):
        for action, resource in CREATED.items():
            arn = of_balancers(resource)
            self.assertTrue(self.judge.allows(f"elasticloadbalancing:{action}", arn, request_tags=self.own))
            tagging = {"elasticloadbalancing__CreateAction": action}
            self.assertTrue(self.judge.allows("elasticloadbalancing:AddTags", arn, request_tags=self.own, **tagging))
            for tags in self.foreign:
                self.assertFalse(self.judge.allows(f"elasticloadbalancing:{action}", arn, request_tags=tags))
                self.assertFalse(self.judge.allows("elasticloadbalancing:AddTags", arn, request_tags=tags, **tagging))
        listener = {"action": "elasticloadbalancing:CreateListener", "resource": of_balancers("loadbalancer/net/a1/2")}
        self.assertTrue(self.judge.allows(**listener, tags=self.own, request_tags=self.own))
        self.assertFalse(self.judge.allows(**listener, tags={}, request_tags=self.own))
        self.assertFalse(self.judge.allows(**listener, tags=self.own))

    def test_security_groups_are_created_in_the_clusters_network_only(self):
        group = {"action": "ec2:CreateSecurityGroup", "resource": of_ec2("security-group/*")}
        self.assertTrue(self.judge.allows(**group, request_tags=self.own))
        self.assertFalse(self.judge.allows(**group))
        # A VPC may be another account's that shares it.
        for account in (ACCOUNT, "444455556666"):
            self.assertTrue(self.judge.allows("ec2:CreateSecurityGroup", of_ec2("vpc/vpc-own", account)))
        self.assertFalse(self.judge.allows("ec2:CreateSecurityGroup", of_ec2("vpc/vpc-other")))
        tag = {"action": "ec2:CreateTags", "resource": of_ec2("security-group/sg-1"), "request_tags": self.own}
        self.assertTrue(self.judge.allows(**tag, ec2__CreateAction="CreateSecurityGroup"))
        self.assertFalse(self.judge.allows(**tag))
        self.assertFalse(self.judge.allows(**tag | {"resource": of_ec2("instance/i-1")}, ec2__CreateAction="RunInstances"))

    def test_what_routes_would_need_is_not_allowed(self):
        for action in NEVER:
            for resource in ("*", of_ec2("instance/i-1"), of_ec2("route-table/rtb-1"), of_balancers("loadbalancer/a1")):
                self.assertFalse(self.judge.allows(action, resource, tags=self.own, request_tags=self.own), action)


if __name__ == "__main__":
    unittest.main()
