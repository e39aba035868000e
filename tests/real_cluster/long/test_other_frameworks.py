"""TensorFlow, Paddle and the seeds' Paddle lose a machine, each in its own kind of job: none counts it, and all complete."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from training import POOL, TrainingChapters  # noqa: E402

STUB = ROOT / "tests/jobs/stubs/paddle"
SEED_JOB = f"""
name: seed
framework: paddle-v0
image: {JOB_IMAGE}
pool: {POOL}
replicas: 3
cpu: 100m
memory: 512Mi
sharedMemory: 64Mi
grace: 20s
retries: 1
deadline: 2h
env:
  TRAIN_CONFIG_DIR: config
  PATH: /home/jobpath/bin:/usr/local/bin:/usr/bin:/bin
  STUB_RECORDS: /home/jobpath/records
  STUB_HOSTS: /nowhere
  STUB_UNTIL: /home/jobpath/records/finish
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(OtherFrameworks)


class OtherFrameworks(TrainingChapters):
    environments = ["tensorflow", "paddle"]

    def lose_a_machine(self, name, disturbance, ranks=1):
        self.wait_for_machines()
        self.wait_for_step(name, 8)
        lost = self.disturb(name, disturbance)
        self.assertEqual(self.restarts(name), (1, 0))
        self.finish(name)
        self.assert_same_losses(name, ranks)
        [result, *_] = self.results(name)
        say(f"{name}, version {result['version']}: {disturbance.__name__}, {lost:.0f} s until the next new step, {result['steps']} steps")
        self.delete(name)

    def test_multi_worker_mirrored(self):
        self.submit("mirrored", "tensorflow", "tensorflow", "tensorflow_mirrored.py", retries=1)
        self.lose_a_machine("mirrored", self.cut_power, 3)

    def test_parameter_servers(self):
        self.submit("servers", "tensorflow", "tensorflow", "tensorflow_servers.py", retries=1, scale="ps: 1\nworkers: 2")
        self.lose_a_machine("servers", self.drain)

    def test_paddle_collective(self):
        self.submit("collective", "paddle", "paddle", "paddle_collective.py", retries=1)
        self.lose_a_machine("collective", self.cut_power, 3)

    def test_the_seeds_paddle(self):
        """Its trainers and parameter servers are a stub; the launchers, their marks and their names are not."""
        shared = self.cluster.parts.shared
        records = shared / "records"
        records.mkdir()
        (shared / "seed/config").mkdir(parents=True)
        (shared / "bin").mkdir()
        (shared / "bin/paddle").write_text("#!/usr/bin/python3\n" + STUB.read_text())
        (shared / "bin/paddle").chmod(0o755)
        (self.cluster.directory / "seed.yaml").write_text(SEED_JOB)
        self.wait_for_machines()
        self.cluster.infra("job", "submit", "--file", "seed.yaml", "--run", "first", "--detach")
        self.wait_for_trainers(records)
        for path in records.glob("train.*.json"):
            path.unlink()
        began = time.monotonic()
        self.cut_power(self.any_machine_of("seed"))
        self.wait_for_trainers(records)
        say(f"seed: cut_power, {time.monotonic() - began:.0f} s until all trainers train again, restarts {self.restarts('seed')}")
        self.assertEqual(self.restarts("seed"), (1, 0))
        (records / "finish").touch()
        self.assertEqual(self.wait_for_end("seed"), "Completed", self.why("seed"))
        self.delete("seed")

    def wait_for_trainers(self, records):
        self.wait_for("all trainers", lambda: len(list(records.glob("train.*.json"))) == 3, 600)
