#!/usr/bin/env python3
"""Packs the images of a cluster as docker archives, from programs that were built here and a Debian root.

Comes in: a Kubernetes minor version, the programs of programs/build.py, a Debian root with iptables, nftables, conntrack, iproute2,
busybox and Python. Comes out: one archive for each image, under the names that the release table and so static pods and manifests
have. Files, users and entry points are those of the published images as far as rendered pods use them.
"""

import argparse
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RELEASES = ROOT / "src/config/kubernetes_releases"
sys.path.insert(0, str(HERE / "programs"))

import modules  # noqa: E402 - it is in a directory beside this file
import image_layer  # noqa: E402
from image_layer import NET_BIND_SERVICE, Layer  # noqa: E402

# For jobs and checks of the suite.
JOB_IMAGE = "registry.example.com/infra/job:1"
# What `infra job fetch` and `infra job gpu-check` run; src/job/decide.rs has the name. Its Python here is Debian's.
HELPER_IMAGE = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
SYSTEM_LIBRARIES = (
    "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2", "libz.so.1",
)
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


@dataclasses.dataclass(frozen=True)
class Release:
    """What the release table says about a minor version."""

    minor: str
    versions: list[str]
    images: dict[str, str]
    cni_plugins: str
    ecr_credential_provider: str


def read_release(minor: str) -> Release:
    text = (RELEASES / f"{minor}.yaml").read_text()
    block = re.search(r"^images:\n((?:  .*\n)+)", text, re.MULTILINE).group(1)

    def version_in_url(name: str) -> str:
        return re.search(rf"^{name}:\n  url: \S+/(v[0-9.]+)/", text, re.MULTILINE).group(1)

    return Release(
        minor,
        re.findall(r"^- version: (\S+)$", text, re.MULTILINE),
        dict(re.findall(r"^  (\w+): (\S+)$", block, re.MULTILINE)),
        version_in_url("cniPlugins"),
        version_in_url("ecrCredentialProvider"),
    )


@dataclasses.dataclass
class Image:
    """What goes into one archive."""

    name: str
    references: list[str]
    # The modules that it has programs of.
    modules: list[str]
    fill: "object"
    entry_point: list[str] | None = None
    user: str = ""


@dataclasses.dataclass
class Packing:
    """What all images of a minor are packed from."""

    minor: str
    programs: dict[str, pathlib.Path]
    base: pathlib.Path
    authority: bytes


