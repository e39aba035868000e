"""A cluster of the older version: a pool grows and shrinks, Kubernetes is upgraded while jobs run, one of them as infra created it before there were
JobSets, and the manual pool follows when the jobs have ended."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402, F401
from chapters import Chapters, Questions, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402

OLD, NEW = "v1.35.6", "v1.36.3"
CLUSTER = f"""
clusterName: upgrade
externalDNSName: upgrade.example.com
region: us-west-2
availabilityZones: [us-west-2a, us-west-2b]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
kubernetes: {{version: {OLD}}}
etcd: {{count: 1}}
controllers: {{count: 2}}
pools:
- {{name: cpu, instanceType: m5.large, count: 1}}
- {{name: train, instanceType: m5.large, count: 2, rollout: manual}}
storage: {{efs: {{}}}}
addons: {{clusterAutoscaler: false}}
"""
# Controllers and pools.
NODES = 5
JOB = f"""
name: patient
framework: pytorch
image: {JOB_IMAGE}
pool: train
replicas: 1
cpu: 250m
command: [python3, /mnt/training/train.py]
"""
# A job of two workers, as an earlier version of infra rendered it.
EARLIER = pathlib.Path(__file__).parents[1] / "earlier_version/job.yaml"
EARLIER_REPLICAS = 2
TRAINING = """
import pathlib, time
print("training begins", flush=True)
while not pathlib.Path("/mnt/training/enough").exists():
    time.sleep(0.5)
print("training has ended")
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(Upgrade)


