"""The clusters that are measured: three availability zones, three etcd members, two controllers, a shared file system, and as many pools as wanted."""

import pathlib
import tempfile

from processes import measure

ACCOUNT, REGION, NAME = "111122223333", "us-west-2", "bench"
HEAD = f"""\
clusterName: {NAME}
externalDNSName: k8s.example.com
region: {REGION}
availabilityZones: [{REGION}a, {REGION}b, {REGION}c]
kmsKeyArn: arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab
etcd: {{count: 3}}
controllers: {{count: 2}}
storage: {{efs: {{}}}}
pools:
"""
INIT = [
    "init", "--cluster-name", NAME, "--external-dns-name", "k8s.example.com", "--region", REGION,
    "--availability-zone", f"{REGION}a,{REGION}b,{REGION}c", "--ha", "--gpu", "g5.xlarge", "--gpu-count", "3",
    "--kms-key-arn", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
]


def stacks_with(pools):
    """How many stacks a cluster has: the network, the file system, the control plane, and one for each pool."""
    return 3 + pools


def write_cluster(directory, pools):
    """Every second pool has GPUs."""
    kinds = ("m5.large", "g5.xlarge")
    lines = [f"- {{name: p{number}, instanceType: {kinds[number % 2]}, count: 1}}\n" for number in range(pools)]
    path = pathlib.Path(directory, "cluster.yaml")
    path.write_text(HEAD + "".join(lines))
    return path


class Rendered:
    """A directory with a cluster of this many pools and its credentials, until it is closed."""

    def __init__(self, infra, pools):
        self.temporary = tempfile.TemporaryDirectory(prefix="infra-bench-")
        self.directory = pathlib.Path(self.temporary.name)
        self.file = write_cluster(self.directory, pools)
        measure([infra, "render", "--generate-ca"], self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()
