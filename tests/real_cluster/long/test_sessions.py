"""Shells in the pods of a job, and ports of pods, through a real API server, kubelet and containerd."""

import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402

JOB = """
name: pair
framework: program
image: %s
replicas: 2
cpu: 100m
sharedMemory: 64Mi
workdir: /var/tmp
retries: 0
command: [sh, -c, "exec sleep 3600"]
tensorboard: {image: %s, cpu: 100m, memory: 256Mi}
"""
# Serves what TensorBoard would show; the team's own launcher in the place of ours.
BOARD = 'cd "$INFRA_RUNS_DIR/.."\nexec python3 -m http.server 6006\n'
TERMINAL = ROOT / "tests/lifecycle/support/terminal.py"
WAIT_FOR_SIZE = "import os, time\nwhile os.get_terminal_size() != (132, 43):\n time.sleep(0.1)\nraise SystemExit(42)"
FETCH = """
import concurrent.futures, hashlib, sys, urllib.request
def fetch(_):
    return hashlib.sha256(urllib.request.urlopen(sys.argv[1], timeout=120).read()).hexdigest()
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(*sorted(set(pool.map(fetch, range(int(sys.argv[2]))))))
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(Sessions)


class Sessions(Chapters):
    text = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n"

    def shell(self, *words, expected=(0,)):
        return self.cluster.infra("job", "shell", *words, expected=expected)

    def test_a_job_is_running(self):
        # A node is Ready before its taint is gone.
        self.wait_for_all_pods()
        directory = self.cluster.directory
        (directory / "job.yaml").write_text(JOB % (JOB_IMAGE, JOB_IMAGE))
        (directory / "templates/jobs").mkdir(parents=True)
        (directory / "templates/jobs/tensorboard.sh").write_text(BOARD)
        self.cluster.infra("job", "submit", "--detach")
        self.wait_for("both replicas run", lambda: all(
            self.shell(number, "--", "true", expected=(0, 1)).returncode == 0 for number in ("0", "1")))

    def test_a_command_runs_where_the_job_does_and_gives_its_exit_code(self):
        self.assertEqual(self.shell("--", "pwd").stdout, "/var/tmp\n")
        self.assertEqual(self.shell("1", "--", "sh", "-c", "echo $INFRA_ROLE $JOB_COMPLETION_INDEX").stdout, "worker 1\n")
        ended = self.shell("pair", "1", "--", "sh", "-c", "echo out; echo err >&2; exit 7", expected=(7,))
        self.assertEqual((ended.stdout, ended.stderr), ("out\n", "err\n"))
        self.assertIn("not found", self.shell("--", "no-such-program", expected=(127,)).stderr)
        self.assertIn("has no replica with number 2", self.shell("2", expected=(1,)).stderr)

    def test_input_and_output_are_unchanged_and_end(self):
        text = "".join(f"line {number}\n" for number in range(500_000))
        began = time.monotonic()
        done = self.cluster.run(self.cluster.binary, "job", "shell", "--", "cat", timeout=300, input=text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(hashlib.sha256(done.stdout.encode()).digest(), hashlib.sha256(text.encode()).digest())
        say(f"{len(text) >> 10} KiB to a pod and back: {time.monotonic() - began:.1f} s")

    def test_a_terminal_has_the_size_of_the_users(self):
        orders = json.dumps({"resize": [132, 43]}) + "\n"
        done = self.cluster.run(sys.executable, TERMINAL, self.cluster.binary, "job", "shell", "--", "python3", "-c", WAIT_FOR_SIZE,
                                timeout=300, input=orders)
        self.assertEqual(done.returncode, 42, done)
        self.assertIn("the terminal is as before", done.stderr)
        # Ctrl-D ends the input of what has the terminal; what is typed before a program has it, the shell may read in its place.
        orders = "".join(json.dumps(order) + "\n" for order in (
            {"type": "sh -c 'echo rea\"\"dy; exec cat'\r"}, {"await": "ready"}, {"type": "twice\r\x04exit 5\r"}))
        done = self.cluster.run(sys.executable, TERMINAL, self.cluster.binary, "job", "shell", timeout=300, input=orders)
        self.assertEqual(done.returncode, 5, done)
        self.assertGreaterEqual(done.stdout.count("twice"), 2, done)

    def test_the_tensorboard_is_reached_through_a_port_of_this_machine(self):
        content = bytes(range(256)) * (64 << 10)
        (self.cluster.parts.shared / "pair/content").write_bytes(content)
        process = subprocess.Popen(self.cluster.operators_command(self.cluster.binary, "job", "tensorboard"), cwd=self.cluster.directory,
                                   env=self.cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/$")
        began = time.monotonic()
        fetched = self.cluster.run(sys.executable, "-c", FETCH, f"{address}content", "16", timeout=600)
        self.assertEqual(fetched.stdout.strip(), hashlib.sha256(content).hexdigest(), fetched.stderr)
        say(f"16 times 16 MiB through a forwarded port: {time.monotonic() - began:.1f} s")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)

    def test_it_ends_with_the_job(self):
        self.cluster.infra("job", "delete", "--yes")
        self.assertIn("there is no job 'pair'", self.shell(expected=(1,)).stderr)
        self.cluster.infra("destroy", "--yes")
