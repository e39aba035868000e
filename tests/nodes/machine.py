"""Machines to boot configs on: a root over Debian's base, a disk, a network of their own and an AWS on their loopback.

What is not there: Flatcar itself (its units and docker are stubs), the registry (the image's programs are Debian's, of an
older version), the kernel's own discovery of disks (the stand-in for EC2 makes the device when a volume is attached).
"""

import contextlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import urllib.parse

from container import (
    FOREIGN_UNITS, NSPAWN, Container, bridged_namespace, control_group, inside, own_control_groups, run, switch_namespace, wait_for
)
from ec2_resources import Volume
from golden import CLUSTERS, TOOLS, Config
from signature import REGION
from stand_in import StandIn
from test_userdata import StubServer, add_flatcar, apply, overlay

ETCD = TOOLS / "etcd/usr/bin"
NETWORK = "10.123.0"

DOCKER = pathlib.Path(__file__).with_name("docker.sh")

# Called by mount(8). Not every kernel has an NFS client: a directory replaces the server, once it has something to serve.
NFS_CLIENT = """#!/bin/sh
if [ ! -e /srv/server/hello ]; then
  echo "mount.nfs4: Failed to resolve server ${1%%:*}: Name or service not known" >&2
  exit 32
fi
exec mount --bind /srv/server "$2"
"""


def why_not():
    """Why machines cannot be booted here, or nothing."""
    if os.geteuid() != 0:
        return "booting machines needs the superuser"
    if pathlib.Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
        return "booting machines needs the superuser of the machine, not of a user namespace"
    for path in (NSPAWN, ETCD / "etcd", TOOLS / "base/etc/os-release"):
        if not path.exists():
            return f"{path.relative_to(TOOLS.parent.parent)} is missing: run scripts/prepare-tests"
    for program in ("ip", "losetup", "nsenter", "setpriv", "mkfs.ext4"):
        if not shutil.which(program):
            return f"{program} is missing"
    for group in own_control_groups():
        if not os.access(group, os.W_OK):
            return f"booting machines needs control groups of their own: {group} is read-only"
    for what, probe in [
        ("mounts and network namespaces", ["unshare", "--mount", "--net", "true"]),
        ("loop devices", ["losetup", "--find"]),
    ]:
        run = subprocess.run(probe, capture_output=True, text=True)
        if run.returncode:
            return f"booting machines needs {what}: {run.stderr.strip()}"
    return None


class Site(contextlib.ExitStack):
    """What a cluster's machines share: a switch, a bucket, disks. Whatever was created in it is deleted with it."""

    def __init__(self, scratch, cluster):
        super().__init__()
        self.scratch = pathlib.Path(scratch)
        self.cluster = cluster
        self.objects = {}
        self.versioning, self.versions = None, {}
        self.made = 0

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            # On a bridge in a namespace of its own no other test can have these addresses.
            self.switch = stack.enter_context(switch_namespace("switch"))
            self.push(stack.pop_all())
        return self

    def number(self):
        self.made += 1
        return self.made

    def disk(self):
        return self.enter_context(Disk(self.scratch, self.number()))

    def config(self, role):
        return Config(CLUSTERS / self.cluster / f"expected/userdata/{role}.ign")

    def machine(self, member, disk):
        return self.enter_context(Member(self, self.config(f"etcd-{member}"), disk, self.number()))

    def worker(self, pool, drives=()):
        return self.enter_context(Worker(self, self.config(f"pool-{pool}"), self.number(), drives))


class Disk:
    """A blank EBS volume: what EC2 says of it, and a block device."""

    def __init__(self, scratch, number):
        self.file = scratch / f"disk-{number}"
        self.id = f"vol-{number:017x}"
        self.volume = Volume()

    def __enter__(self):
        with self.file.open("wb") as file:
            file.truncate(512 << 20)
        self.device = run("losetup", "--find", "--show", self.file).strip()
        return self

    def __exit__(self, *_):
        run("losetup", "--detach", self.device)
        self.file.unlink()

    def enlarge(self):
        """What CloudFormation does with a larger volumeGiB: the device grows, and the file system does not notice."""
        with self.file.open("r+b") as file:
            file.truncate(1 << 30)
        run("losetup", "--set-capacity", self.device)

    def release(self):
        """What EC2 does with the volume of a machine that is gone."""
        _, instance, _ = self.volume.scenes[-1]
        self.volume.scenes.clear()
        self.volume.scenes.extend([("in-use", instance, "detaching"), ("available", None, None)])


