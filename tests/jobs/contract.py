"""What launchers are started with: a table of the contract by framework, and the same as the binary renders it."""

import dataclasses
import functools
import json
import pathlib
import re

import yaml

from rendering import FILES, SCRIPT_DIRECTORY, SCRIPTS, expand, render_text

UID = "0f6c8c3e-uid-of-the-jobset"
MOUNTS = {"paddle-v0": "/home/jobpath", "tensorflow-seed": "/var/tensorflow"}
# Where index 0 ends, the job does.
LED = {"pytorch", "tensorflow"}
TRAIN_ARGS = "--config=trainer_config.py --num_passes=10 --saving_period=1 --log_period=50 --dot_period=10"


@dataclasses.dataclass
class Field:
    """A value that the kubelet takes from the pod."""

    path: str


INDEX = Field("metadata.annotations['batch.kubernetes.io/job-completion-index']")
ATTEMPT = Field("metadata.labels['jobset.sigs.k8s.io/restart-attempt']")
JOBSET = Field("metadata.labels['jobset.sigs.k8s.io/jobset-uid']")
ADDRESS = Field("status.podIP")
NAMESPACE = Field("metadata.namespace")
# Labels and annotations have several names for the same.
ENDINGS = {"job-completion-index']": "index", "restart-attempt']": "attempt", "jobset-uid']": "uid", "podIP": "address", "namespace": "namespace"}


@dataclasses.dataclass
class Role:
    """The pods of a role: what each is started with."""

    job: str
    namespace: str
    name: str
    replicas: int
    mount: str
    launcher: str
    words: list
    variables: dict
    stamp: str | None = None

    def environment(self, index, attempt=0, address="10.2.0.9", uid=UID):
        """What the processes of a pod find, each variable made of those before it."""
        values = {"index": str(index), "attempt": str(attempt), "uid": uid, "address": address, "namespace": self.namespace}
        known = {}
        for name, value in self.variables.items():
            if isinstance(value, Field):
                (ending,) = [ending for ending in ENDINGS if value.path.endswith(ending)]
                known[name] = values[ENDINGS[ending]]
            else:
                known[name] = expand(value, known)
        return known

    @property
    def hosts(self):
        """The names of its pods in DNS, in the order of their numbers."""
        return host_names(self.job, self.namespace, self.name, self.replicas)


@dataclasses.dataclass
class Contract:
    """The roles of a job and the scripts that they find."""

    path: str
    roles: dict
    scripts: dict


def host_names(job, namespace, role, count):
    return [f"{job}-{role}-0-{index}.{job}.{namespace}.svc.cluster.local" for index in range(count)]


def file_of(name):
    """A job of tests/jobs/files, or one by its path."""
    return name if isinstance(name, pathlib.Path) else FILES / f"{name}.yaml"


def launcher_text(name):
    return (SCRIPTS / "prelude.sh").read_text() + (SCRIPTS / name).read_text()


