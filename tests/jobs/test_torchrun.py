"""How torchrun is started, and what its launcher learns of it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from pods import Pods, in_each_shell
from rendering import SCRIPTS

FOREVER = "/there/is/no/such/file"
# The parts of PyTorch that are used, as they are since 1.9; the real ones are in scripts/frameworks and tests/real_cluster.
PYTORCH = {
    "distributed/elastic/metrics.py": """
        import collections
        MetricHandler, handlers = object, []
        configure = handlers.append
        def put(name, value):
            [handler] = handlers
            handler.emit(collections.namedtuple("MetricData", "timestamp group_name name value")(0, "torchelastic", name, value))
        """,
    "distributed/elastic/multiprocessing/errors.py": """
        class ChildFailedError(Exception):
            def __init__(self, failures):
                super().__init__("train.py FAILED")
                self.failures = failures
        """,
    "distributed/run.py": """
        import os, sys, types
        from .elastic import metrics
        from .elastic.multiprocessing.errors import ChildFailedError
        def main(arguments):
            print("torchrun", *arguments, sys.path[0])
            statuses = [int(word) for word in arguments[1:]]
            metrics.put("workers.default.healthy", 1)
            metrics.put("workers.default.succeeded", int(not any(statuses)))
            if any(statuses):
                raise ChildFailedError({
                    rank: types.SimpleNamespace(exitcode=status, timestamp=-rank, signal_name=lambda: "SIGTERM")
                    for rank, status in enumerate(statuses) if status
                })
        """,
}
OLD = {"distributed/run.py": "import sys; print('old torchrun', __name__, *sys.argv[1:])"}


class Status(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="infra-torchrun-")))
        self.mark = self.folder / "succeeded"

    def torchrun(self, files, *arguments):
        for name, text in files.items():
            path = self.folder / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder), "INFRA_PROGRAM_SUCCEEDED": str(self.mark)}
        words = [sys.executable, SCRIPTS / "torchrun.py", "train.py", *arguments]
        return subprocess.run(words, env=environment, cwd=self.folder, capture_output=True, text=True)

    def test_it_succeeds_with_all_processes_and_says_so_before_it_ends(self):
        done = self.torchrun(PYTORCH, "0", "0")
        self.assertEqual((done.returncode, done.stdout), (0, f"torchrun train.py 0 0 {self.folder}\n"), done.stderr)
        self.assertTrue(self.mark.exists())

    def test_64_of_any_process_is_its_status(self):
        done = self.torchrun(PYTORCH, "0", "64", "-15")
        said = "infra: process 2 of torchrun was killed by SIGTERM\ninfra: process 1 of torchrun ended with exit code 64\n"
        self.assertEqual((done.returncode, done.stderr), (64, said))
        self.assertFalse(self.mark.exists())

    def test_any_other_failure_is_said_in_a_line(self):
        done = self.torchrun(PYTORCH, "3")
        self.assertEqual((done.returncode, done.stderr), (1, "infra: process 0 of torchrun ended with exit code 3\n"))

    def test_an_older_version_is_run_as_it_is(self):
        done = self.torchrun(OLD, "1")
        self.assertEqual((done.returncode, done.stdout), (0, "old torchrun __main__ train.py 1\n"), done.stderr)

    def test_an_image_without_pytorch_says_so(self):
        done = self.torchrun({})
        self.assertEqual(done.returncode, 1)
        self.assertIn("No module named 'torch'", done.stderr)


class WaitingForOthers(unittest.TestCase):
    """torchrun waits for the processes of all pods, and one that failed never comes."""

    @in_each_shell
    def test_the_first_has_succeeded_whoever_fails_later(self, shell):
        pods = Pods(self, "pytorch", shell)
        pod = pods.start(0, STUB_SUCCEEDED="", STUB_UNTIL=FOREVER)
        pods.mark("done.worker.0")
        pod.goes_on(0.5)
        (pods.marks / "failed.0.worker.1").touch()
        self.assertIn("torchrun would wait for worker 1, which failed", pod.ends_with(0))
        self.assertTrue((pods.records / "worker.0.ended").exists())
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_a_failure_before_it_has_succeeded_is_not_the_end(self, shell):
        pods = Pods(self, "pytorch", shell)
        (pods.marks / "failed.0.worker.1").touch()
        pod = pods.start(0, STUB_UNTIL=FOREVER)
        pods.await_file(pods.records / "worker.0.json")
        pod.goes_on(0.8)
        pod.ask_to_end()
        pod.ends_with(143)

    @in_each_shell
    def test_the_others_are_done_too_and_go_on_waiting(self, shell):
        pods = Pods(self, "pytorch", shell)
        (pods.marks / "failed.0.worker.0").touch()
        pod = pods.start(1, STUB_SUCCEEDED="", STUB_UNTIL=FOREVER)
        pods.mark("done.worker.1")
        pod.goes_on(0.8)
        pod.ask_to_end()
        pod.ends_with(143)


if __name__ == "__main__":
    unittest.main()
