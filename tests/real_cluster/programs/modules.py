"""The Go modules beside this file: what is built of each, in which version, and where it is built to.

Modules in a directory named after a minor version of Kubernetes belong to that minor, those in shared/ to every one.
"""

import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TOOLS = ROOT / "target/test-tools"
PROGRAMS = TOOLS / "programs"


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
    # Part of every cluster; built without being asked for.
    in_every_cluster: bool = True


def packages(prefix: str, *names: str) -> dict[str, str]:
    return {name.rsplit("/", 1)[-1]: f"{prefix}/{name}" for name in names}


CNI = "github.com/containernetworking/plugins"
CONTAINERD = "github.com/containerd/containerd/v2"
AWS = "k8s.io/cloud-provider-aws"
ETCD = "go.etcd.io/etcd"
FLANNEL = "github.com/flannel-io/flannel"
JOBSET = "sigs.k8s.io/jobset"
KUBERNETES = "k8s.io/kubernetes"
KUEUE = "sigs.k8s.io/kueue"
METRICS_SERVER = "sigs.k8s.io/metrics-server"
NODE_EXPORTER = "github.com/prometheus/node_exporter"
KUBE_STATE_METRICS = "k8s.io/kube-state-metrics/v2"
PROMETHEUS = "github.com/prometheus/prometheus"
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
    # What monitors a cluster, which not every cluster asks for.
    Module(
        "prometheus",
        PROMETHEUS,
        packages(PROMETHEUS, "cmd/prometheus"),
        # Of all ways to find targets the one that is used.
        tags=("remove_all_sd", "enable_kubernetes_sd"),
        version_variables=("github.com/prometheus/common/version.Version",),
        in_every_cluster=False,
    ),
    Module("node-exporter", NODE_EXPORTER, {"node_exporter": NODE_EXPORTER}, in_every_cluster=False),
    Module("kube-state-metrics", KUBE_STATE_METRICS, {"kube-state-metrics": KUBE_STATE_METRICS}, in_every_cluster=False),
    Module("pretend-dcgm", None, {"dcgm-exporter": "."}, in_every_cluster=False),
    # Teams install it themselves.
    Module(
        "kueue",
        KUEUE,
        {"manager": f"{KUEUE}/cmd/kueue"},
        version_variables=(f"{KUEUE}/pkg/version.GitVersion",),
        in_every_cluster=False,
    ),
]

# Files and directories of a required module that tests need beside its programs, each with its path there.
FILES = {
    "jobset": {"api.yaml": "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
    "kueue": {"config": "config"},
}


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


def module_named(name: str) -> Module:
    return next(module for module in MODULES if module.name == name)
