"""An account on a stand-in for AWS, in which a cluster can live, and what the stand-in has seen of it."""

import contextlib
import datetime
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# First, or `ministack` would be the package.
sys.path.insert(0, str(ROOT / "tests/aws"))
sys.path.append(str(ROOT / "scripts/rehearsal"))

from account import Account
from cluster_file import ClusterFile
from kubernetes_api import KubernetesApi
from ministack import MiniStack


class Place:
    """A stand-in of its own with all that the cluster takes for granted, until it is closed."""

    def __init__(self, cluster):
        self.closing = contextlib.ExitStack()
        with contextlib.ExitStack() as closing:
            self.aws = closing.enter_context(MiniStack())
            file = ClusterFile(cluster.file)
            self.account = Account(self.aws, file)
            for what, error in self.account.make_what_is_named():
                if error:
                    raise RuntimeError(f"the stand-in has no {what}") from error
            api = KubernetesApi(cluster.directory / "credentials", self.account, file)
            closing.callback(api.close)
            self.closing = closing.pop_all()
        # Nothing of the caller's: no proxy, no profile, no credentials.
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(cluster.directory), "AWS_ACCESS_KEY_ID": file.account,
            "AWS_SECRET_ACCESS_KEY": "any", "AWS_ENDPOINT_URL": self.aws.url, "AWS_DEFAULT_REGION": self.account.region,
            "AWS_EC2_METADATA_DISABLED": "true", "INFRA_API_SERVER": api.address, "INFRA_RELEASE_SERVER": self.aws.url,
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.close()

    def watch(self, caller):
        return Watch(self, caller)

    def events_since(self, moment):
        """The first and the last moment of what has happened to each stack since then."""
        cloudformation = self.account.client("cloudformation")
        stacks = [stack["StackId"] for page in cloudformation.get_paginator("list_stacks").paginate()
                  for stack in page["StackSummaries"]]
        for stack in stacks:
            pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack)
            times = [event["Timestamp"] for page in pages for event in page["StackEvents"] if event["Timestamp"] >= moment]
            if times:
                yield min(times), max(times)


class Watch:
    """What happens from now on."""

    def __init__(self, place, caller):
        self.place, self.caller = place, caller
        self.calls_before = place.aws.calls().get(caller, 0)
        self.began = datetime.datetime.now(datetime.timezone.utc)

    def calls(self):
        return self.place.aws.calls().get(self.caller, 0) - self.calls_before

    def seconds_in_stacks(self):
        """How long at least one stack was worked on."""
        total, until = 0.0, None
        for begin, end in sorted(self.place.events_since(self.began)):
            if until is None or begin > until:
                until = begin
            if end > until:
                total += (end - until).total_seconds()
                until = end
        return total
