"""What machines of a real cluster are made of, put together: programs, images, archives, a root, a shared directory.

Also says why there can be no real cluster on this machine: without the superuser, a feature of the kernel, or Go modules. A build
that fails is no such reason: it is a failure.
"""

import base64
import dataclasses
import os
import pathlib
import re
import shutil
import sys

for place in ("tests/nodes", "scripts/rehearsal"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / place))

import authority
import deep_learning_image
import gpus
import images
from container import NSPAWN, run
from golden import TOOLS
from node_archive import NodeArchive
from real_machine import hierarchies

# After images, which knows where they are.
import build
import modules

BASE = TOOLS / "machine-base"
NETWORK_PROBE = "ip link add probe type veth peer other && ip link add switch type bridge && ip link add tunnel type vxlan id 1 dstport 0"


@dataclasses.dataclass(frozen=True)
class ReleaseParts:
    """What machines of one minor version get."""

    images: pathlib.Path
    # Copied to /usr/bin.
    programs: list[pathlib.Path]
    # What Ignition downloads, by the path that it writes to.
    downloads: dict[str, pathlib.Path]


@dataclasses.dataclass(frozen=True)
class Parts:
    base: pathlib.Path
    # Stands for the file system of EFS; every machine sees it.
    shared: pathlib.Path
    kubectl: pathlib.Path
    # By minor version.
    releases: dict[str, ReleaseParts]
    # What machines download from elsewhere, by its address.
    extensions: dict[str, pathlib.Path]
    # The programs in the place of NVIDIA's driver.
    driver: pathlib.Path
    # JobSet's own definition of its API, for which ours stands in.
    jobset_api: pathlib.Path
    # Images that are no part of a cluster, if machines get any.
    more_images: pathlib.Path | None = None

    def release_of(self, config):
        """What a machine with this Ignition config gets: it names the version of its kubelet, or of its etcd."""
        for file in config["storage"]["files"]:
            source = file["contents"].get("source") or ""
            if file["path"] == "/opt/bin/kubelet":
                named = re.search(r"/v(\d+\.\d+)\.\d+/", source).group(1)
            elif file["path"] == "/etc/infra/etcd-image.env":
                etcd = re.search(r"/etcd:(\d+\.\d+\.\d+)", base64.b64decode(source.partition(",")[2]).decode()).group(1)
                named = next(minor for minor in self.releases if modules.directories(minor)["etcd"].name == f"etcd-{etcd}")
        return self.releases[named]


def find_parts(minors, scratch, more=None):
    """Builds what is missing; the shared directory is new in `scratch`, and kubectl is that of the newest version.

    `more` names the images that machines get beside those of every cluster, in images.OPTIONAL.
    """
    shared = pathlib.Path(scratch) / "efs"
    shared.mkdir()
    releases = {minor: find_release(minor) for minor in minors}
    newest = releases[max(minors)]
    built = modules.directories(max(minors))
    return Parts(
        base=BASE, shared=shared, kubectl=built["kubernetes"] / "kubectl", releases=releases,
        extensions=gpus.pack_runtime(built["pretend-gpus"], scratch) | {url: newest.downloads[path] for path, (_, url) in published_programs().items()},
        driver=built["pretend-gpus"],
        jobset_api=built["jobset"] / "api.yaml", more_images=pack_more(more, max(minors)) if more else None)


def published_programs():
    """What machines without Ignition download by themselves: the published hash and address, by the path that it gets."""
    downloads = NodeArchive("deep-learning", "pool-ubuntu").downloads
    return {path: (published, url) for path, (published, _, url) in downloads.items()}


def pack_more(name, minor):
    wanted = images.OPTIONAL[name](minor)
    build.build(minor, only=[module for image in wanted for module in image.modules])
    archives = TOOLS / f"images-{name}"
    images.pack(minor, modules.PROGRAMS, BASE, archives, authority.certificate(), wanted)
    return archives


def find_release(minor):
    build.build(minor)
    built = modules.directories(minor)
    archives = TOOLS / f"images-{minor}"
    images.pack(minor, modules.PROGRAMS, BASE, archives, authority.certificate())
    plugins = images.pack_cni_plugins(minor, modules.PROGRAMS, TOOLS / f"cni-plugins-{minor}.tgz")
    return ReleaseParts(
        images=archives,
        programs=[path for name in ("containerd", "runc", "etcd") for path in sorted(built[name].iterdir()) if os.access(path, os.X_OK)],
        downloads={
            "/opt/bin/kubelet": built["kubernetes"] / "kubelet",
            "/opt/bin/kubectl": built["kubernetes"] / "kubectl",
            "/opt/infra/archives/cni-plugins.tgz": plugins,
            "/opt/infra/credential-providers/ecr-credential-provider": built["cloud-provider-aws"] / "ecr-credential-provider",
        })


def why_not(minor="1.36"):
    """Why there can be no real cluster here, or nothing."""
    if os.geteuid() != 0:
        return "booting machines needs the superuser"
    if pathlib.Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
        return "booting machines needs the superuser of the machine, not of a user namespace"
    for path in (NSPAWN, BASE / "etc/os-release"):
        if not path.exists():
            return f"{path.relative_to(TOOLS.parent.parent)} is missing: run scripts/prepare-tests"
    if reason := deep_learning_image.why_not():
        return reason
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
