"""What machines of a real cluster are made of, put together: programs, images, archives, a root, a shared directory.

Also says why there can be no real cluster on this machine: without the superuser, a feature of the kernel, or Go modules. A build
that fails is no such reason: it is a failure.
"""

import dataclasses
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "nodes"))

import authority
import images
from container import NSPAWN, run
from golden import TOOLS
from real_machine import hierarchies

# After images, which knows where it is.
import build

BASE = TOOLS / "machine-base"
NETWORK_PROBE = "ip link add probe type veth peer other && ip link add switch type bridge && ip link add tunnel type vxlan id 1 dstport 0"


@dataclasses.dataclass
class Parts:
    base: pathlib.Path
    images: pathlib.Path
    # Stands for the file system of EFS; every machine sees it.
    shared: pathlib.Path
    # Copied to /usr/bin of every machine.
    programs: list[pathlib.Path]
    # What Ignition downloads, by the path that it writes to.
    downloads: dict[str, pathlib.Path]
    kubectl: pathlib.Path


def find_parts(minor, scratch):
    """Builds what is missing; the shared directory is new in `scratch`."""
    build.build(minor)
    built = build.directories(minor)
    archives = TOOLS / f"images-{minor}"
    images.pack(minor, build.PROGRAMS, BASE, archives, authority.certificate())
    plugins = images.pack_cni_plugins(minor, build.PROGRAMS, TOOLS / f"cni-plugins-{minor}.tgz")
    shared = pathlib.Path(scratch) / "efs"
    shared.mkdir()
    return Parts(
        base=BASE, images=archives, shared=shared,
        programs=[path for name in ("containerd", "runc", "etcd") for path in sorted(built[name].iterdir()) if os.access(path, os.X_OK)],
        downloads={
            "/opt/bin/kubelet": built["kubernetes"] / "kubelet",
            "/opt/bin/kubectl": built["kubernetes"] / "kubectl",
            "/opt/infra/archives/cni-plugins.tgz": plugins,
            "/opt/infra/credential-providers/ecr-credential-provider": built["cloud-provider-aws"] / "ecr-credential-provider",
        },
        kubectl=built["kubernetes"] / "kubectl")


def why_not(minor="1.36"):
    """Why there can be no real cluster here, or nothing."""
    if os.geteuid() != 0:
        return "booting machines needs the superuser"
    if pathlib.Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
        return "booting machines needs the superuser of the machine, not of a user namespace"
    for path in (NSPAWN, BASE / "etc/os-release"):
        if not path.exists():
            return f"{path.relative_to(TOOLS.parent.parent)} is missing: run scripts/prepare-tests"
    for program in ("ip", "losetup", "nsenter", "setpriv", "unshare", "openssl"):
        if not shutil.which(program):
            return f"{program} is missing"
    for group in hierarchies():
        if not os.access(group, os.W_OK):
            return f"booting machines needs control groups of their own: {group} is read-only"
    for what, probe in {
        "network namespaces with bridges and VXLAN": ["unshare", "--net", "sh", "-c", NETWORK_PROBE],
        "loop devices": ["losetup", "--find"],
        "overlay file systems": ["unshare", "--mount", "sh", "-c", "grep -q overlay /proc/filesystems"],
        "nftables": ["unshare", "--net", "chroot", BASE, "nft", "add", "table", "ip", "probe"],
    }.items():
        try:
            run(*probe)
        except AssertionError as error:
            return f"a real cluster needs {what}: {error}"
    return build.why_not(minor)


if __name__ == "__main__":
    print(why_not() or "")
