"""What the IAM roles of machines allow: their own work, and nothing of what others in the account have."""

import json
import pathlib
import re
import unittest

import yaml

from judge import ACCOUNT, REGION, Judge

CLUSTERS = pathlib.Path(__file__).parents[1] / "clusters"
VALUES = {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT, "AWS::URLSuffix": "amazonaws.com",
          "AssetBucket": "assets", "AssetPrefix": "clusters/", "VpcId": "vpc-own"}
SESSION = ["ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
           "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]
PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]


def resolve(value, known):
    """A part of a template with every reference in its place; a resource's own name stands for what it will be."""
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


if __name__ == "__main__":
    unittest.main()