def add_system_files(layer: Layer, packing: Packing) -> None:
    """What nearly every published image has: users, a writable /tmp, certificate authorities."""
    layer.directory("tmp", 0o1777)
    for path in ("dev", "etc", "proc", "run", "sys", "var"):
        layer.directory(path)
    users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nnonroot:x:65532:65532:nonroot:/home/nonroot:/bin/false\n"
    layer.file("etc/passwd", users.encode(), 0o644)
    layer.file("etc/group", b"root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n", 0o644)
    layer.file("etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
    layer.file(CERTIFICATES, (packing.base / CERTIFICATES).read_bytes() + packing.authority, 0o644)


def add_busybox(layer: Layer) -> None:
    layer.from_base("/usr/bin/busybox")
    names = subprocess.run([layer.base / "usr/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        if f"usr/bin/{name}" not in layer.entries:
            layer.link(f"usr/bin/{name}", "busybox")


def add_iptables(layer: Layer) -> None:
    """iptables with both backends. The published images choose at start the one that the node uses; here it is the one of the base."""
    extensions = sorted(path.name for path in (layer.base / LIBRARIES / "xtables").iterdir())
    # Extensions have libraries of their own: without libm there is no `statistic`, and without it no Service with two pods.
    layer.from_base(
        "/usr/sbin/xtables-nft-multi",
        "/usr/sbin/xtables-legacy-multi",
        *(f"/{LIBRARIES}/xtables/{name}" for name in extensions),
    )
    for family in ("iptables", "ip6tables"):
        for action in ("", "-save", "-restore"):
            layer.link(f"usr/sbin/{family}-nft{action}", "xtables-nft-multi")
            layer.link(f"usr/sbin/{family}-legacy{action}", "xtables-legacy-multi")
            layer.link(f"usr/sbin/{family}{action}", "xtables-nft-multi")
    layer.from_base("/usr/sbin/nft", "/usr/bin/ip")


def images_of(minor: str) -> list[Image]:
    """Every image of a minor that can be packed, under its reference."""
    release = read_release(minor)
    version = modules.version(modules.module_named("kubernetes"), minor)

    def kubernetes(program: str, capability: bytes | None = None) -> Image:
        def fill(layer: Layer, packing: Packing) -> None:
            add_system_files(layer, packing)
            layer.file(f"usr/local/bin/{program}", packing.programs["kubernetes"] / program, capability=capability)

        return Image(program, [f"registry.k8s.io/{program}:{version}"], ["kubernetes"], fill)

    def single(name: str, module: str, program: str, path: str, user: str = "", capability: bytes | None = None) -> Image:
        """An image whose entry point is its only program."""

        def fill(layer: Layer, packing: Packing) -> None:
            add_system_files(layer, packing)
            layer.file(path, packing.programs[module] / program, capability=capability)

        return Image(name.replace("_", "-"), [release.images[name]], [module], fill, [path], user)

    def fill_etcd(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        for program in ("etcd", "etcdctl", "etcdutl"):
            layer.file(f"usr/local/bin/{program}", packing.programs["etcd"] / program)

    def fill_kube_proxy(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        add_iptables(layer)
        layer.from_base("/usr/sbin/conntrack")
        layer.file("usr/local/bin/kube-proxy", packing.programs["kubernetes"] / "kube-proxy")

    def fill_flannel(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        add_busybox(layer)
        add_iptables(layer)
        for program in ("flanneld", "install-conf"):
            layer.file(f"opt/bin/{program}", packing.programs["flannel"] / program)

    def fill_flannel_cni_plugin(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        add_busybox(layer)
        layer.file("flannel", packing.programs["flannel-cni-plugin"] / "flannel")

    def fill_job(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        layer.from_base("/usr/bin/python3", "/usr/bin/getent")
        layer.tree("usr/lib/python3.11")
        modules = sorted(path.name for path in (layer.base / "usr/lib/python3.11/lib-dynload").glob("*.so"))
        layer.from_base(*(f"/usr/lib/python3.11/lib-dynload/{name}" for name in modules))
        layer.link("usr/bin/python", "python3")
        # Imports want the filters of later versions, which published images have and Debian's does not: the module of the Python that runs this.
        if sys.version_info[:2] == (3, 11) and hasattr(tarfile, "data_filter"):
            layer.file("usr/lib/python3.11/tarfile.py", pathlib.Path(tarfile.__file__), 0o644)
        add_busybox(layer)
        # Frameworks that are installed elsewhere take them for granted.
        layer.from_base(*(f"/{LIBRARIES}/{name}" for name in SYSTEM_LIBRARIES))
        # The launcher runs torchrun as a module of the Python that the job names. A virtual environment does not see it.
        layer.file("usr/lib/python3/dist-packages/torch/distributed/run.py", HERE / "programs/job/torchrun")

    return [
        single("pause", "pause", "pause", "/pause", user="65535:65535"),
        Image("etcd", [release.images["etcd"]], ["etcd"], fill_etcd),
        # Published with this capability, and so here: a pod that does not get it must not start.
        kubernetes("kube-apiserver", NET_BIND_SERVICE),
        kubernetes("kube-controller-manager"),
        kubernetes("kube-scheduler"),
        Image("kube-proxy", [f"registry.k8s.io/kube-proxy:{version}"], ["kubernetes"], fill_kube_proxy),
        Image("flannel", [release.images["flannel"]], ["flannel"], fill_flannel, ["/opt/bin/flanneld"]),
        Image("flannel-cni-plugin", [release.images["flannel_cni_plugin"]], ["flannel-cni-plugin"], fill_flannel_cni_plugin),
        single("coredns", "coredns", "coredns", "/coredns", user="65532:65532", capability=NET_BIND_SERVICE),
        single("cloud_controller_manager", "cloud-provider-aws", "aws-cloud-controller-manager", "/bin/aws-cloud-controller-manager"),
        single("metrics_server", "metrics-server", "metrics-server", "/metrics-server", user="65534"),
        single("jobset", "jobset", "manager", "/manager", user="65532:65532"),
        single("nvidia_device_plugin", "pretend-gpus", "pretend-gpus", "/usr/bin/nvidia-device-plugin"),
        Image("job", [JOB_IMAGE, HELPER_IMAGE], [], fill_job),
    ]


def image_of_kueue(minor: str) -> Image:
    """Kueue's, which is no part of a cluster: teams install it."""

    def fill(layer: Layer, packing: Packing) -> None:
        add_system_files(layer, packing)
        layer.file("/manager", packing.programs["kueue"] / "manager")

    version = modules.version(modules.module_named("kueue"), minor)
    return Image("kueue", [f"registry.k8s.io/kueue/kueue:{version}"], ["kueue"], fill, ["/manager"], "65532:65532")


def images_of_monitoring(minor: str) -> list[Image]:
    """What monitors a cluster that asks for it."""
    release = read_release(minor)

    def single(name: str, module: str, program: str, path: str, user: str = "65534:65534") -> Image:
        def fill(layer: Layer, packing: Packing) -> None:
            add_system_files(layer, packing)
            layer.file(path, packing.programs[module] / program)

        return Image(name.replace("_", "-"), [release.images[name]], [module], fill, [path], user)

    return [
        single("prometheus", "prometheus", "prometheus", "/bin/prometheus"),
        single("node_exporter", "node-exporter", "node_exporter", "/bin/node_exporter"),
        single("kube_state_metrics", "kube-state-metrics", "kube-state-metrics", "/kube-state-metrics"),
        single("dcgm_exporter", "pretend-dcgm", "dcgm-exporter", "/usr/bin/dcgm-exporter", user=""),
    ]


# Images that only some clusters need, by what needs them.
OPTIONAL = {"kueue": lambda minor: [image_of_kueue(minor)], "monitoring": images_of_monitoring}


# Images of the release table that nothing here is packed for, with the reason.
ABSENT = {
    "cluster_autoscaler": "no version of k8s.io/autoscaler/cluster-autoscaler can be fetched as a Go module",
    "efa_device_plugin": "its sources are not published, and there are no EFA adapters here",
}


def write_archive(image: Image, packing: Packing, path: pathlib.Path) -> None:
    layer = Layer(packing.base)
    image.fill(layer, packing)
    with tempfile.TemporaryFile(dir=path.parent) as content:
        layer.write(content)
        size = content.tell()
        content.seek(0)
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [f"PATH={PATH}"], "User": image.user, "WorkingDir": "/", "Entrypoint": image.entry_point},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created_by": "tests/real_cluster/images.py"}],
        }
        encoded = json.dumps(config, sort_keys=True).encode()
        names = {"config": f"{hashlib.sha256(encoded).hexdigest()}.json", "layer": f"{digest}/layer.tar"}
        manifest = [{"Config": names["config"], "RepoTags": image.references, "Layers": [names["layer"]]}]
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, data in ((names["config"], encoded), ("manifest.json", json.dumps(manifest).encode())):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))
            entry = tarfile.TarInfo(names["layer"])
            entry.size, entry.mode = size, 0o644
            content.seek(0)
            archive.addfile(entry, content)


def key(image: Image, packing: Packing) -> str:
    """Changes with everything that goes into an image."""
    content = hashlib.sha256()
    for part in (
        pathlib.Path(__file__),
        pathlib.Path(image_layer.__file__),
        packing.base / "var/lib/dpkg/status",
        HERE / "programs/job/torchrun",
        pathlib.Path(tarfile.__file__),
        *(packing.programs[module] / ".key" for module in image.modules),
    ):
        content.update(hashlib.sha256(part.read_bytes()).digest())
    content.update(json.dumps([image.references, image.modules]).encode())
    content.update(packing.authority)
    return content.hexdigest()


def pack(
    minor: str,
    programs: pathlib.Path,
    base: pathlib.Path,
    target: pathlib.Path,
    authority: pathlib.Path | None = None,
    wanted: list[Image] | None = None,
) -> list[pathlib.Path]:
    """Packs what is missing or has changed of these images, by default those of a cluster, and deletes all other archives.

    `authority` is a PEM file of certificate authorities that the programs trust besides Debian's, such as that of a stand-in for AWS.
    """
    packing = Packing(minor, modules.directories(minor, programs), base, authority.read_bytes() if authority else b"")
    target.mkdir(parents=True, exist_ok=True)
    archives = []
    for image in wanted or images_of(minor):
        archive, mark = target / f"{image.name}.tar", target / f".{image.name}.key"
        archives.append(archive)
        content = key(image, packing)
        if archive.exists() and mark.exists() and mark.read_text() == content:
            continue
        part = target / f".{image.name}.{os.getpid()}.part"
        try:
            write_archive(image, packing, part)
            # Deleted first: an archive with the mark of another one would be kept for ever.
            mark.unlink(missing_ok=True)
            part.rename(archive)
            mark.write_text(content)
        finally:
            part.unlink(missing_ok=True)
    for old in target.glob("*.tar"):
        if old not in archives:
            old.unlink()
    return archives


def pack_cni_plugins(minor: str, programs: pathlib.Path, archive: pathlib.Path) -> pathlib.Path:
    """The archive that machines download and unpack, with the plugins that the rendered network configuration calls."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_name(f".{archive.name}.{os.getpid()}.part")
    plugins = modules.directories(minor, programs)["cni-plugins"]
    command = ["tar", "-c", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-C", plugins]
    command += [f"./{name}" for name in sorted(modules.module_named("cni-plugins").programs)]
    with part.open("wb") as file:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as packed:
            # -n: without a time, so that the same plugins are the same archive.
            subprocess.run(["gzip", "-n", "-1"], stdin=packed.stdout, stdout=file, check=True)
        if packed.returncode != 0:
            raise OSError(f"tar cannot pack {plugins}")
    part.rename(archive)
    return archive


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs the images of a cluster into target/test-tools/images-MINOR.")
    parser.add_argument("--kubernetes", metavar="MINOR", choices=modules.minors(), default=modules.minors()[-1])
    parser.add_argument("--programs", type=pathlib.Path, default=modules.PROGRAMS)
    parser.add_argument("--base", type=pathlib.Path, default=modules.TOOLS / "machine-base")
    parser.add_argument("--target", type=pathlib.Path)
    options = parser.parse_args()
    target = options.target or modules.TOOLS / f"images-{options.kubernetes}"
    began = time.monotonic()
    for archive in pack(options.kubernetes, options.programs, options.base, target):
        print(f"{archive.stat().st_size / 1e6:7.1f} MB  {archive.name}")
    print(f"images are ready in {os.path.relpath(target)} ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