class Machine(Container):
    """One instance of any role. `boot` starts it again."""

    resource = None
    base = TOOLS / "base"

    def __init__(self, site, config, number, host):
        self.site, self.config, self.host = site, config, host
        self.name = f"m{number}"
        self.instance = f"i-{number:017x}"
        self.scratch = site.scratch / self.name
        # Namespace and groups exist once the machine is entered.
        super().__init__(self.scratch / "root", None, [], self.scratch / "console")

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.scratch.mkdir()
            self.namespace = stack.enter_context(bridged_namespace(self.site.switch, self.name, self.host))
            self.aws = inside(self.namespace, StandIn)
            stack.callback(self.aws.close)
            self.aws.metadata["meta-data/instance-id"] = self.instance
            self.aws.objects = self.site.objects
            self.aws.versioning, self.aws.versions = self.site.versioning, self.site.versions
            stack.enter_context(overlay(self.scratch, self.base))
            stack.callback(self.clear)
            self.groups = [stack.enter_context(control_group(group / self.namespace)) for group in own_control_groups()]
            self.prepare()
            stack.callback(self.kill)
            self.boot()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def prepare(self):
        # On a first boot systemd enables what Ignition presets.
        self.write("etc/machine-id", "uninitialized\n")
        with StubServer() as server:
            _, done = apply(self.config, self.root, server, self.scratch)
        assert done.returncode == 0, done.stderr
        add_flatcar(self.root)
        for name in FOREIGN_UNITS:
            (self.root / "etc/systemd/system" / name).symlink_to("/dev/null")
        settings = {
            "INFRA_REGION": REGION,
            "INFRA_DOMAIN": "amazonaws.com",
            "INFRA_STACK": "test-control-plane",
            "INFRA_RESOURCE": self.resource,
            "INFRA_BACKOFF_MILLISECONDS": "100",
            **self.stack_settings(),
            **self.aws.environment(),
        }
        self.write("etc/infra/stack.env", "".join(f"{name}={value}\n" for name, value in settings.items()))

    def stack_settings(self):
        """What the stack passes to a machine of this role."""
        return {}

    def clear(self):
        """Before the machine's disk is deleted."""

    def write(self, path, text, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def boot(self):
        self.aws.signals.clear()
        self.start()

    def wait_for_signal(self, seconds=180):
        try:
            wait_for(f"a signal of {self.config.role}", lambda: self.aws.signals, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.journal()[-8000:]}") from None


class Worker(Machine):
    """A pool's machine whose kubelet runs and does nothing. The file system can be mounted once `server_starts` was called.

    `drives` are disks that it brings with it; the kernel's word for them is a directory of ours.
    """

    resource = "Nodes"

    def __init__(self, site, config, number, drives):
        self.drives = drives
        super().__init__(site, config, number, f"{NETWORK}.{100 + number}")

    def prepare(self):
        super().prepare()
        self.write("opt/bin/kubelet", "#!/bin/sh\nexec sleep infinity\n", 0o755)
        self.write("opt/bin/kubectl", "#!/bin/sh\nprintf 'True KubeletReady: ready'\n", 0o755)
        for script in ("unpack-cni", "fetch-nvidia-runtime"):
            self.write(f"opt/infra/bin/{script}", "#!/bin/sh\n", 0o755)
        self.write("etc/systemd/system/containerd.service.d/zz.conf", "[Service]\nType=oneshot\nRemainAfterExit=yes\n")
        self.write("usr/sbin/mount.nfs4", NFS_CLIENT, 0o755)
        self.write("var/console", "")
        (self.root / "srv/server").mkdir(parents=True)
        self.add_drives()

    def add_drives(self):
        (self.root / "srv/dev").mkdir()
        for number, drive in enumerate(self.drives, 1):
            self.write(f"srv/sys/block/nvme{number}n1/device/model", "Amazon EC2 NVMe Instance Storage        \n")
            os.mknod(self.root / f"srv/dev/nvme{number}n1", 0o600 | stat.S_IFBLK, os.stat(drive.device).st_rdev)

    def stack_settings(self):
        # systemd-nspawn's own console cannot be written to.
        return {"INFRA_CONSOLE": "/var/console", "INFRA_BLOCK_DIRECTORY": "/srv/sys/block", "INFRA_DEVICE_DIRECTORY": "/srv/dev"}

    def console_text(self):
        return (self.root / "var/console").read_text()

    def server_starts(self):
        self.write("srv/server/hello", "from the server\n")

    def clear(self):
        # What is immutable cannot be deleted with the machine's disk either.
        subprocess.run(["chattr", "-R", "-i", self.root / "mnt"], check=True)


class Member(Machine):
    """An etcd member. `discard` is its end."""

    def __init__(self, site, config, disk, number):
        self.disk = disk
        self.settings = dict(line.split("=", 1) for line in config.text("/etc/etcd/etcd.env").splitlines())
        self.member = int(config.role.removeprefix("etcd-"))
        self.resource = f"EtcdMember{self.member}"
        super().__init__(site, config, number, address(self.member))

    def discard(self):
        self.stack.close()
        self.disk.release()

    def prepare(self):
        self.aws.volumes[self.disk.id] = self.disk.volume
        self.aws.on_attach = self.plug
        super().prepare()
        shutil.copy(DOCKER, self.root / "usr/bin/docker")
        for program in ("etcd", "etcdctl"):
            shutil.copy(ETCD / program, self.root / "usr/bin" / program)
        hosts = [f"{address(member)} {name}" for member, name in enumerate(self.names())]
        self.write("etc/hosts", "\n".join(["127.0.0.1 localhost", *hosts, ""]))
        shutil.copytree(CLUSTERS / self.site.cluster / "credentials", self.root / "root/credentials")

    def stack_settings(self):
        return {
            "INFRA_CLUSTER": self.settings["ETCD_INITIAL_CLUSTER_TOKEN"],
            "INFRA_BUCKET": "team-bucket",
            "INFRA_PREFIX": "clusters/",
            "INFRA_KMS_KEY": "arn:aws:kms:us-west-2:111122223333:key/1234abcd",
            "INFRA_VOLUME_ID": self.disk.id,
            "INFRA_SETTLE_SECONDS": "1",
        }

    def names(self):
        """Of all members, in their order."""
        members = self.settings["ETCD_INITIAL_CLUSTER"].split(",")
        return [urllib.parse.urlsplit(member.split("=")[1]).hostname for member in members]

    def plug(self, _volume):
        """The device of an attached volume appears."""
        device = pathlib.Path(f"/proc/{self.find_leader()}/root/dev/nvme1n1")
        # Check that this /dev is the container's, and not this machine's.
        assert device.parent.stat().st_dev != os.stat("/dev").st_dev
        os.mknod(device, 0o600 | stat.S_IFBLK, os.stat(self.disk.device).st_rdev)
        link = device.parent / f"disk/by-id/nvme-Amazon_Elastic_Block_Store_{self.disk.id.replace('-', '')}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/nvme1n1")

    def boot(self):
        super().boot()
        # After a reboot the volume is still attached.
        if self.disk.volume.scenes[0] == ("in-use", self.instance, "attached"):
            self.plug(self.disk.id)

    def etcdctl(self, *words, identity="etcd-client", seconds=10, check=True):
        """With the certificate of one of the cluster's identities, to this machine's member by its name."""
        files = [f"--cert=/root/credentials/{identity}.pem", f"--key=/root/credentials/{identity}-key.pem"] if identity else []
        return run(
            *["ip", "netns", "exec", self.namespace, "chroot", self.root, "env", "-i", "ETCDCTL_API=3", "etcdctl"],
            *[f"--endpoints=https://{self.names()[self.member]}:2379", "--cacert=/root/credentials/etcd-ca.pem", *files],
            *[f"--command-timeout={seconds}s", *words],
            check=check,
        )

    def put(self, key, value):
        self.etcdctl("put", key, value)

    def get(self, key):
        return self.etcdctl("get", "--print-value-only", key).strip()

    def status(self):
        return json.loads(self.etcdctl("endpoint", "status", "--write-out=json"))[0]["Status"]


def address(member):
    return f"{NETWORK}.{10 + member}"
