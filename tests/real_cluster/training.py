"""Jobs with real frameworks on a pool of spot machines: how they are submitted, what is done to their machines, and what their steps say."""

import contextlib
import json
import pathlib
import random
import shutil
import subprocess
import time

from chapters import Chapters, say
from images import JOB_IMAGE
from real_cluster import ROOT

PROGRAMS = pathlib.Path(__file__).parent / "training_programs"
ENVIRONMENTS = ROOT / "target/frameworks"
POOL, MACHINES, REPLICAS = "train", 4, 3
# As EC2 words it.
NOTICE = json.dumps({"action": "terminate", "time": "2030-01-01T00:02:00Z"})
JOB = """
name: %(name)s
framework: %(framework)s
image: %(image)s
pool: %(pool)s
%(scale)s
cpu: %(cpu)s
memory: 3Gi
grace: 20s
retries: %(retries)d
deadline: %(deadline)s
command: [/mnt/training/frameworks/%(environment)s/bin/python, /mnt/training/programs/%(program)s]
env: {LD_LIBRARY_PATH: /mnt/training/frameworks/%(environment)s/lib, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1"%(variables)s}
"""
# How long something may take on a machine that does much else.
LONG_SECONDS = 600


class TrainingChapters(Chapters):
    """`environments` names what scripts/framework-environment installs."""

    text = ((ROOT / "tests/clusters/minimal/cluster.yaml").read_text()
            + f"- {{name: {POOL}, instanceType: m5.large, count: {MACHINES}, spot: true}}\n"
            + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n")
    environments = []

    @classmethod
    def setUpClass(cls):
        for name in cls.environments:
            subprocess.run([ROOT / "scripts/framework-environment", name], check=True)
        cls.random = random.Random(seed := random.randrange(1 << 32))
        say(f"moments and machines are drawn with the seed {seed}")
        super().setUpClass()

    @classmethod
    def fill_file_system(cls, directory):
        shutil.copytree(PROGRAMS, directory / "programs")
        (directory / "frameworks").mkdir()
        for name in cls.environments:
            # Links to the same files: an environment has gigabytes, which nobody writes to.
            copied = subprocess.run(["cp", "--archive", "--link", ENVIRONMENTS / name, directory / "frameworks"], capture_output=True)
            if copied.returncode:
                subprocess.run(["cp", "--archive", ENVIRONMENTS / name, directory / "frameworks"], check=True)

    def submit(self, name, framework="pytorch", environment="pytorch", program="pytorch.py, \"0.02\"", replicas=REPLICAS, retries=3, deadline="6h",
               run="first", cpu="250m", scale="", variables=""):
        """Starts a job and does not wait for it."""
        facts = {"name": name, "framework": framework, "image": JOB_IMAGE, "pool": POOL, "scale": scale or f"replicas: {replicas}", "retries": retries,
                 "deadline": deadline, "environment": environment, "program": program, "cpu": cpu, "variables": variables}
        (self.cluster.directory / f"{name}.yaml").write_text(JOB % facts)
        return self.cluster.infra("job", "submit", "--file", f"{name}.yaml", "--run", run, "--detach")

    def output(self, name, run="first"):
        return self.cluster.parts.shared / name / "runs" / run / "output"

    def steps(self, name, rank=0, run="first"):
        with contextlib.suppress(FileNotFoundError):
            # A line may be in the middle of being written.
            return [json.loads(line) for line in (self.output(name, run) / f"steps.{rank}").read_text().splitlines() if line.endswith("}")]
        return []

    def highest(self, name, run="first"):
        return max((entry["step"] for entry in self.steps(name, run=run)), default=-1)

    def wait_for_step(self, name, step, run="first", seconds=LONG_SECONDS):
        def is_reached():
            self.assertNotEqual(self.state(name), "Failed", self.why(name))
            return self.highest(name, run) >= step

        self.wait_for(f"step {step} of {name}", is_reached, seconds)

    def wait_for_progress(self, name, run="first", steps=12, seconds=LONG_SECONDS):
        self.wait_for_step(name, self.highest(name, run) + steps, run, seconds)

    def restarts(self, name):
        """All of them, and those that count."""
        status = self.get("jobset", name).get("status", {})
        return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)

    def state(self, name):
        """Completed, Failed, or nothing while it runs."""
        return self.get("jobset", name).get("status", {}).get("terminalState", "")

    def wait_for_end(self, name, seconds=LONG_SECONDS):
        self.wait_for(f"the end of {name}", lambda: self.state(name), seconds)
        return self.state(name)

    def finish(self, name, run="first"):
        (self.output(name, run) / "finish").touch()
        self.assertEqual(self.wait_for_end(name), "Completed", self.why(name))

    def why(self, name):
        done = self.cluster.run(self.cluster.binary, "job", "why", name)
        return done.stdout + done.stderr

    def delete(self, name):
        self.cluster.infra("job", "delete", name, "--yes")

    def results(self, name, run="first"):
        return [json.loads(path.read_text()) for path in sorted(self.output(name, run).glob("result.*.json"))]

    def machines_of(self, name):
        """Those that run pods of the job, in the order of the pods' numbers."""
        pods = self.get("pods", f"--selector=jobset.sigs.k8s.io/jobset-name={name}")["items"]
        pods.sort(key=lambda pod: int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]))
        names = [pod["spec"].get("nodeName") for pod in pods if pod["status"]["phase"] == "Running"]
        known = {machine.facts["name"]: machine for machine in self.of_role(f"pool-{POOL}")}
        return [known[node] for node in names if node in known]

    def any_machine_of(self, name):
        return self.random.choice(self.machines_of(name))

    def terminate(self, machine):
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[machine.id])

    def take_back(self, machine):
        """A spot notice; the instance is terminated once the machine has shut down, as EC2 does it two minutes after the notice."""
        self.cluster.network.metadata.spot_notices[machine.id] = NOTICE
        self.wait_for("the machine to shut down", lambda: machine.process.poll() is not None, 240)
        self.terminate(machine)

    def drain(self, machine):
        """As an administrator does it before a machine is replaced."""
        self.cluster.kubectl("drain", machine.facts["name"], "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=240s", timeout=300)
        self.terminate(machine)

    def cut_power(self, machine):
        """Nothing is said by anyone; EC2's health check finds it a while later."""
        machine.cut_power()
        time.sleep(30)
        self.terminate(machine)

    def wait_for_machines(self, count=MACHINES):
        """All that the pool should have, each of them a Ready node, and none that was lost."""
        def are_there():
            machines = {machine.facts["name"] for machine in self.of_role(f"pool-{POOL}")}
            with contextlib.suppress(AssertionError):
                nodes = self.get("nodes", f"--selector=infra.internal/pool={POOL}")["items"]
                ready = {node["metadata"]["name"] for node in nodes for condition in node["status"]["conditions"]
                         if condition["type"] == "Ready" and condition["status"] == "True" and not node["spec"].get("unschedulable")}
                return len(machines) == count and ready == machines == {node["metadata"]["name"] for node in nodes}
            return False

        self.wait_for(f"{count} machines", are_there, LONG_SECONDS)

    def disturb(self, name, disturbance, machine=None):
        """Does something to a machine of the job at a random moment. Returns the seconds until the next step that is new."""
        time.sleep(self.random.uniform(0, 8))
        machine = machine or self.any_machine_of(name)
        began, before = time.time(), self.highest(name)
        disturbance(machine)
        self.wait_for("a new step of a new attempt", lambda: self.longest_pause(name, began), LONG_SECONDS)
        lost = self.longest_pause(name, began)
        say(f"{disturbance.__name__} of machine {machine.name} at step {before}: {lost:.0f} s until the next new step, restarts {self.restarts(name)}")
        return lost

    def longest_pause(self, name, began):
        """Between two steps that were new, from that moment on; nothing as long as a new attempt has made no new step."""
        new, highest = [], -1
        for entry in self.steps(name):
            if entry["step"] > highest:
                highest = entry["step"]
                new.append(entry)
        later = [entry for entry in new if entry["time"] > began]
        earlier = [entry for entry in new if entry["time"] <= began]
        if not later or later[-1]["attempt"] == earlier[-1]["attempt"]:
            return None
        return max(after["time"] - before["time"] for before, after in zip(earlier[-1:] + later, later))

    def assert_same_losses(self, name, replicas=REPLICAS, places=5):
        """Whatever was trained again came out the same: every attempt continued from a checkpoint that was whole."""
        for rank in range(replicas):
            losses = {}
            for entry in self.steps(name, rank):
                self.assertAlmostEqual(losses.setdefault(entry["step"], entry["loss"]), entry["loss"], places)
            self.assertEqual(sorted(losses), list(range(max(losses) + 1)))
            self.assertLess(losses[max(losses)], losses[0])
