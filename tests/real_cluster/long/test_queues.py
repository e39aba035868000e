"""Two teams share a pool by the real Kueue, installed as the runbook says: a job starts with all of its pods or with none, a restart keeps its place,
and what was borrowed is given back without being counted."""

import json
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
import modules  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE, image_of_kueue  # noqa: E402

EXAMPLE = ROOT / "examples/two-teams"
MINOR = "1.36"
# What the module's manifests name; a release names its own image.
STAGED_IMAGE = "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue"
TEAMS = ("team-a", "team-b")
# Two of them fit into the quota of a team, four into the pool.
POD = {"cpu": "500m", "memory": "256Mi"}
JOB = """
name: %(name)s
namespace: %(team)s
framework: program
image: %(image)s
pool: shared
replicas: %(replicas)d
cpu: %(cpu)s
memory: %(memory)s
sharedMemory: 64Mi
grace: 10s
retries: 2
deadline: 2h
queue: training
command: [python3, /mnt/training/wait.py]
"""
# Two roles, of which Kueue must not admit one alone: a parameter server without its workers would wait for ever.
SERVED_JOB = """
name: served
namespace: team-a
framework: tensorflow
image: %(image)s
pool: shared
ps: 1
workers: 2
cpu: %(cpu)s
memory: %(memory)s
sharedMemory: 64Mi
grace: 10s
retries: 2
deadline: 2h
queue: training
command: [python3, /mnt/training/served.py]
"""
# The parameter server serves until it is terminated.
SERVED_PROGRAM = """
import os, pathlib, time
output, role = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"]), os.environ["INFRA_ROLE"]
(output / f"began.{os.environ['INFRA_ATTEMPT']}.{role}.{os.environ['JOB_COMPLETION_INDEX']}").touch()
while role == "ps" or not (output / "end").exists():
    time.sleep(0.2)
"""
# Fails, or ends, when it is told to.
PROGRAM = """
import os, pathlib, sys, time
output, index = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"]), os.environ["JOB_COMPLETION_INDEX"]
(output / f"began.{os.environ['INFRA_ATTEMPT']}.{index}").touch()
while not (output / "end").exists():
    if (output / f"fail.{index}").exists():
        (output / f"fail.{index}").unlink()
        sys.exit(1)
    time.sleep(0.2)
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(Queues)


class Queues(Chapters):
    text = ((ROOT / "tests/clusters/minimal/cluster.yaml").read_text()
            + "- {name: shared, instanceType: m5.large, count: 2}\nstorage: {efs: {}}\naddons: {clusterAutoscaler: false}\n")
    more_images = "kueue"

    def test_kueue_is_installed_as_the_runbook_says(self):
        """The published manifests are those of the module that Kueue is built from."""
        folder = self.cluster.directory / "kueue"
        shutil.copytree(EXAMPLE / "kueue", folder)
        published = modules.directories(MINOR)["kueue"] / "config/default"
        file = folder / "kustomization.yaml"
        lines = file.read_text().splitlines()
        [line] = [number for number, text in enumerate(lines) if "https://" in text]
        lines[line] = f"- {os.path.relpath(published, folder.resolve())}"
        [image] = image_of_kueue(MINOR).references
        name, tag = image.rsplit(":", 1)
        lines += ["images:", f"- {{name: {STAGED_IMAGE}, newName: {name}, newTag: {tag}}}"]
        file.write_text("\n".join(lines) + "\n")
        self.cluster.kubectl("apply", "--server-side", "--kustomize", folder, timeout=300)
        self.cluster.kubectl("--namespace=kueue-system", "rollout", "status", "deployment/kueue-controller-manager", "--timeout=240s", timeout=300)
        for team in TEAMS:
            self.cluster.kubectl("create", "namespace", team)
        queues = (EXAMPLE / "queues.yaml").read_text()
        queues = queues.replace("infra.internal/pool: gpu", "infra.internal/pool: shared").replace("cpu, memory, nvidia.com/gpu", "cpu, memory")
        queues = queues.replace("      - name: nvidia.com/gpu\n        nominalQuota: 4\n", "")
        queues = queues.replace("nominalQuota: 44", "nominalQuota: 1").replace("nominalQuota: 180Gi", "nominalQuota: 2Gi")
        # Its webhooks answer a moment after its pod is ready.
        self.wait_for("Kueue accepts queues", lambda: "localqueue" in self.cluster.kubectl("apply", "--filename=-", input=queues, check=False), 120)
        self.assertEqual(queues.count("kind: LocalQueue"), len(TEAMS))
        (self.cluster.parts.shared / "wait.py").write_text(PROGRAM)
        (self.cluster.parts.shared / "served.py").write_text(SERVED_PROGRAM)

    def submit(self, team, name, replicas, text=JOB):
        facts = POD | {"team": team, "name": name, "replicas": replicas, "image": JOB_IMAGE}
        (self.cluster.directory / f"{name}.yaml").write_text(text % facts)
        self.cluster.infra("job", "lint", "--online", "--file", f"{name}.yaml")
        self.cluster.infra("job", "submit", "--file", f"{name}.yaml", "--run", "first", "--detach", "--yes")

    def output(self, name):
        [found] = self.cluster.parts.shared.rglob(f"{name}/runs/first/output")
        return found

    def began(self, name, attempt=0):
        paths = list(self.cluster.parts.shared.rglob(f"{name}/runs/first/output"))
        return len(list(paths[0].glob(f"began.{attempt}.*"))) if paths else 0

    def pods_of(self, team, name):
        return [pod for pod in self.get("pods", f"--namespace={team}", f"--selector=jobset.sigs.k8s.io/jobset-name={name}")["items"]
                if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]]

    def job_set(self, team, name):
        return self.get("jobset", name, f"--namespace={team}")

    def status(self, name):
        done = self.cluster.infra("job", "status", "--file", f"{name}.yaml", expected=(0, 3))
        return done.stdout + done.stderr

    def end(self, team, name):
        (self.output(name) / "end").touch()
        self.wait_for(f"the end of {name}", lambda: self.job_set(team, name)["status"].get("terminalState") == "Completed", 180)
        self.cluster.infra("job", "delete", "--file", f"{name}.yaml", "--yes")

    def test_a_job_starts_with_all_of_its_pods_or_with_none(self):
        self.submit("team-b", "other", 2)
        self.wait_for("both pods of the other team", lambda: self.began("other") == 2)
        # Three of four fit; a job of three pods does not get two of them.
        self.submit("team-a", "large", 3)
        self.wait_for("a reason", lambda: "held" in self.status("large"), 60)
        time.sleep(15)
        self.assertEqual(self.pods_of("team-a", "large"), [])
        say(self.status("large"))
        self.end("team-b", "other")
        began = time.monotonic()
        self.wait_for("all three pods", lambda: self.began("large") == 3)
        say(f"admitted with all pods {time.monotonic() - began:.0f} s after there was room")
        self.end("team-a", "large")

    def workloads_of(self, team, name):
        """Those that Kueue keeps for the job: of the JobSet, or of any Job of it."""
        found = self.get("workloads", f"--namespace={team}")["items"]
        owners = {name} | {job["metadata"]["name"] for job in self.get("jobs", f"--namespace={team}", f"--selector=jobset.sigs.k8s.io/jobset-name={name}")["items"]}
        return [workload for workload in found if owners & {owner["name"] for owner in workload["metadata"]["ownerReferences"]}]

    def test_parameter_servers_and_workers_are_one_workload(self):
        """Two of four places are taken: neither the parameter server nor a worker gets one of the others before all three fit."""
        self.submit("team-b", "beside", 2)
        self.wait_for("both pods of the other team", lambda: self.began("beside") == 2)
        self.submit("team-a", "served", 3, SERVED_JOB)
        self.wait_for("it is held", lambda: "held" in self.status("served"), 60)
        time.sleep(15)
        self.assertEqual(self.pods_of("team-a", "served"), [])
        self.end("team-b", "beside")
        self.wait_for("all three pods", lambda: self.began("served") == 3)
        [workload] = self.workloads_of("team-a", "served")
        [owner] = workload["metadata"]["ownerReferences"]
        self.assertEqual((owner["kind"], owner["name"]), ("JobSet", "served"))
        counts = {pods["name"]: pods["count"] for pods in workload["spec"]["podSets"]}
        self.assertEqual(counts, {"ps": 1, "worker": 2})
        say(f"one Workload of {counts}")
        self.end("team-a", "served")

    def test_a_restart_keeps_its_place(self):
        self.submit("team-a", "first", 4)
        self.wait_for("all four pods", lambda: self.began("first") == 4)
        # Of the same team, so that nothing is reclaimed.
        self.submit("team-a", "second", 2)
        self.wait_for("the second is held", lambda: "held" in self.status("second"), 60)
        (self.output("first") / "fail.2").touch()
        self.wait_for("all four pods again", lambda: self.began("first", 1) == 4, 300)
        self.assertEqual(self.began("second"), 0)
        self.assertEqual(self.job_set("team-a", "first")["status"]["restartsCountTowardsMax"], 1)
        self.end("team-a", "first")
        self.wait_for("the second", lambda: self.began("second") == 2)
        self.end("team-a", "second")

    def test_what_was_borrowed_is_given_back(self):
        self.submit("team-a", "borrower", 4)
        self.wait_for("all four pods", lambda: self.began("borrower") == 4)
        for path in self.output("borrower").glob("began.*"):
            path.unlink()
        began = time.monotonic()
        self.submit("team-b", "owner", 2)
        self.wait_for("the owner's pods", lambda: self.began("owner") == 2, 240)
        say(f"what was borrowed was given back in {time.monotonic() - began:.0f} s")
        self.wait_for("the borrower is held", lambda: "held" in self.status("borrower"), 60)
        self.assertEqual(self.pods_of("team-a", "borrower"), [])
        self.end("team-b", "owner")
        self.wait_for("the borrower's pods", lambda: self.began("borrower") == 4, 240)
        status = self.job_set("team-a", "borrower")["status"]
        self.assertEqual(status.get("restartsCountTowardsMax", 0), 0)
        say(json.dumps({key: status.get(key) for key in ("restarts", "restartsCountTowardsMax")}))
        self.end("team-a", "borrower")
