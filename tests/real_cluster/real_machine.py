"""One machine of a real cluster: booted from the user data of its launch template, with real programs.

In come what the stand-in for EC2 says of an instance and the network of its VPC; out comes a machine that Ignition has configured
from the object in S3 and systemd has booted. What differs from a machine on AWS is in `adapt`, and in docs/real-cluster.md. Machines that
cloud-init configures are in cloud_init_machine.py.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import stat
import subprocess
import threading
import time

import authority
import drives
import gpus
from container import FOREIGN_UNITS, Container, run
from image_digests import digest_names
from test_userdata import ENGINE

# Runs the programs of etcd as containers with the mounts and the user that the scripts ask for.
DOCKER = pathlib.Path(__file__).parents[1] / "nodes/docker.sh"
FILES = pathlib.Path(__file__).parent / "machine_files"
CAP_SYS_RESOURCE = 1 << 24
# Of the kubelet, which refuses version 1.
OLD_CONTROL_GROUPS = "failCgroupV1: false\n"
# Flatcar's units that have nothing to do here, and Debian's that would wait for what a container does not have.
MASKED_UNITS = [
    *FOREIGN_UNITS, "nfs-client.target", "systemd-udevd.service", "rpc-statd-notify.service", "systemd-networkd.service",
    "systemd-networkd.socket", "systemd-networkd-wait-online.service",
]
EMPTY_UNITS = ["amazon-ssm-agent", "locksmithd", "nvidia", "docker", "rpc-statd"]
# What containerd and runc do, and systemd-nspawn refuses unless it is told.
SYSTEM_CALLS = "bpf keyctl add_key perf_event_open @raw-io @module"
# Of the root disk, of which only what is written takes space here.
ROOT_GIB = 30
# A machine's own kernel would let it write these; here they are files in their place. Values as a fresh kernel has them.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 0, "vm/panic_on_oom": 0, "kernel/panic": 0, "kernel/panic_on_oops": 0,
    "fs/inotify/max_user_instances": 128, "fs/inotify/max_user_watches": 8192,
}


class Machine(Container):
    """`switch_on` boots it, also again after `cut_power`; `discard` is its end."""

    # What its root is a layer over; if there is nothing, what all machines share.
    base = None

    def __init__(self, network, facts, parts, scratch, name):
        """`parts` are the programs, images and directories that every machine is made of (see parts.Parts)."""
        self.network, self.facts, self.parts = network, facts, parts
        self.base = self.base or parts.base
        self.id, self.name, self.scratch = facts["id"], name, pathlib.Path(scratch) / name
        self.role = facts["tags"].get("infra:role", "")
        self.facts["decodedUserData"] = base64.b64decode(facts["userData"])
        self.disks = {}
        self.stack = contextlib.ExitStack()
        self.ready = threading.Event()
        self.failure = None
        self.discarded = threading.Event()
        options = [
            "--capability=all", "--bind=/dev/kmsg", f"--bind={parts.shared}:/srv/efs",
            f"--bind={self.scratch / 'disk/containerd'}:/var/lib/containerd",
            # Of every version: after an upgrade, add-ons of the newer one run on older machines too.
            *(f"--bind-ro={release.images}:/images/{minor}" for minor, release in parts.releases.items()),
            *([f"--bind-ro={parts.more_images}:/images/more"] if parts.more_images else []),
            f"--system-call-filter={SYSTEM_CALLS}",
        ]
        # Sysctls of its network are the machine's own.
        environment = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
        super().__init__(self.scratch / "root", None, [], self.scratch / "console", options, environment)

    def connect(self):
        self.scratch.mkdir()
        self.namespace, connection = self.network.connect(self.name, self.facts)
        self.stack.push(connection)
        self.groups = [self.stack.enter_context(control_group(group / self.namespace)) for group in hierarchies()]

    def install(self):
        """From a blank disk to one that can be booted."""
        self.mount_root()
        config = self.fetch()
        self.release = self.parts.release_of(config)
        self.apply(config)
        self.adapt()

    def mount_root(self):
        """A layer over what all machines share, on a disk of the machine's own: the kubelet watches how full that is."""
        image, disk = self.scratch / "disk.img", self.scratch / "disk"
        with image.open("wb") as file:
            file.truncate(ROOT_GIB << 30)
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", image)
        disk.mkdir()
        run("mount", "-o", "loop", image, disk)
        self.stack.callback(run, "umount", "--lazy", disk)
        # Containers need a directory beside the layers: layers on layers are refused.
        upper, work = disk / "upper", disk / "work"
        for directory in (upper, work, self.root, disk / "containerd"):
            directory.mkdir()
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.base},upperdir={upper},workdir={work}", self.root)
        self.stack.callback(run, "umount", "--lazy", self.root)

    def fetch(self):
        """Ignition's first stage: user data from the metadata service, merged with the object from S3."""
        cache, state = self.scratch / "config.json", self.scratch / "state"
        words = [
            ENGINE, "--platform=aws", "--stage=fetch", f"--root={self.root}", f"--config-cache={cache}", f"--state-file={state}",
            f"--neednet={self.scratch / 'neednet'}", "--fetch-timeout=60s", "--log-to-stdout",
        ]
        environment = {"PATH": os.environ["PATH"], "SSL_CERT_FILE": str(authority.certificate())}
        done = subprocess.run(
            [str(word) for word in self.network.command(self.namespace, *words)], env=environment, capture_output=True, text=True)
        if done.returncode or not cache.exists():
            raise AssertionError(f"Ignition cannot fetch its config: {done.stdout[-4000:]}{done.stderr[-2000:]}")
        config = json.loads(cache.read_text())
        # Done already; the next stage would merge once more.
        del config["ignition"]["config"]
        return config

    def apply(self, config):
        link = self.scratch / "ignition-apply"
        link.symlink_to(ENGINE)
        # On a first boot systemd enables what Ignition presets.
        self.write("etc/machine-id", "uninitialized\n")
        with FileServer(self.release.downloads) as server:
            path = self.scratch / "applied.json"
            path.write_text(json.dumps(server.lead_here(config)))
            done = subprocess.run(
                [link, f"--root={self.root}", path], env={**os.environ, "container": "1"}, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"Ignition cannot apply its config: {done.stdout[-4000:]}{done.stderr[-2000:]}")

    def adapt(self):
        """What a machine on AWS gets from Flatcar, its kernel and DHCP."""
        for program in self.release.programs:
            shutil.copy(program, self.root / "usr/bin" / program.name)
        shutil.copy(DOCKER, self.root / "usr/bin/docker")
        for file in FILES.rglob("*"):
            if file.is_file():
                target = self.root / file.relative_to(FILES)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy(file, target)
        for name in ("mount.nfs4", "umount.nfs4", "umount.nfs"):
            (self.root / "usr/sbin" / name).unlink(missing_ok=True)
        (self.root / "usr/sbin/mount.nfs4").symlink_to("mount.nfs")
        for name in EMPTY_UNITS:
            unit = self.root / f"usr/lib/systemd/system/{name}.service"
            if not unit.exists():
                unit.write_text(f"[Unit]\nDescription={name}\n[Service]\nExecStart=/usr/bin/true\n")
        for name in MASKED_UNITS:
            (self.root / "etc/systemd/system" / name).unlink(missing_ok=True)
            (self.root / "etc/systemd/system" / name).symlink_to("/dev/null")
        self.enable("kernel-settings.service", "sysinit.target")
        # Releases share images.
        names = sorted({name for minor in self.parts.releases for name in digest_names(minor).items()})
        self.write("usr/share/image-digests", "".join(f"{tagged} {digested}\n" for tagged, digested in names))
        self.write("etc/hostname", self.facts["name"] + "\n")
        self.write("etc/hosts", "127.0.0.1 localhost\n")
        self.write("etc/systemd/resolved.conf.d/vpc.conf",
                   f"[Resolve]\nDNS={self.network.resolver}\nFallbackDNS=\nLLMNR=no\nMulticastDNS=no\nDNSStubListener=no\n")
        resolver = self.root / "etc/resolv.conf"
        resolver.unlink(missing_ok=True)
        resolver.symlink_to("/run/systemd/resolve/resolv.conf")
        self.write("etc/ssl/certs/ca-certificates.crt", authority.trusted_certificates(self.base))
        for name, value in KERNEL_SETTINGS.items():
            self.write(f"usr/share/kernel-settings/{name}", f"{value}\n")
        # The journal outlives a power cut there.
        (self.root / "var/log/journal").mkdir(exist_ok=True)
        (self.root / "images").mkdir()
        (self.root / "srv/efs").mkdir(parents=True, exist_ok=True)
        self.adapt_to_config()

    def adapt_to_config(self):
        """What depends on the files that Ignition has written."""
        if (self.root / "etc/kubernetes/kubelet.yaml").exists():
            self.enable("import-images.service", "multi-user.target")
        if gpus.has_gpus(self.root):
            gpus.adapt(self)
        if drives.has_drives(self.root):
            settings = self.root / "etc/infra/stack.env"
            lines = [settings.read_text().rstrip("\n"), *(f"{name}={value}" for name, value in drives.add_drive(self).items())]
            settings.write_text("\n".join(lines) + "\n")
        self.adapt_to_kernel()

    def adapt_to_kernel(self):
        """The only rendered files that change, and only where this machine's kernel is not a node's."""
        kubelet = self.root / "etc/kubernetes/kubelet.yaml"
        if kubelet.exists() and has_old_control_groups():
            kubelet.write_text(kubelet.read_text() + OLD_CONTROL_GROUPS)
        for containerd in (self.root / "etc/containerd").glob("config*.toml"):
            if not may_raise_limits():
                anchor = "[plugins.'io.containerd.cri.v1.runtime']\n"
                containerd.write_text(containerd.read_text().replace(anchor, f"{anchor}restrict_oom_score_adj = true\n"))

    def write(self, path, text, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def enable(self, unit, target):
        wants = self.root / f"etc/systemd/system/{target}.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / unit).symlink_to(f"/usr/lib/systemd/system/{unit}")

    def switch_on(self):
        self.start()
        for volume_id, device in self.disks.items():
            self.plug(volume_id, device)

    def attach(self, volume_id, device):
        """The device of a volume appears."""
        if volume_id not in self.disks:
            self.disks[volume_id] = device
            self.plug(volume_id, device)

    def plug(self, volume_id, device):
        path = pathlib.Path(f"/proc/{self.leader}/root/dev/nvme1n1")
        # Check that this /dev is the container's, and not this machine's.
        assert path.parent.stat().st_dev != os.stat("/dev").st_dev
        os.mknod(path, 0o600 | stat.S_IFBLK, os.stat(device).st_rdev)
        link = path.parent / f"disk/by-id/nvme-Amazon_Elastic_Block_Store_{volume_id.replace('-', '')}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/nvme1n1")

    def cut_power(self):
        self.kill()
        self.sweep()

    def sweep(self):
        """A machine without power has no control groups left; the kubelet would take long over them."""
        for group in self.groups:
            remove_below(group)

    def discard(self):
        self.kill()
        # The disk is deleted; who keeps the files of a run needs to know what happened.
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(self.root / "var/log/journal", self.scratch / "journal", dirs_exist_ok=True)
        self.discarded.set()
        self.stack.close()
        # systemd-nspawn keeps the mounts of its start: in machines that were started since, the disk is mounted still and takes space.
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self.scratch / "disk.img", 0)
            (self.scratch / "disk.img").unlink()


