"""When a TensorBoard ends: a day after its job, here a second after it."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from contract import launcher_text
from pods import Pod, applets, in_each_shell

SERVES = """#!/bin/sh
echo "$@" >"$RECORDS/arguments"
trap 'touch "$RECORDS/asked"; exit 0' TERM
while :; do sleep 0.1; done
"""
RESOLVES = """#!/bin/sh
test -e "$RECORDS/address" && echo 10.2.0.9
"""
WORDS = ["tensorboard", "--logdir", "runs"]


class Board:
    """The container of a TensorBoard, with a stub for the program."""

    def __init__(self, case, shell, program=SERVES):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-board-"))
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs, self.records, stubs = (self.folder / name for name in ("runs", "records", "stubs"))
        for folder in (self.runs, self.records, stubs):
            folder.mkdir()
        for name, text in (("tensorboard", program), ("getent", RESOLVES)):
            (stubs / name).write_text(text)
            (stubs / name).chmod(0o755)
        script = self.folder / "tensorboard.sh"
        script.write_text(launcher_text("tensorboard.sh"))
        command = [shutil.which("busybox"), "sh"] if shell == "busybox" else [shutil.which("dash")]
        system = applets() if shell == "busybox" else "/usr/bin:/bin"
        environment = {
            "PATH": f"{stubs}:{system}", "RECORDS": str(self.records), "INFRA_PAUSE": "0.1", "INFRA_KEPT": "1", "INFRA_LOOK": "0",
            "INFRA_RUN_DIR": str(self.runs / "first"), "INFRA_RUNS_DIR": str(self.runs), "INFRA_GROUP_NAME": "train.default.svc.cluster.local"}
        log = self.folder / "log"
        with log.open("w") as file:
            process = subprocess.Popen([*command, str(script), *WORDS], env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=file, start_new_session=True)
        self.pod = Pod(case, process, log, "board")
        case.addCleanup(self.end)

    def end(self):
        if self.pod.runs:
            self.pod.process.kill()
            self.pod.process.wait()

    def write_log(self, seconds_ago):
        path = self.runs / "first/logs/attempt-0/worker-0/output.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - seconds_ago,) * 2)


class Ending(unittest.TestCase):
    @in_each_shell
    def test_it_ends_when_its_job_has_ended_long_ago(self, shell):
        board = Board(self, shell)
        # Not before the job has begun: it may wait in a queue for days.
        board.pod.goes_on(2)
        (board.records / "address").touch()
        board.write_log(seconds_ago=120)
        # Not while a pod of the job has an address.
        board.pod.goes_on(2)
        (board.records / "address").unlink()
        text = board.pod.ends_with(0, within=20)
        self.assertIn("no process of the job has run for 1 s, so TensorBoard ends", text)
        self.assertTrue((board.records / "asked").exists(), "the program was not asked to end")
        self.assertEqual((board.records / "arguments").read_text().split(), WORDS[1:])

    @in_each_shell
    def test_a_log_that_was_written_lately_keeps_it(self, shell):
        board = Board(self, shell)
        # As after the loss of its machine: this one has seen nothing of the job.
        board.write_log(seconds_ago=0)
        board.pod.goes_on(2)
        board.write_log(seconds_ago=120)
        board.pod.ends_with(0, within=20)

    @in_each_shell
    def test_it_is_terminated_at_once(self, shell):
        board = Board(self, shell)
        board.pod.goes_on(0.5)
        board.pod.ask_to_end()
        board.pod.ends_with(143, within=20)
        self.assertTrue((board.records / "asked").exists())

    @in_each_shell
    def test_a_failure_is_one_of_its_kubernetes_job(self, shell):
        Board(self, shell, program="#!/bin/sh\nexit 3\n").pod.ends_with(3, within=20)


if __name__ == "__main__":
    unittest.main()
