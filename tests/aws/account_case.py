"""A stand-in for AWS that the tests of a module share, and a test case with an account of its own there."""

import datetime
import itertools
import json
import time
import unittest
import urllib.request

import botocore.exceptions

from ministack import MiniStack

REGION = "us-west-2"
TAGS = [{"Key": "infra:cluster", "Value": "mine"}]
accounts = itertools.count(100000000001)


def setUpModule():
    """Starts the stand-in, which ends with the module. Modules import this function; unittest finds it by its name."""
    AccountCase.aws = MiniStack()
    unittest.addModuleCleanup(AccountCase.aws.close)


def shared_stand_in():
    """The stand-in of the module whose tests are running."""
    return AccountCase.aws


def new_account():
    """Twelve digits that no other test of this process uses."""
    return str(next(accounts))


def days_since(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds() / 86400)


class AccountCase(unittest.TestCase):
    """Each test in an account of its own; `self.ec2` and so on are clients of its services."""

    aws = None

    def setUp(self):
        self.addCleanup(self.aws.control)
        self.account = new_account()

    def __getattr__(self, service):
        if service.startswith("_"):
            raise AttributeError(service)
        client = self.aws.client(service.replace("_", "-"), self.account, REGION)
        setattr(self, service, client)
        return client

    def refused(self, words, call, *arguments, **named):
        with self.assertRaisesRegex(botocore.exceptions.ClientError, words):
            call(*arguments, **named)

    def soon(self, question):
        """The first answer that is true; how long it takes depends on what else the machine does."""
        deadline = time.monotonic() + 120
        while not (answer := question()):
            self.assertLess(time.monotonic(), deadline, "it takes too long")
            time.sleep(0.02)
        return answer

    def site(self):
        """What there is to boot, and what balances it, as a real cluster reads it from the stand-in."""
        url = f"{self.aws.url}/_site?account={self.account}&region={REGION}"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
            return json.load(answer)


class NetworkCase(AccountCase):
    """With a VPC, a subnet and a security group."""

    def setUp(self):
        super().setUp()
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=f"{REGION}a")
        self.subnet = subnet["Subnet"]["SubnetId"]
        self.group = self.make_group("one")

    def make_group(self, name):
        return self.ec2.create_security_group(VpcId=self.vpc, GroupName=name, Description=name)["GroupId"]