class FileServer:
    """Gives Ignition the programs that were built here in the place of those it would download, on a free port of the loopback."""

    def __init__(self, downloads):
        self.downloads = downloads

    def __enter__(self):
        downloads = self.downloads

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = downloads[self.path]
                self.send_response(200)
                self.send_header("Content-Length", str(path.stat().st_size))
                self.end_headers()
                with path.open("rb") as file:
                    shutil.copyfileobj(file, self.wfile, 1 << 20)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def lead_here(self, config):
        """The same config, with remote sources and their hashes changed."""
        for file in config.get("storage", {}).get("files", []):
            contents = file["contents"]
            if (contents.get("source") or "").startswith("https://"):
                path = self.downloads[file["path"]]
                contents["source"] = f"http://127.0.0.1:{self.server.server_port}{file['path']}"
                contents["verification"]["hash"] = "sha256-" + digest(path)
        return config


def digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def has_old_control_groups():
    return not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()


def may_raise_limits():
    status = pathlib.Path("/proc/self/status").read_text()
    capabilities = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(capabilities & CAP_SYS_RESOURCE)


def hierarchies():
    """The directory of this process's group in every hierarchy of control groups."""
    paths = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        paths |= {name: path.lstrip("/") for name in names.split(",")}
    found = {}
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        names = {"cgroup2": [""], "cgroup": options.split(",")}.get(kind, [])
        if known := [name for name in names if name in paths]:
            found[mount] = pathlib.Path(mount) / paths[known[0]]
    return list(found.values())


@contextlib.contextmanager
def control_group(group):
    """A machine's own, ready for groups inside of it."""
    group.mkdir()
    # The first hierarchy of CPU sets gives nothing on by itself.
    if (group / "cpuset.cpus").exists() and (group / "cgroup.clone_children").exists():
        for name in ("cpuset.cpus", "cpuset.mems"):
            (group / name).write_text((group.parent / name).read_text())
        (group / "cgroup.clone_children").write_text("1")
    try:
        yield group
    finally:
        remove_below(group)
        group.rmdir()


def remove_below(group, seconds=10):
    end = time.monotonic() + seconds
    for directory, _, _ in os.walk(group, topdown=False):
        while pathlib.Path(directory) != group:
            try:
                os.rmdir(directory)
                break
            except OSError:
                # The last processes of a machine without power are still ending.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
