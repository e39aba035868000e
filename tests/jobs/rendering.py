"""Renders jobs through the binary, and gives their objects as Python values and their containers as the kubelet would start them."""

import copy
import functools
import json
import pathlib
import re
import subprocess

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ROOT / "target/test-tools"
BINARY = ROOT / "target/debug/infra"
FILES = HERE / "files"
SCRIPTS = ROOT / "templates/jobs"
INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
ATTEMPT_FIELD = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
JOB_UID_FIELD = "metadata.labels['batch.kubernetes.io/controller-uid']"
UID_FIELD = "metadata.labels['jobset.sigs.k8s.io/jobset-uid']"
# What a container finds at this path is a ConfigMap.
SCRIPT_DIRECTORY = "/opt/infra"
GPU = "nvidia.com/gpu"


def infra(*arguments, directory=None):
    """Runs the binary in a directory; without one, where there is no cluster.yaml. The scripts are those of this checkout, built in or not."""
    command = [BINARY, "-C", directory or FILES, "--templates", ROOT / "templates", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def render_text(file, *arguments, directory=None):
    done = infra("job", "render", "-f", file, *arguments, directory=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Job:
    """A rendered job."""

    def __init__(self, objects):
        self.objects = objects

    def of_kind(self, kind):
        return [entry for entry in self.objects if entry["kind"] == kind]

    def named(self, kind, name):
        (found,) = [entry for entry in self.of_kind(kind) if entry["metadata"]["name"] == name]
        return found

    @property
    def scripts(self):
        return {name: text for entry in self.of_kind("ConfigMap") for name, text in entry["data"].items()}

    @property
    def data(self):
        """The Job that imports data, if there is one."""
        return next((job for job in self.of_kind("Job") if role_of(job) == "data"), None)

    @property
    def set(self):
        """The JobSet."""
        (found,) = self.of_kind("JobSet")
        return found

    @functools.cached_property
    def training(self):
        """The Jobs of numbered pods, as JobSet creates them."""
        return [replicated_job(self.set, entry) for entry in self.set["spec"]["replicatedJobs"]]

    def role(self, role):
        (found,) = [job for job in self.training if role_of(job) == role]
        return found

    @property
    def pods(self):
        """Every pod specification, with the name of its object."""
        for entry in self.objects + self.training:
            if "template" in entry.get("spec", {}):
                yield entry["metadata"]["name"], entry["spec"]["template"]["spec"]


def replicated_job(job_set, entry):
    """The Job that JobSet makes of a replicated Job with one replica: its pods get their names from the JobSet's domain."""
    name, metadata = job_set["metadata"]["name"], entry["template"]["metadata"]
    spec = copy.deepcopy(entry["template"]["spec"])
    spec["template"]["spec"]["subdomain"] = job_set["spec"]["network"]["subdomain"]
    return {
        "apiVersion": "batch/v1", "kind": "Job", "spec": spec,
        "metadata": {**metadata, "name": f"{name}-{entry['name']}-0", "namespace": job_set["metadata"]["namespace"]},
    }


@functools.cache
def render(name, *arguments, directory=None):
    """A job of tests/jobs/files, or one by its path."""
    file = name if isinstance(name, pathlib.Path) else FILES / f"{name}.yaml"
    return Job(list(yaml.safe_load_all(render_text(file, *arguments, directory=directory))))


def names():
    return sorted(path.stem for path in FILES.glob("*.yaml"))


def role_of(entry):
    return entry["metadata"]["labels"]["infra.internal/role"]


def container_of(job):
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return container


def variables_of(container):
    """The variables with fixed values, not expanded."""
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}


def expand(text, known):
    """`$(NAME)` as the kubelet reads it: what is not known stays as it is, `$$` is one `$`."""

    def replaced(found):
        if found.group(0) == "$$":
            return "$"
        return known.get(found.group(1), found.group(0))

    return re.sub(r"\$\$|\$\(([^()]*)\)", replaced, text)


def environment_of(container, index, address="10.2.0.9", namespace="default"):
    """What the container's processes find, each variable made of those before it."""
    fields = {INDEX_FIELD: str(index), "status.podIP": address, "metadata.namespace": namespace, ATTEMPT_FIELD: "0", UID_FIELD: "uid-1", JOB_UID_FIELD: "uid-2"}
    known = {}
    for entry in container.get("env", []):
        if "value" in entry:
            known[entry["name"]] = expand(entry["value"], known)
        else:
            known[entry["name"]] = fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
    # The Job controller's own, put behind all others where it is not there yet.
    known.setdefault("JOB_COMPLETION_INDEX", str(index))
    return known


def command_of(container, environment):
    return [expand(word, environment) for word in container["command"] + container.get("args", [])]


def host_names(job):
    """The names of a Job's pods in DNS, in the order of their numbers."""
    metadata, spec = job["metadata"], job["spec"]
    subdomain = spec["template"]["spec"]["subdomain"]
    tail = f"{subdomain}.{metadata['namespace']}.svc.cluster.local"
    return [f"{metadata['name']}-{index}.{tail}" for index in range(spec["completions"])]


def claim_path(container):
    (path,) = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "storage" and "subPath" not in mount}
    return path


def place_on_claim(container, path):
    """Where on the claim a path of a container is: the innermost mount decides."""
    mounts = [mount for mount in container["volumeMounts"] if mount["name"] == "storage" and f"{path}/".startswith(mount["mountPath"] + "/")]
    if not mounts:
        return None
    mount = max(mounts, key=lambda mount: len(mount["mountPath"]))
    return (mount.get("subPath", "") + path[len(mount["mountPath"]):]).lstrip("/")


def moved(value, places):
    """A value with the paths of a container in the places of a test."""
    if isinstance(value, dict):
        return {name: moved(text, places) for name, text in value.items()}
    if isinstance(value, list):
        return [moved(text, places) for text in value]
    for path, place in places.items():
        value = re.sub(rf"(?<![\w/]){re.escape(path)}(?![\w-])", str(place), value)
    return value


def parse_json(text):
    """JSON as strict readers take it: no doubled names."""

    def once(pairs):
        assert len({name for name, _ in pairs}) == len(pairs), f"a name stands twice in {text}"
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)