def table(name, run="first"):
    """The contract of a job, by the book."""
    file = yaml.safe_load(file_of(name).read_text())
    job, framework, namespace = file["name"], file["framework"], file.get("namespace", "default")
    counts = {"ps": file["ps"], "worker": file["workers"]} if "ps" in file else {"trainer" if framework == "paddle-v0" else "worker": file["replicas"]}
    path = file.get("storage", {}).get("path", job)
    mount = MOUNTS.get(framework, "/mnt/training")
    root = f"{mount}/{path}"
    alone = sum(counts.values()) == 1
    hosts = {role: ["127.0.0.1"] if alone else host_names(job, namespace, role, count) for role, count in counts.items()}
    roles = {}
    for role, count in counts.items():
        variables = {
            "JOB_COMPLETION_INDEX": INDEX, "INFRA_ATTEMPT": ATTEMPT, "INFRA_JOBSET_UID": JOBSET, "INFRA_ROLE": role,
            "INFRA_REPLICAS": str(count), "INFRA_GROUP_SIZE": str(sum(counts.values())), "INFRA_RUN": run,
            "INFRA_RUN_DIR": f"{root}/runs/{run}", "INFRA_OUTPUT_DIR": f"{root}/runs/{run}/output",
            "INFRA_LOG_DIR": f"{root}/runs/{run}/logs", "INFRA_MARK_DIR": f"{root}/runs/{run}/.infra/$(INFRA_JOBSET_UID)",
            "INFRA_SUCCESS": "first" if framework in LED else "all", "INFRA_GRACE": "80",
        }
        command = file.get("command", [])
        if framework in ("paddle", "pytorch"):
            # Their launchers put the interpreter's options in front.
            command = [word for word in command if word != "-u"]
        launcher, words, more = FRAMEWORKS[framework](file, role, hosts, command, variables)
        if "code" in file:
            more |= {"INFRA_CODE_DIR": file.get("workdir", "/mnt/code"), "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= more | file.get("env", {})
        stamp = f"{root}/.infra/data.ready" if "data" in file else None
        roles[role] = Role(job, namespace, role, count, mount, launcher, words, variables, stamp)
    scripts = {script.name: launcher_text(script.name) for script in SCRIPTS.glob("*.sh")}
    return Contract(path, roles, scripts | {"torchrun.py": (SCRIPTS / "torchrun.py").read_text()})


def paddle_v0(file, role, hosts, command, common):
    above, _, last = file.get("storage", {}).get("path", file["name"]).rpartition("/")
    gpus = file.get("gpus", 0)
    return "paddle-v0.sh", command, {
        "JOB_NAME": last, "JOB_PATH": f"/home/jobpath/{above}".rstrip("/"), "JOB_NAMESPACE": NAMESPACE, "POD_IP": ADDRESS,
        "TRAIN_CONFIG_DIR": "config", "CONF_PADDLE_NIC": "eth0", "CONF_PADDLE_PORT": "7164", "CONF_PADDLE_PORTS_NUM": "2",
        "CONF_PADDLE_PORTS_NUM_SPARSE": "2", "CONF_PADDLE_GRADIENT_NUM": str(file["replicas"]), "TRAINER_COUNT": str(max(gpus, 1)),
        "USE_GPU": str(min(gpus, 1)), "TRAIN_ARGS": TRAIN_ARGS, "INFRA_PEERS": ",".join(hosts[role]),
    }


def paddle(file, role, hosts, command, common):
    return "paddle.sh", command, {
        "POD_IP": ADDRESS, "INFRA_MASTER_HOST": hosts[role][0], "INFRA_MASTER_PORT": "36767",
        "PADDLE_JOB_ID": f"{common['INFRA_RUN']}-$(INFRA_ATTEMPT)", "PADDLE_NNODES": str(file["replicas"]),
        "PADDLE_NPROC_PER_NODE": str(max(file.get("gpus", 0), 1)), "PADDLE_TRAINER_ID": "$(JOB_COMPLETION_INDEX)",
        "PADDLE_LOG_DIR": f"{common['INFRA_OUTPUT_DIR']}/node_$(JOB_COMPLETION_INDEX)",
    }


def all_of(hosts):
    return ",".join(host for names in hosts.values() for host in names)


def led_or_served(hosts, role):
    return {"ps": "server.sh", "worker": "worker.sh"}[role] if "ps" in hosts else "program.sh"


def tensorflow_seed(file, role, hosts, command, common):
    cluster = {name: [f"{host}:8080" for host in names] for name, names in hosts.items()}
    return led_or_served(hosts, role), command, {
        "POD_NAME": f"{role}-$(JOB_COMPLETION_INDEX)-{file['name']}", "CLUSTER_CONFIG": json.dumps(cluster, separators=(",", ":")),
        "INFRA_PEERS": all_of(hosts),
    }


def tensorflow(file, role, hosts, command, common):
    cluster = {name: [f"{host}:2222" for host in names] for name, names in hosts.items()}
    if "ps" in cluster:
        cluster = {"chief": cluster["worker"][:1], "ps": cluster["ps"], "worker": cluster["worker"][1:]}
    text = json.dumps(cluster, separators=(",", ":"))
    if "ps" in cluster and role == "worker":
        return "worker.sh", command, {"INFRA_TF_CLUSTER": text, "INFRA_PEERS": all_of(hosts)}
    task = f'{{"type":"{role}","index":$(JOB_COMPLETION_INDEX)}}'
    return led_or_served(hosts, role), command, {"TF_CONFIG": f'{{"cluster":{text},"task":{task}}}', "INFRA_PEERS": all_of(hosts)}


def pytorch(file, role, hosts, command, common):
    interpreter, *words = command
    if re.fullmatch(r"(.*/)?python[\d.]*", interpreter):
        command = [interpreter, f"{SCRIPT_DIRECTORY}/torchrun.py", *words]
    return "pytorch.sh", command, {
        "PET_NNODES": str(file["replicas"]), "PET_NPROC_PER_NODE": str(max(file.get("gpus", 0), 1)), "PET_NODE_RANK": "$(JOB_COMPLETION_INDEX)",
        "PET_MASTER_ADDR": hosts[role][0], "PET_MASTER_PORT": "29500", "PET_MAX_RESTARTS": "0",
        "PET_MONITOR_INTERVAL": "0.1",
        "PET_RDZV_ID": f"{common['INFRA_RUN']}-$(INFRA_ATTEMPT)", "INFRA_PEERS": ",".join(hosts[role]),
    }


def program(file, role, hosts, command, common):
    return "program.sh", command, {}


FRAMEWORKS = {
    "paddle-v0": paddle_v0, "paddle": paddle, "tensorflow-seed": tensorflow_seed, "tensorflow": tensorflow, "pytorch": pytorch, "program": program,
}


def rendered_objects(name, *arguments):
    """The objects of a job as the binary renders them, or none if it was not built."""
    try:
        return list(yaml.safe_load_all(render_text(file_of(name), *arguments)))
    except FileNotFoundError:
        return []


def jobsets(objects):
    return [entry for entry in objects if entry["kind"] == "JobSet"]


@functools.cache
def rendered(name, *arguments):
    """The contract of a job as the binary renders it; None as long as it renders no JobSet."""
    objects = rendered_objects(name, *arguments)
    if not jobsets(objects):
        return None
    (jobset,) = jobsets(objects)
    roles = {}
    for entry in jobset["spec"]["replicatedJobs"]:
        job, spec = entry["template"]["spec"], entry["template"]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        shell, launcher, *words = container["command"] + container.get("args", [])
        assert shell == "/bin/sh", f"launchers ask for no more than a shell: {shell}"
        variables = variables_of(container)
        (mount,) = {entry["mountPath"] for entry in container["volumeMounts"] if entry["name"] == "storage" and "subPath" not in entry}
        prepare = prepare_of(spec)
        roles[entry["name"]] = Role(
            jobset["metadata"]["name"], jobset["metadata"]["namespace"], entry["name"], job["completions"], mount,
            launcher.removeprefix(f"{SCRIPT_DIRECTORY}/"), words, variables, variables_of(prepare).get("DATA_STAMP"),
        )
    scripts = {script: text for entry in objects if entry["kind"] == "ConfigMap" for script, text in entry["data"].items()}
    root = roles[max(roles)].variables["INFRA_RUN_DIR"].rsplit("/runs/", 1)[0]
    return Contract(root.removeprefix(roles[max(roles)].mount + "/"), roles, scripts)


def prepare_of(spec):
    (found,) = [entry for entry in spec.get("initContainers", []) if entry["name"] == "prepare"]
    return found


def variables_of(container):
    return {
        entry["name"]: entry["value"] if "value" in entry else Field(entry["valueFrom"]["fieldRef"]["fieldPath"])
        for entry in container.get("env", []) if "value" in entry or "fieldRef" in entry["valueFrom"]
    }


def contract(name):
    """The contract of a job: as it is rendered, or by the book as long as the binary renders no JobSet."""
    return rendered(name, "--run", "first") or table(name)
