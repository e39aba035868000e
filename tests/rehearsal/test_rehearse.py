"""scripts/rehearse as a new user runs it: an example, a cluster of one's own, Control-C. No process may be left afterwards."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = ["Check it", "Render it", "An account", "Plan", "Up", "Status", "Change a pool", "A training job", "A failure drill", "Destroy"]
# All that an account can have already, with a type and a zone that the stand-in does not know by itself, on as few lines as possible.
OWN = """\
clusterName: own
externalDNSName: api.own.example.com
region: us-east-1
availabilityZones: [us-east-1a, us-east-1f]
kmsKeyArn: arn:aws:kms:us-east-1:444455556666:key/deadbeef-12ab-34cd-56ef-1234567890ab
keyName: team
s3URI: s3://own-assets/infra
dns: {hostedZoneId: Z0123456789ABCDEF}
etcd: {count: 1}
controllers: {count: 1}
network:
  vpcCIDR: 10.40.0.0/16
  existing:
    vpcId: vpc-0123456789abcdef0
    subnets:
    - {id: subnet-0123456789abcdef0, availabilityZone: us-east-1a, public: true}
    - {id: subnet-0123456789abcdef1, availabilityZone: us-east-1f, public: true}
pools: [{name: cpu, instanceType: c7i.large}, {name: l4, instanceType: g6.xlarge, maxCount: 1, availabilityZones: [us-east-1f],
  capacityReservationId: cr-0123456789abcdef0}]
storage: {efs: {fileSystemId: fs-0123456789abcdef0, createMountTargets: true, mountPath: /mnt/shared}}
"""


def plain(text):
    """On one line, without what differs each time."""
    text = re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", text)
    text = re.sub(r"fs-[0-9a-f]{17}", "fs-…", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:…", text))
    text = re.sub(r"about 20\d\d-\d\d-\d\d", "about DAY", text)
    return " ".join(text.split())


class Rehearsal(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        # Everything that is started works below it, and so can be found.
        self.scratch = pathlib.Path(directory.name, "scratch")
        self.scratch.mkdir()
        self.own = pathlib.Path(directory.name, "own")
        self.own.mkdir()

    def start(self, *arguments):
        environment = os.environ | {"INFRA_BINARY": str(ROOT / "target/debug/infra"), "TMPDIR": str(self.scratch)}
        process = subprocess.Popen([ROOT / "scripts/rehearse", *arguments], env=environment, cwd=self.scratch, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        self.addCleanup(process.stdout.close)
        return process

    def run_to_end(self, *arguments):
        process = self.start(*arguments)
        seen, _ = process.communicate(timeout=3000)
        self.assertEqual(process.returncode, 0, seen)
        self.nothing_is_left()
        return seen

    def running(self):
        running = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                about = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.scratch).encode() in about:
                running.append(about)
        return running

    def nothing_is_left(self):
        self.assertEqual(list(self.scratch.iterdir()), [])
        self.assertEqual(self.running(), [])

    def headings(self, seen):
        return re.findall(r"(?m)^==> \d+\. (.*)$", seen)

    def test_example(self):
        seen = self.run_to_end()
        self.assertEqual(self.headings(seen), ["A cluster.yaml", *STEPS])
        for part in ("$ infra up --s3-uri", "example: healthy", "DesiredCapacity: 1 → 2", "job.yaml: good",
                     "sufficient g5.xlarge capacity", "(exit code 6)", "example is deleted", "no stack and no machine is left",
                     "==> Summary", "==> Next, with a real account"):
            self.assertIn(part, seen)
        self.assertNotIn("NOT REHEARSED", seen)
        self.shows_the_transcript(seen)

    def shows_the_transcript(self, seen):
        """What the README shows was really said, in this order; `…` stands for what it leaves out."""
        readme = (ROOT / "README.md").read_text()
        transcript = re.search(r"(?s)^```console\n(.*?)^```$", readme, re.MULTILINE).group(1)
        rest = plain(seen)
        for part in plain(transcript).split(" … "):
            _, found, rest = rest.partition(part)
            self.assertTrue(found, f"not said, or not in this order: {part}\n{seen}")

    def test_own_cluster(self):
        file = self.own / "cluster.yaml"
        file.write_text(OWN)
        extra = self.own / "manifests/extra"
        extra.mkdir(parents=True)
        (extra / "team.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
        seen = self.run_to_end("-C", str(self.own))
        self.assertEqual(self.headings(seen), ["Your cluster.yaml", *STEPS])
        for part in ("    copied with it: manifests/extra/\n", "    the key pair team\n", "    the bucket own-assets\n", "    the network vpc-0123456789abcdef0\n",
                     "    the file system fs-0123456789abcdef0\n", "    the hosted zone own.example.com\n",
                     "    the reservation cr-0123456789abcdef0\n", "\n$ infra up\n", "{name: l4, count: 2,", "own is deleted"):
            self.assertIn(part, seen)
        left_out = re.findall("NOT REHEARSED: (.*)", seen)
        self.assertEqual([line for line in left_out if "not made for that job" not in line], [], seen)
        self.assertEqual(sorted(path.name for path in self.own.iterdir()), ["cluster.yaml", "manifests"])
        self.assertEqual(file.read_text(), OWN)

    def test_help_and_wrong_arguments_build_nothing(self):
        for arguments, code, words in [
            (["--help"], 0, "rehearse the cluster.yaml of this directory"),
            (["-C", str(self.own)], 2, f"there is no cluster.yaml in {self.own}"),
            (["--nonsense"], 2, "unrecognized arguments: --nonsense"),
        ]:
            with self.subTest(arguments):
                # A cargo that would end it.
                (self.own / "cargo").write_text("#!/bin/sh\necho built >&2\nexit 97\n")
                (self.own / "cargo").chmod(0o755)
                environment = os.environ | {"PATH": f"{self.own}:{os.environ['PATH']}", "TMPDIR": str(self.scratch)}
                environment.pop("INFRA_BINARY", None)
                run = subprocess.run([ROOT / "scripts/rehearse", *arguments], env=environment, capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, timeout=300)
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertIn(words, run.stdout + run.stderr)

    def test_invalid_cluster_stops_it(self):
        (self.own / "cluster.yaml").write_text(OWN.replace("us-east-1f", "us-east-2f"))
        process = self.start("-C", str(self.own))
        seen, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1, seen)
        self.assertIn("The rehearsal stops here: `infra validate` ended with 2 instead of 0.", seen)
        self.nothing_is_left()

    def start_and_watch(self):
        """Up to the middle of `up`."""
        process = self.start()
        seen = ""
        while "begins" not in seen:
            line = process.stdout.readline()
            self.assertTrue(line, seen)
            seen += line
        # The rehearsal, the stand-in and the program, at least: what is looked for later can be found.
        self.assertGreater(len(self.running()), 2)
        return process, seen

    def test_kill(self):
        process, _ = self.start_and_watch()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while self.running():
            self.assertLess(time.monotonic(), deadline, self.running())
            time.sleep(0.1)

    def test_interruption(self):
        process, seen = self.start_and_watch()
        # As a terminal does it.
        os.killpg(process.pid, signal.SIGINT)
        start = time.monotonic()
        rest, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, seen + rest)
        self.assertLess(time.monotonic() - start, 60)
        self.assertIn("Interrupted; the stand-in", rest)
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
