"""A pool of one machine with four GPUs, which are pretended: who gets them, who stays off their node, and what is said when one is lost."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
import gpus  # noqa: E402
from chapters import Chapters, in_order, is_ready, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402

POOL = "- {name: gpu, instanceType: g5.12xlarge}\n"
GPUS = 4
RUN = "first"
NODES = 3
JOB = """
name: %(name)s
framework: pytorch
image: %(image)s
replicas: %(replicas)d
gpus: %(gpus)d
cpu: 100m
sharedMemory: 64Mi
command: [python3, /mnt/training/train.py]
"""
# The first process of each pod writes what the container sees, and then waits until the file that is named like its job exists.
TRAINING = """
import json, os, pathlib, subprocess, time
output = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"])

def use_scratch():
    scratch = pathlib.Path("/mnt/scratch")
    if not scratch.exists():
        return None
    found = os.listdir(scratch)
    (scratch / "shard").write_bytes(bytes(64 << 20))
    os.sync()
    return {"found": found, "gib": os.statvfs(scratch).f_blocks * os.statvfs(scratch).f_frsize >> 30}

if os.environ["LOCAL_RANK"] == "0":
    smi = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout
    part = output / ("part." + os.environ["PET_NODE_RANK"])
    part.write_text(json.dumps({
        "devices": os.environ["NVIDIA_VISIBLE_DEVICES"].split(","), "smi": smi.split(), "processes": os.environ["PET_NPROC_PER_NODE"],
        "scratch": use_scratch()}))
    part.rename(output / ("seen." + os.environ["PET_NODE_RANK"]))
while not (output / "end").exists():
    time.sleep(0.2)
"""
PLAIN_POD = """
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  nodeSelector: {infra.internal/pool: gpu}
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: %s, command: [sleep, "3600"]}
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(GpuPool)


