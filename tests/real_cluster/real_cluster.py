"""A whole cluster as on AWS: the stand-in, a network, real machines, and the program in the operator's place.

In comes a directory with a cluster.yaml; `infra` and `kubectl` then run as the operator would run them, in a network namespace
from which AWS, the load balancers and their names can be reached.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
for place in ("scripts/rehearsal", "tests/aws", "tests/nodes", "tests/real_cluster"):
    # First, or `ministack` would be the package.
    sys.path.insert(0, str(ROOT / place))

from account import Account  # noqa: E402
from cluster_file import ClusterFile  # noqa: E402
from machine_room import MachineRoom, RoleCredentials  # noqa: E402
from ministack import MiniStack  # noqa: E402
from network import Network  # noqa: E402

# Longer than any machine takes: a machine that does not come says so itself.
SIGNAL_SECONDS = 900


class RealAccount(Account):
    """An account whose machines are booted, and take their time."""

    pace = {"delay": 0.02, "launch_interval": 1.0, "signal_timeout": SIGNAL_SECONDS, "real_machines": True}


class RealCluster(contextlib.ExitStack):
    """On a stand-in for AWS and in an account of it; ends with its network and its machines."""

    def __init__(self, scratch, aws, account, cluster, parts):
        super().__init__()
        self.scratch, self.aws, self.account, self.cluster, self.parts = pathlib.Path(scratch), aws, account, cluster, parts
        self.directory = cluster.path.parent
        self.binary = ROOT / "target/debug/infra"

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            region = self.cluster.facts["region"]
            block = self.cluster.section("network").get("vpcCIDR", "10.0.0.0/16")
            self.network = stack.enter_context(Network(
                self.scratch, region, block, self.aws.url, RoleCredentials(self.account.client), self.parts.base,
                self.parts.extensions))
            self.room = stack.enter_context(MachineRoom(
                self.aws, self.cluster.account, region, self.network, self.parts, self.scratch))
            self.environment = {
                "PATH": os.environ["PATH"], "HOME": str(self.scratch), "NO_COLOR": "1", "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_ACCESS_KEY_ID": self.cluster.account, "AWS_SECRET_ACCESS_KEY": "any",
                "AWS_ENDPOINT_URL": f"http://{self.network.endpoints_address}", "INFRA_RELEASE_SERVER": self.aws.url,
                "INFRA_TEST_TEMPO": "0.1"}
            self.push(stack.pop_all())
        return self

    def infra(self, *words, expected=(0,), timeout=1200):
        """How `infra` ends and what it prints, as subprocess has it."""
        done = self.run(self.binary, *words, timeout=timeout)
        if done.returncode not in expected:
            raise AssertionError(f"infra {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}\n{self.report()}")
        return done

    @contextlib.contextmanager
    def running_infra(self, *words, **environment):
        """`infra` beside whatever the caller does meanwhile; has ended well when the block ends."""
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(self.operators_command(self.binary, *words), cwd=self.directory,
                                       env=self.environment | environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                yield RunningInfra(process, output.fileno())
                code = process.wait(1200)
            finally:
                process.kill()
                process.wait()
            if code:
                output.seek(0)
                raise AssertionError(f"infra {' '.join(words)}: exit {code}\n{output.read()}\n{self.report()}")

    def kubectl(self, *words, check=True, input=None, timeout=120):
        done = self.run(self.parts.kubectl, "--kubeconfig", self.directory / "kubeconfig", *words, timeout=timeout, input=input)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, *words, timeout=120, input=None):
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run(
            self.operators_command(*words), cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=timeout, **stdin)

    def operators_command(self, *words):
        return [str(word) for word in self.network.command(self.network.operator, *words)]

    def failures(self):
        """What has gone wrong with the machines and the network, as opposed to what runs on them."""
        return self.room.failures + self.network.load_balancers.failures

    def report(self):
        return "\n".join([*self.failures(), self.room.last_words()])


@dataclasses.dataclass
class RunningInfra:
    process: subprocess.Popen
    output: int

    def printed(self):
        """What it has printed so far."""
        return os.pread(self.output, 1 << 20, 0).decode()

    def has_ended(self):
        return self.process.poll() is not None


@contextlib.contextmanager
def scratch_directory(part=""):
    """For the files of a run; kept in a new directory, or a part of it, if INFRA_REAL_CLUSTER_DIRECTORY names one."""
    if kept := os.environ.get("INFRA_REAL_CLUSTER_DIRECTORY"):
        directory = pathlib.Path(kept) / part
        # Nothing of the caller's is overwritten: a directory that exists is an error.
        directory.mkdir(parents=True)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="infra-real-") as scratch:
        yield pathlib.Path(scratch)


@contextlib.contextmanager
def real_cluster(scratch, text, parts):
    """A cluster with this cluster.yaml, in an account that has what the file names."""
    directory = pathlib.Path(scratch) / "cluster"
    directory.mkdir()
    (directory / "cluster.yaml").write_text(text)
    with cluster_of_directory(scratch, directory, parts) as real:
        yield real


@contextlib.contextmanager
def cluster_of_directory(scratch, directory, parts):
    """The cluster of a directory that has a cluster.yaml, in an account that has what the file names."""
    cluster = ClusterFile(directory / "cluster.yaml")
    with MiniStack() as aws:
        account = RealAccount(aws, cluster)
        for what, error in account.make_what_is_named():
            assert not error, f"{what}: {error}"
        with RealCluster(scratch, aws, account, cluster, parts) as real:
            yield real
