"""How the attempts of a run ended, read from what real launchers left on the claim."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from pods import Pods, in_each_shell
from rendering import SCRIPTS

FOREVER = "/nowhere"
LONG = "100"


def read(pods):
    """What the reader prints."""
    environment = {"ATTEMPTS_CLAIM": str(pods.claim), "ATTEMPTS_RUN": str(pods.run), "ATTEMPTS_JOBSET_UID": pods.uid}
    command = [sys.executable, "-I", SCRIPTS / "read_attempts.py"]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    (line,) = found.stdout.splitlines()
    return json.loads(line)["attempts"]


def brief(attempt):
    return tuple(attempt[key] for key in ("attempt", "role", "index", "how", "exitCode", "othersFailed", "othersTerminated"))


class Attempts(unittest.TestCase):
    @in_each_shell
    def test_the_first_failure_is_told_from_the_one_that_follows(self, shell):
        pods = Pods(self, "tensorflow", shell)
        first = pods.start(1, STUB_EXIT="7", STUB_PRINT="infra: a tool exited with 3", INFRA_HOLD=LONG)
        pods.mark("failed.0.worker.1")
        second = pods.start(0, STUB_EXIT="8", INFRA_HOLD=LONG)
        pods.mark("failed.0.worker.0")
        first.ends_with(7)
        # Kubernetes restarts the group.
        second.ask_to_end()
        second.ends_with(8)
        (found,) = read(pods)
        self.assertEqual(brief(found), (0, "worker", 1, "exited", 7, 1, 0))
        # What the program itself prints is not taken for its end.
        self.assertIn("infra: a tool exited with 3", found["lastLines"])
        self.assertRegex(found["at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    @in_each_shell
    def test_a_lost_machine_is_told_from_its_peers(self, shell):
        pods = Pods(self, "pytorch-program", shell)
        trains, lost = (pods.start(index, program=["python"], STUB_UNTIL=FOREVER) for index in (0, 2))
        pods.await_file(pods.records / "worker.0.json")
        pods.await_file(pods.records / "worker.2.json")
        lost.kill()
        failed = pods.start(1, program=["python"], STUB_EXIT="7", INFRA_HOLD=LONG)
        pods.mark("failed.0.worker.1")
        pods.mark("alive.0.worker.0")
        # Kubernetes restarts the group.
        for pod in (failed, trains):
            pod.ask_to_end()
            pod.process.wait(60)
        (found,) = read(pods)
        self.assertEqual(brief(found), (0, "worker", 2, "silent", None, 1, 1))

    @in_each_shell
    def test_a_machine_that_is_drained_comes_before_those_that_end_with_it(self, shell):
        pods = Pods(self, "tensorflow", shell)
        drained, other = (pods.start(index, STUB_UNTIL=FOREVER) for index in (1, 0))
        for index in (0, 1):
            pods.await_file(pods.records / f"worker.{index}.json")
        for pod in (drained, other):
            pod.ask_to_end()
            pod.ends_with(143)
        (found,) = read(pods)
        self.assertEqual(brief(found), (0, "worker", 1, "terminated", None, 0, 1))

    @in_each_shell
    def test_what_a_retry_cannot_fix_and_the_deadline_are_recognised(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1, STUB_EXIT="64").ends_with(64)
        pods.attempt = 1
        pods.start(1, INFRA_DEADLINE="1").ends_with(64)
        first, second = read(pods)
        self.assertEqual(brief(first), (0, "worker", 1, "exited", 64, 0, 0))
        self.assertEqual(brief(second), (1, "worker", 1, "late", None, 0, 0))

    def test_nothing_is_read_through_links(self):
        pods = Pods(self, "tensorflow")
        secret = pods.folder / "secret"
        (secret / "worker-0").mkdir(parents=True)
        (secret / "worker-0/output.log").write_text("a token\n")
        own = pods.run / "logs/attempt-0/worker-1"
        own.mkdir(parents=True)
        (own / "output.log").symlink_to(secret / "worker-0/output.log")
        (pods.run / "logs/attempt-1").symlink_to(secret)
        (found,) = read(pods)
        self.assertEqual((found["attempt"], found["lastLines"]), (0, []))
        moved = pathlib.Path(f"{pods.run}-elsewhere")
        os.rename(pods.run, moved)
        pods.run.symlink_to(moved)
        self.assertEqual(read(pods), [])

    def test_what_is_printed_has_a_limit(self):
        pods = Pods(self, "tensorflow")
        for attempt in range(30):
            directory = pods.run / f"logs/attempt-{attempt}/worker-0"
            directory.mkdir(parents=True)
            (directory / "output.log").write_text("x" * 3_000_000 + "\n" + "".join(f"{number}\n" for number in range(300)) + "y" * 3000)
        found = read(pods)
        self.assertEqual([attempt["attempt"] for attempt in found], list(range(10, 30)))
        self.assertEqual(found[0]["lastLines"], [*(str(number) for number in range(181, 300)), "y" * 500])

    def test_a_run_without_logs_has_no_attempts(self):
        pods = Pods(self, "tensorflow")
        self.assertEqual(read(pods), [])


if __name__ == "__main__":
    unittest.main()
