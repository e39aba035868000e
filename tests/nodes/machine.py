"""Machines to boot configs on: a root over Debian's base, a disk, a network of their own and an AWS on their loopback.

What is not there: Flatcar itself (its units and docker are stubs), the registry (the image's programs are Debian's, of an
older version), the kernel's own discovery of disks (the stand-in for EC2 makes the device when a volume is attached).
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import threading
import time
import urllib.parse

from golden import CLUSTERS, TOOLS, Config
from stand_in import REGION, StandIn, Volume
from test_userdata import StubServer, add_flatcar, apply, overlay

NSPAWN = TOOLS / "systemd/usr/bin/systemd-nspawn"
LIBRARIES = ["usr/lib/x86_64-linux-gnu/systemd", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
ETCD = TOOLS / "etcd/usr/bin"
NETWORK = "10.123.0"
CLONE_NEWNET = 0x40000000

# Fail in any container, and have nothing to do with ours.
FOREIGN_UNITS = ["systemd-firstboot.service", "systemd-network-generator.service"]

DOCKER = r"""#!/bin/bash
# What the scripts of an etcd member ask of docker, and nothing else: a container is a process with the mounts, the user and the
# environment it would have there.
set -euo pipefail
main=/run/docker-etcd.pid

refuse() {
  echo "docker: unknown here: $*" >&2
  exit 125
}

# Debian's etcd has no etcdutl; etcdctl still did its work, but knows nothing of revisions that jump ahead.
program() {
  local word skip=no
  case $1 in
  etcd | etcdctl) words=("$@") ;;
  etcdutl)
    words=(etcdctl)
    for word in "${@:2}"; do
      case $word in
      --mark-compacted) ;;
      --bump-revision) skip=yes ;;
      *)
        if [[ $skip == yes ]]; then skip=no; else words+=("$word"); fi
        ;;
      esac
    done
    ;;
  *) refuse "$@" ;;
  esac
}

case ${1-} in
rm)
  [[ "$*" == 'rm --force etcd' ]] || refuse "$@"
  rm -f "$main"
  ;;
image)
  [[ "$*" == "image inspect registry.k8s.io/etcd:"* ]] || refuse "$@"
  ;;
exec)
  [[ $2 == etcd ]] || refuse "$@"
  shift 2
  program "$@"
  if [[ ! -e $main ]] || ! kill -0 "$(<"$main")" 2>/dev/null; then
    echo 'Error response from daemon: No such container: etcd' >&2
    exit 1
  fi
  exec nsenter --target "$(<"$main")" --mount -- \
    setpriv --reuid 232 --regid 232 --clear-groups --bounding-set=-all --no-new-privs \
    env -i PATH=/usr/bin ETCDCTL_API=3 "${words[@]}"
  ;;
run)
  shift
  name='' network='' user='' files=() volumes=() locked=no
  while [[ $1 == --* ]]; do
    case $1 in
    --rm) shift ;;
    --read-only)
      locked=yes
      shift
      ;;
    --name | --network | --user | --env-file | --volume)
      case $1 in
      --name) name=$2 ;;
      --network) network=$2 ;;
      --user) user=$2 ;;
      --env-file) files+=("$2") ;;
      --volume) volumes+=("$2") ;;
      esac
      shift 2
      ;;
    --ulimit | --log-driver | --cap-drop | --security-opt) shift 2 ;;
    *) refuse "$@" ;;
    esac
  done
  [[ $1 == registry.k8s.io/etcd:* && $user == *:* ]] || refuse "$@"
  shift
  program "$@"
  case $network in
  host) spaces=(--mount) ;;
  none) spaces=(--mount --net) ;;
  *) refuse "network $network" ;;
  esac
  # As docker reads it: everything behind the first "=", with quotes and blanks.
  environment=(PATH=/usr/bin ETCDCTL_API=3)
  for file in "${files[@]}"; do
    while IFS= read -r line; do
      [[ $line == '' || $line == '#'* ]] || environment+=("$line")
    done <"$file"
  done
  if [[ $name == etcd ]]; then
    echo $$ >"$main"
  fi
  export locked user mounts="${volumes[*]}"
  # shellcheck disable=SC2016
  exec unshare "${spaces[@]}" bash -euc '
    for volume in $mounts; do
      IFS=: read -r from to how <<<"$volume"
      mkdir -p "$to"
      mount --bind "$from" "$to"
      [[ $how != ro ]] || mount -o remount,bind,ro "$to"
    done
    [[ $locked == no ]] || mount -o remount,bind,ro /
    exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --bounding-set=-all --no-new-privs env -i "$@"
  ' docker "${environment[@]}" "${words[@]}"
  ;;
*) refuse "$@" ;;
esac
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