class Upgrade(Chapters):
    text = CLUSTER
    minors = ["1.35", "1.36"]

    def versions(self):
        """Of each node's kubelet."""
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in self.get("nodes")["items"]}

    def names_of(self, version):
        return {name for name, found in self.versions().items() if found == version}

    def names(self, role):
        return {machine.facts["name"] for machine in self.of_role(role)}

    def job_pods(self):
        """Of both jobs, by their names."""
        pods = self.get("pods", "--selector=infra.internal/job in (patient, earlier)")["items"]
        return {pod["metadata"]["name"]: pod for pod in pods}

    def job_pod(self):
        [pod] = [pod for pod in self.job_pods().values() if pod["metadata"]["labels"]["infra.internal/job"] == "patient"]
        return pod

    def test_the_older_version_runs(self):
        self.wait_for_all_pods()
        self.assertEqual(set(self.versions().values()), {OLD})
        self.assertEqual(json.loads(self.cluster.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"], OLD)
        self.cluster.infra("status")

    def test_a_pool_grows(self):
        [before] = self.of_role("pool-cpu")
        self.change("name: cpu, instanceType: m5.large, count: 1", "name: cpu, instanceType: m5.large, count: 2")
        began = time.monotonic()
        self.cluster.infra("up", "--yes")
        say(f"a pool grown by one: {time.monotonic() - began:.0f} s")
        self.assertEqual(list(self.nodes().values()), ["True"] * (NODES + 1))
        self.assertIn(before, self.of_role("pool-cpu"))
        self.cluster.infra("status")

    def test_a_pool_shrinks(self):
        self.change("name: cpu, instanceType: m5.large, count: 2", "name: cpu, instanceType: m5.large, count: 1")
        self.cluster.infra("up", "--yes")
        self.wait_for("the machine goes, and its Node", lambda: len(self.of_role("pool-cpu")) == 1 and self.all_nodes_are_ready(NODES), 300)
        self.wait_for_all_pods()
        self.cluster.infra("status")

    def test_jobs_begin(self):
        (self.cluster.directory / "job.yaml").write_text(JOB)
        (self.cluster.parts.shared / "train.py").write_text(TRAINING)
        self.cluster.kubectl("apply", f"--filename={EARLIER}")
        self.cluster.infra("job", "submit", "--detach")
        for name, count in (("patient", 1), ("earlier", EARLIER_REPLICAS)):
            self.wait_for(f"training of {name}", lambda name=name, count=count: self.cluster.kubectl(
                "logs", f"--selector=infra.internal/job={name}", "--all-containers", check=False).count("training begins") == count, 300)
        type(self).pod = self.job_pod()
        type(self).pods_before = self.job_pods()

    def test_kubernetes_is_upgraded_beside_the_job(self):
        outdated = self.names("pool-train")
        self.change(OLD, NEW)
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.cluster.infra("up", "--yes")
        say(f"{OLD} to {NEW}: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.assertLess(questions.longest, 60)
        self.wait_for("only the manual pool is left behind", lambda: self.names_of(OLD) == outdated, 180)
        self.assertEqual(json.loads(self.cluster.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"], NEW)
        self.check_jobs_are_untouched()
        self.assertIn("2 outdated", self.cluster.infra("status").stdout)
        self.wait_for_all_pods()

    def check_jobs_are_untouched(self):
        pods = self.job_pods()
        self.assertEqual(set(pods), set(self.pods_before))
        for name, pod in pods.items():
            for path in (["metadata", "uid"], ["spec", "nodeName"], ["status", "containerStatuses", 0, "containerID"]):
                before, now = self.pods_before[name], pod
                for key in path:
                    before, now = before[key], now[key]
                self.assertEqual(now, before, path)
            self.assertEqual(pod["status"]["phase"], "Running")

    def test_commands_that_read_name_the_earlier_job_and_submit_is_refused(self):
        self.assertIn(f"default/earlier: running, 0 of {EARLIER_REPLICAS} done", self.cluster.infra("job", "status", "earlier").stdout)
        listed = self.cluster.infra("job", "list").stdout
        self.assertRegex(listed, r"earlier +tensorflow +running +0/2")
        self.assertRegex(listed, r"patient +pytorch +running +0/1")
        self.assertIn("training begins", self.cluster.infra("job", "logs", "earlier", "--index", "1").stdout)
        self.assertIn("running", self.cluster.infra("job", "why", "earlier").stdout)
        (self.cluster.directory / "earlier.yaml").write_text(JOB.replace("name: patient", "name: earlier"))
        refused = self.cluster.infra("job", "submit", "--file", "earlier.yaml", "--detach", expected=(1,)).stderr
        self.assertIn("a job of this name that an earlier version of infra submitted already exists: 'earlier', running", refused)
        self.check_jobs_are_untouched()

    def test_the_manual_pool_waits_for_the_job_and_goes_one_by_one(self):
        outdated = self.names("pool-train")
        host = self.pod["spec"]["nodeName"]
        fewest = len(outdated)
        began = time.monotonic()
        with self.cluster.running_infra("up", "--pool", "train", "--replace-nodes") as rollout:
            def is_waiting():
                self.assertFalse(rollout.has_ended(), rollout.printed())
                return "patient" in rollout.printed() or "earlier" in rollout.printed()

            self.wait_for("it waits for a job", is_waiting, 300)
            self.check_jobs_are_untouched()
            self.assertIn(host, self.names("pool-train"))
            (self.cluster.parts.shared / "enough").touch()

            def ready():
                return [name for name, status in self.nodes().items() if status == "True" and name in self.names("pool-train")]

            while not rollout.has_ended():
                fewest = min(fewest, len(ready()))
                time.sleep(1)
        say(f"two machines replaced one by one: {time.monotonic() - began:.0f} s")
        self.assertGreaterEqual(fewest, 1)
        self.assertFalse(outdated & self.names("pool-train"))
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES) and host not in self.nodes(), 300)
        self.assertEqual(set(self.versions().values()), {NEW})
        self.assertIn("complete", self.cluster.infra("job", "status").stdout)
        earlier = self.cluster.infra("job", "status", "earlier").stdout
        self.assertIn(f"default/earlier: complete, {EARLIER_REPLICAS} of {EARLIER_REPLICAS} done", earlier)
        # Logs are the machine's, and go with it; what the job wrote stays.
        self.assertIn(f"ran on {host}; that machine is gone", self.cluster.infra("job", "logs", expected=(1,)).stderr)

    def test_the_earlier_job_is_deleted_as_a_whole(self):
        self.cluster.infra("job", "delete", "earlier", "--yes")
        self.assertEqual(self.cluster.kubectl("get", "jobs,services,configmaps,pods", "--selector=infra.internal/job=earlier", "--output=name"), "")

    def test_everything_runs_in_the_newer_version(self):
        self.wait_for_all_pods()
        images = {status["image"] for pod in self.pods() for status in pod["status"]["containerStatuses"]}
        for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"):
            self.assertEqual({image for image in images if f"/{program}:" in image}, {f"registry.k8s.io/{program}:{NEW}"})
        status = self.cluster.infra("status").stdout
        self.assertNotIn("outdated", status)
        self.assertEqual(self.cluster.infra("plan", "--detailed-exitcode").returncode, 0)

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