class GpuPool(Chapters):
    text = ((ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + POOL
            + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n")

    def machine(self):
        [machine] = self.of_role("pool-gpu")
        return machine

    def node(self):
        return self.get("node", self.machine().facts["name"])

    def allocatable(self):
        return self.node()["status"]["allocatable"].get("nvidia.com/gpu")

    def test_up_ends_with_gpus_that_pods_can_have(self):
        self.assertEqual(self.cluster.failures(), [])
        self.assertEqual(list(self.nodes().values()), ["True"] * NODES)
        for machine in self.cluster.room.machines.values():
            self.assertEqual(machine.failed_units(), "", machine.role)
            self.assertEqual(machine.unit("containerd", "NRestarts"), ("0",), machine.role)
        node = self.node()
        self.assertEqual(node["status"]["capacity"]["nvidia.com/gpu"], str(GPUS))
        self.assertEqual(node["status"]["allocatable"]["nvidia.com/gpu"], str(GPUS))
        others = [other for other in self.get("nodes")["items"] if other["metadata"]["name"] != node["metadata"]["name"]]
        self.assertEqual([other["status"]["allocatable"].get("nvidia.com/gpu") for other in others], [None, None])

    def test_the_node_has_the_labels_and_the_taint_of_its_pool(self):
        node = self.node()
        expected = {"infra.internal/pool": "gpu", "infra.internal/gpu-model": "a10g", "infra.internal/gpu-count": "4",
                    "k8s.amazonaws.com/accelerator": "a10g", "node.kubernetes.io/instance-type": "g5.12xlarge",
                    "infra.internal/scratch-gib": "3418"}
        self.assertEqual(expected, {name: value for name, value in node["metadata"]["labels"].items() if name in expected})
        self.assertEqual(node["spec"]["taints"], [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}])

    def test_the_machine_has_the_runtime_that_it_has_downloaded(self):
        machine = self.machine()
        self.assertIn("NVIDIA runtime nvidia-runtime-v1.18.1-x86-64.raw is in place", machine.journal("nvidia-runtime"))
        self.assert_nvidia_runtime(machine)

    def assert_nvidia_runtime(self, machine):
        self.assertIn("nvidia-runtime", machine.run("systemd-sysext", "status"))
        [process] = machine.unit("containerd", "MainPID")
        self.assertIn("/etc/containerd/config-nvidia.toml", machine.run("cat", f"/proc/{process}/cmdline").split("\0"))
        self.assertEqual(machine.failed_units(), "")

    def test_every_pod_runs_and_the_device_plugin_only_there(self):
        self.wait_for_all_pods()
        plugin = self.plugin()
        self.assertEqual(plugin["spec"]["nodeName"], self.node()["metadata"]["name"])
        self.assertEqual(plugin["status"]["containerStatuses"][0]["restartCount"], 0)

    def plugin(self):
        [pod] = self.get("pods", "--namespace=kube-system", "--selector=k8s-app=nvidia-device-plugin")["items"]
        return pod

    def test_status_counts_the_gpus(self):
        text = self.cluster.infra("status").stdout
        self.assertIn("healthy", text)
        self.assertIn("gpu, 4 GPUs", text)

    def submit(self, name, replicas, count, more=""):
        (self.cluster.directory / f"{name}.yaml").write_text(
            JOB % {"name": name, "image": JOB_IMAGE, "replicas": replicas, "gpus": count} + more)
        (self.cluster.parts.shared / "train.py").write_text(TRAINING)
        done = self.cluster.infra("job", "submit", "--file", f"{name}.yaml", "--run", RUN, "--detach")
        return done.stdout + done.stderr

    def job_pods(self, name):
        return self.get("pods", f"--selector=infra.internal/job={name}")["items"]

    def seen(self, name, replicas):
        """What the pods of a job have written, once all have."""
        files = [self.output(name) / f"seen.{number}" for number in range(replicas)]
        self.wait_for(f"the pods of {name}", lambda: all(file.exists() for file in files), 300)
        return [json.loads(file.read_text()) for file in files]

    def end(self, name):
        (self.output(name) / "end").touch()

    def output(self, name):
        return self.cluster.parts.shared / name / "runs" / RUN / "output"

    def test_jobs_share_the_gpus_and_wait_for_them(self):
        self.submit("pair", 2, 1)
        first, second = self.seen("pair", 2)
        known = {f"GPU-pretend-{number}" for number in range(GPUS)}
        for found in first, second:
            self.assertEqual(len(found["devices"]), 1)
            self.assertEqual(found["smi"], found["devices"])
            self.assertEqual(found["processes"], "1")
            self.assertLessEqual(set(found["devices"]), known)
        self.assertNotEqual(first["devices"], second["devices"])
        node = self.node()["metadata"]["name"]
        self.assertEqual([pod["spec"]["nodeName"] for pod in self.job_pods("pair")], [node, node])

        self.assertIn("other pods hold GPUs: there is room for 0 of 1 replica now", self.submit("all", 1, GPUS))
        self.wait_for("the second job waits", lambda: "Insufficient nvidia.com/gpu" in self.cluster.infra("job", "status", "all").stdout)
        self.assertEqual([pod["status"]["phase"] for pod in self.job_pods("all")], ["Pending"])
        self.assertEqual([pod["status"]["phase"] for pod in self.job_pods("pair")], ["Running", "Running"])

        self.end("pair")
        [found] = self.seen("all", 1)
        self.assertEqual(set(found["devices"]), known)
        self.assertEqual(set(found["smi"]), known)
        self.assertEqual(found["processes"], str(GPUS))
        ended = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] for pod in self.job_pods("pair")]
        [pod] = self.job_pods("all")
        self.assertGreaterEqual(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"], max(ended))
        self.assertEqual(pod["spec"]["nodeName"], node)
        # The job has all of them, and the check sees them nevertheless.
        self.assertIsNone(self.check(0)["problem"])

        self.end("all")
        for name in "pair", "all":
            self.wait_for(f"the end of {name}", lambda: "complete" in self.cluster.infra("job", "status", name).stdout)
            self.cluster.infra("job", "delete", name, "--yes")

    def test_scratch_is_a_part_of_the_machines_own_drive(self):
        space = int(self.node()["status"]["allocatable"]["ephemeral-storage"].removesuffix("Ki")) >> 20
        # Of 200 GiB, less the tables of the file system, images and what stays free; the root disk has 30.
        self.assertIn(space, range(140, 151))
        self.submit("shards", 1, 1, "scratchGiB: 100\n")
        [found] = self.seen("shards", 1)
        self.assertGreater(found["scratch"]["gib"], 190)
        [pod], [shard] = self.job_pods("shards"), self.shards()
        self.assertIn(pod["metadata"]["uid"], shard)
        self.assertEqual(self.device_of(shard), self.machine().run("stat", "--format=%Hr:%Lr", "/etc/drives/dev/nvme1n1").strip())
        self.submit("second", 1, 1, "scratchGiB: 100\n")
        self.wait_for("the second job waits",
                      lambda: "Insufficient ephemeral-storage" in self.cluster.infra("job", "status", "second").stdout)
        self.end("shards")
        [found] = self.seen("second", 1)
        self.assertEqual(found["scratch"]["found"], [])
        self.end("second")
        for name in "shards", "second":
            self.wait_for(f"the end of {name}", lambda: "complete" in self.cluster.infra("job", "status", name).stdout)
            self.cluster.infra("job", "delete", name, "--yes")
        self.wait_for("the kubelet deletes what they wrote", lambda: not self.shards())

    def shards(self):
        """What jobs have written to their scratch space, on the machine. Directories of pods may go meanwhile."""
        words = ["find", "/var/lib/kubelet/pods", "-path", "*/volumes/*", "-name", "shard", "-size", "+32M"]
        return self.machine().run(*words, check=False).split()

    def device_of(self, path):
        """The numbers of the device that a file is on."""
        return self.machine().run("stat", "--format=%Hd:%Ld", path).strip()

    def test_a_pod_that_tolerates_nothing_stays_off_the_node(self):
        self.cluster.kubectl("apply", "--filename=-", input=PLAIN_POD % JOB_IMAGE)
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "plain")
        words = ["events", "--field-selector=involvedObject.name=plain,reason=FailedScheduling"]
        self.wait_for("the scheduler's reason", lambda: self.get(*words)["items"])
        # Besides the node of the GPU that of the controller.
        self.assertIn("1 node(s) didn't match Pod's node affinity/selector, 2 node(s) had untolerated taint(s)",
                      self.get(*words)["items"][0]["message"])
        self.assertEqual(self.get("pod", "plain")["status"]["phase"], "Pending")
        # The scheduler does not name the taint, but with that one tolerated the pod runs.
        [taint] = self.node()["spec"]["taints"]
        toleration = {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
        tolerations = self.get("pod", "plain")["spec"]["tolerations"] + [toleration]
        self.cluster.kubectl("patch", "pod", "plain", "--patch", json.dumps({"spec": {"tolerations": tolerations}}))
        self.wait_for_pods("plain")
        self.assertEqual(self.get("pod", "plain")["spec"]["nodeName"], self.node()["metadata"]["name"])
        # It has asked for no GPU and sees none.
        self.assertNotIn("nvidia-smi", self.execute("plain", "ls", "/usr/bin"))

    def check(self, *expected):
        """How the check of the GPUs of the only GPU node ends."""
        done = self.cluster.infra("job", "gpu-check", "--output", "json", expected=expected)
        [found] = json.loads(done.stdout)
        self.assertEqual([pod["metadata"]["name"] for pod in self.pods() if "gpu-check" in pod["metadata"]["name"]], [])
        return found

    def test_a_lost_gpu_is_found(self):
        found = self.check(0)
        self.assertEqual((found["expected"], found["allocatable"], len(found["gpus"]), found["problem"]), (GPUS, GPUS, GPUS, None))
        gpus.set_number(self.machine(), GPUS - 1)
        self.addCleanup(gpus.set_number, self.machine(), GPUS)
        began = time.monotonic()
        self.wait_for("the kubelet notices", lambda: self.allocatable() == str(GPUS - 1), 300)
        say(f"a lost GPU is no longer offered: {time.monotonic() - began:.0f} s")
        found = self.check(3)
        self.assertEqual((found["expected"], found["allocatable"], len(found["gpus"])), (GPUS, GPUS - 1, GPUS - 1))
        self.assertEqual(found["problem"], "nvidia-smi finds 3 GPUs, but the machine has 4")
        self.assertIn("pool gpu: 0 of 1 nodes have 4 GPUs available", self.cluster.infra("status", expected=(3,)).stdout)
        gpus.set_number(self.machine(), GPUS)
        self.wait_for("the kubelet notices", lambda: self.allocatable() == str(GPUS), 300)
        self.assertIsNone(self.check(0)["problem"])
        self.cluster.infra("status")

    def test_a_driver_that_does_not_answer_is_found(self):
        # Of what is no number, nvidia-smi complains; the device plugin offers what it has offered before.
        gpus.set_number(self.machine(), "unknown")
        self.addCleanup(gpus.set_number, self.machine(), GPUS)
        found = self.check(3)
        self.assertEqual((found["expected"], found["allocatable"]), (GPUS, GPUS))
        self.assertRegex(found["problem"], "^nvidia-smi failed: .*pretend-gpus: .*invalid syntax")
        gpus.set_number(self.machine(), GPUS)
        self.assertIsNone(self.check(0)["problem"])

    def test_the_machine_has_its_gpus_after_a_power_cut(self):
        machine = self.machine()
        before = self.plugin()["status"]["containerStatuses"][0]["containerID"]
        machine.run("touch", "/var/lib/kubelet/of-an-earlier-boot")
        began = time.monotonic()
        machine.cut_power()
        machine.switch_on()
        self.wait_for("the device plugin runs again", lambda: is_ready(self.plugin())
                      and self.plugin()["status"]["containerStatuses"][0].get("containerID", before) != before, 300)
        self.wait_for("all GPUs are offered", lambda: self.allocatable() == str(GPUS), 300)
        say(f"GPUs after a power cut: {time.monotonic() - began:.0f} s")
        self.assert_nvidia_runtime(machine)
        self.assertEqual(machine.journal("nvidia-runtime").count("is in place"), 1, "it is downloaded once")
        # Images and pods are new, and the certificate is the one that it had.
        self.assertNotIn("of-an-earlier-boot", machine.run("ls", "/var/lib/kubelet").split())
        self.assertEqual(machine.journal("scratch").count("images and pods are on the machine's own drives: nvme1n1"), 2)
        self.assertIsNone(self.check(0)["problem"])

    def test_destroy(self):
        self.assertEqual(self.machine().failed_units(), "")
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