def run(*words, check=True, timeout=300):
    """A command's output; its complaints go into the failure."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(what, look, seconds=180):
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


class Site(contextlib.ExitStack):
    """What a cluster's machines share: a switch, a bucket, disks. Whatever was made in it goes with it."""

    def __init__(self, scratch, cluster):
        super().__init__()
        self.scratch = pathlib.Path(scratch)
        self.cluster = cluster
        self.objects = {}
        self.made = 0

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            # On a bridge in a namespace of its own nobody else can have these addresses.
            self.switch = stack.enter_context(namespace("switch"))
            run("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "bridge", "up")
            self.push(stack.pop_all())
        return self

    def number(self):
        self.made += 1
        return self.made

    def disk(self):
        return self.enter_context(Disk(self.scratch, self.number()))

    def machine(self, member, disk):
        config = Config(CLUSTERS / self.cluster / f"expected/userdata/etcd-{member}.ign")
        return self.enter_context(Machine(self, config, disk, self.number()))


@contextlib.contextmanager
def namespace(name):
    name = f"infra-{os.getpid()}-{name}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        run("ip", "netns", "delete", name)


@contextlib.contextmanager
def port(switch, name, address):
    """A namespace with a cable to the switch."""
    with namespace(name) as inner:
        run("ip", "link", "add", "eth0", "netns", inner, "type", "veth", "peer", name, "netns", switch)
        run("ip", "-n", switch, "link", "set", name, "master", "bridge", "up")
        run("ip", "-n", inner, "address", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", inner, "link", "set", "eth0", "up")
        try:
            yield inner
        finally:
            # A namespace lives on for a moment after its name; the address may be needed again at once.
            run("ip", "-n", switch, "link", "delete", name)


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
        """What CloudFormation does with a larger volumeGiB: the device grows, and nobody tells the file system."""
        with self.file.open("r+b") as file:
            file.truncate(1 << 30)
        run("losetup", "--set-capacity", self.device)

    def release(self):
        """What EC2 does with the volume of a machine that is gone."""
        _, instance, _ = self.volume.scenes[-1]
        self.volume.scenes.clear()
        self.volume.scenes.extend([("in-use", instance, "detaching"), ("available", None, None)])


class Machine:
    """One member on one instance. `boot` starts it again, `discard` is its end."""

    def __init__(self, site, config, disk, number):
        self.site, self.config, self.disk = site, config, disk
        self.name = f"m{number}"
        self.instance = f"i-{number:017x}"
        self.scratch = site.scratch / self.name
        self.console = self.scratch / "console"
        self.settings = dict(line.split("=", 1) for line in config.text("/etc/etcd/etcd.env").splitlines())
        self.member = int(config.role.removeprefix("etcd-"))
        self.process = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.scratch.mkdir()
            self.namespace = stack.enter_context(port(self.site.switch, self.name, address(self.member)))
            self.aws = inside(self.namespace, StandIn)
            stack.callback(self.aws.close)
            self.aws.metadata["meta-data/instance-id"] = self.instance
            self.aws.objects = self.site.objects
            self.aws.volumes[self.disk.id] = self.disk.volume
            self.aws.on_attach = self.plug
            self.root = stack.enter_context(overlay(self.scratch))
            self.groups = [stack.enter_context(control_group(group / self.namespace)) for group in own_control_groups()]
            self.prepare()
            stack.callback(self.kill)
            self.boot()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def discard(self):
        self.stack.close()
        self.disk.release()

    def prepare(self):
        # On a first boot systemd enables what Ignition presets.
        self.write("etc/machine-id", "uninitialized\n")
        with StubServer() as server:
            _, done = apply(self.config, self.root, server, self.scratch)
        assert done.returncode == 0, done.stderr
        add_flatcar(self.root)
        for name in FOREIGN_UNITS:
            (self.root / "etc/systemd/system" / name).symlink_to("/dev/null")
        self.write("usr/bin/docker", DOCKER)
        for program in ("etcd", "etcdctl"):
            shutil.copy(ETCD / program, self.root / "usr/bin" / program)
        hosts = [f"{address(member)} {name}" for member, name in enumerate(self.names())]
        self.write("etc/hosts", "\n".join(["127.0.0.1 localhost", *hosts, ""]))
        shutil.copytree(CLUSTERS / self.site.cluster / "credentials", self.root / "root/credentials")
        settings = {
            "INFRA_CLUSTER": self.settings["ETCD_INITIAL_CLUSTER_TOKEN"],
            "INFRA_REGION": REGION,
            "INFRA_DOMAIN": "amazonaws.com",
            "INFRA_STACK": "test-control-plane",
            "INFRA_RESOURCE": f"EtcdMember{self.member}",
            "INFRA_BUCKET": "team-bucket",
            "INFRA_PREFIX": "clusters/",
            "INFRA_KMS_KEY": "arn:aws:kms:us-west-2:111122223333:key/1234abcd",
            "INFRA_VOLUME_ID": self.disk.id,
            "INFRA_BACKOFF_MILLISECONDS": "100",
            "INFRA_SETTLE_SECONDS": "1",
            **self.aws.environment(),
        }
        self.write("etc/infra/stack.env", "".join(f"{name}={value}\n" for name, value in settings.items()))

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def names(self):
        """Of all members, in their order."""
        members = self.settings["ETCD_INITIAL_CLUSTER"].split(",")
        return [urllib.parse.urlsplit(member.split("=")[1]).hostname for member in members]

    def plug(self, _volume):
        """The device of an attached volume appears."""
        device = pathlib.Path(f"/proc/{self.find_leader()}/root/dev/nvme1n1")
        # This is somebody's /dev: be sure that it is not this machine's.
        assert device.parent.stat().st_dev != os.stat("/dev").st_dev
        os.mknod(device, 0o600 | stat.S_IFBLK, os.stat(self.disk.device).st_rdev)
        link = device.parent / f"disk/by-id/nvme-Amazon_Elastic_Block_Store_{self.disk.id.replace('-', '')}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/nvme1n1")

    def boot(self):
        self.aws.signals.clear()
        join = 'for group in $GROUPS_TO_JOIN; do echo $$ >"$group/cgroup.procs"; done; exec "$@"'
        command = [
            *["sh", "-c", join, "boot"],
            # Should the tests themselves be killed, the machine shuts down.
            *["setpriv", "--pdeathsig", "TERM"],
            *[NSPAWN, "--quiet", "--boot", "--console=pipe", f"--directory={self.root}", f"--machine={self.namespace}"],
            *["--register=no", "--keep-unit", f"--network-namespace-path=/run/netns/{self.namespace}"],
            *["--resolv-conf=off", "--timezone=off", "--link-journal=no"],
        ]
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(str(TOOLS / "systemd" / path) for path in LIBRARIES),
            "GROUPS_TO_JOIN": " ".join(str(group) for group in self.groups),
        }
        with self.console.open("ab") as console:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            )
        self.leader = wait_for("systemd's start", self.find_leader)
        # After a reboot the volume is still attached.
        if self.disk.volume.scenes[0] == ("in-use", self.instance, "attached"):
            self.plug(self.disk.id)

    def children(self):
        with contextlib.suppress(FileNotFoundError):
            return pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return []

    def find_leader(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the machine did not start:\n{self.console.read_text()}")
        for child in self.children():
            # Before that the child may still be in this machine's root.
            root = pathlib.Path(f"/proc/{child}/root")
            if (root / "etc/infra/stack.env").exists() and (root / "run/systemd/private").exists():
                return int(child)
        return None

    def kill(self):
        """The power goes off."""
        if self.process is None:
            return
        # A killed systemd-nspawn would leave the machine running; when the machine's first process is killed, both are gone.
        while self.process.poll() is None:
            for child in self.children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)

    def run(self, *words, check=True):
        """A command on the machine."""
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid"]
        return run("nsenter", "--target", self.leader, *spaces, "--", *words, check=check)

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

    def unit(self, name, *properties):
        shown = self.run("systemctl", "show", name, *(f"--property={property}" for property in properties))
        values = dict(line.split("=", 1) for line in shown.splitlines())
        return tuple(values[property] for property in properties)

    def failed_units(self):
        return self.run("systemctl", "list-units", "--failed", "--plain", "--no-legend").strip()

    def journal(self, *units):
        return self.run("journalctl", "--quiet", "--no-pager", "--output=cat", *(f"--unit={unit}" for unit in units))

    def wait_for_signal(self, seconds=180):
        try:
            wait_for(f"a signal of {self.config.role}", lambda: self.aws.signals, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.journal()[-8000:]}") from None


def address(member):
    return f"{NETWORK}.{10 + member}"


def own_control_groups():
    """The directories of the groups that systemd uses and this process is in."""
    paths = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, name, path = line.split(":", 2)
        paths[name] = path.lstrip("/")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2" and "" in paths:
            yield pathlib.Path(mount) / paths[""]
        if kind == "cgroup" and "name=systemd" in options.split(",") and "name=systemd" in paths:
            yield pathlib.Path(mount) / paths["name=systemd"]


@contextlib.contextmanager
def control_group(group):
    """A machine's own: in a common one, each machine's systemd would take the others' processes for its own."""
    group.mkdir()
    try:
        yield group
    finally:
        for directory, _, _ in os.walk(group, topdown=False):
            os.rmdir(directory)


def inside(namespace, make):
    """What `make` gives in a network namespace: sockets stay where they were made."""
    made = []

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{namespace}") as file:
            if libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        made.append(make())

    # A thread's namespace is its own.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]
