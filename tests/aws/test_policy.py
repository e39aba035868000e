"""The policies that `infra policy` prints, on a stand-in that checks rights: with them a cluster comes and goes, without them not.

What that cannot show: what CloudFormation may do in the caller's name, since the stand-in's makes its resources without asking.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from ministack import MiniStack

ROOT = pathlib.Path(__file__).parents[2]
REGION = "us-west-2"
PLACE = "s3://assets/clusters"
# One of each service that the first minutes of a cluster need; without it the name of the right is on the screen.
NEEDED = ["s3:PutObject", "cloudformation:CreateChangeSet", "cloudformation:DescribeStacks", "autoscaling:DescribeAutoScalingGroups"]


class Operator(unittest.TestCase):
    def setUp(self):
        self.aws = MiniStack(checks_rights=True)
        self.addCleanup(self.aws.close)
        self.iam = self.aws.client("iam", "test", REGION, "test")
        # Made by somebody else: the policy of a bucket that we make lets nobody in who comes without TLS, as all do here.
        self.aws.client("s3", "test", REGION, "test").create_bucket(
            Bucket="assets", CreateBucketConfiguration={"LocationConstraint": REGION})
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        golden = ROOT / "tests/clusters/minimal"
        shutil.copy(golden / "cluster.yaml", self.directory)
        shutil.copytree(golden / "credentials", self.directory / "credentials")
        (self.directory / "credentials").chmod(0o700)
        for key in (self.directory / "credentials").glob("*key*"):
            key.chmod(0o600)
        self.policies = json.loads(self.infra("policy", "--s3-uri", PLACE, "--output", "json", keys=None).stdout)

    def infra(self, *arguments, keys):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "AWS_EC2_METADATA_DISABLED": "true"}
        if keys:
            environment |= {"AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"]}
            arguments = (*arguments, "--endpoint-url", self.aws.url)
        return subprocess.run([ROOT / "target/debug/infra", "-C", self.directory, *arguments], env=environment,
                              capture_output=True, text=True, timeout=120)

    def operator(self, name, without=None):
        """A user with exactly these policies, one right perhaps aside."""
        self.iam.create_user(UserName=name)
        for policy, document in self.policies.items():
            document = json.loads(json.dumps(document))
            for statement in document["Statement"]:
                if isinstance(statement["Action"], list) and without in statement["Action"]:
                    statement["Action"].remove(without)
            made = self.iam.create_policy(PolicyName=f"{policy}-{name}", PolicyDocument=json.dumps(document))
            self.iam.attach_user_policy(UserName=name, PolicyArn=made["Policy"]["Arn"])
        return self.iam.create_access_key(UserName=name)["AccessKey"]

    def check(self, outcome, code, words=""):
        self.assertEqual(outcome.returncode, code, outcome.stderr)
        self.assertIn(words, outcome.stderr)

    def test_with_them_a_cluster_comes_and_goes(self):
        keys = self.operator("ada")
        up = self.infra("up", "--s3-uri", PLACE, "--wait", "stacks", keys=keys)
        self.check(up, 0, "done: https://")
        self.assertNotIn("could not be checked", up.stderr)
        self.check(self.infra("plan", "--detailed-exitcode", keys=keys), 0)
        # No API server answers here; everything else was looked at.
        self.check(self.infra("status", keys=keys), 3)
        self.check(self.infra("destroy", "--yes", keys=keys), 0, "minimal is gone")

    def test_a_right_that_is_missing_is_named(self):
        for number, right in enumerate(NEEDED):
            with self.subTest(right=right):
                keys = self.operator(f"user-{number}", without=right)
                self.check(self.infra("up", "--s3-uri", PLACE, "--wait", "stacks", keys=keys), 1, right)

    def test_a_stranger_may_do_nothing(self):
        self.iam.create_user(UserName="stranger")
        keys = self.iam.create_access_key(UserName="stranger")["AccessKey"]
        self.check(self.infra("up", "--s3-uri", PLACE, keys=keys), 1, "`infra policy` prints all that this cluster needs")


if __name__ == "__main__":
    unittest.main()
