"""The same pool twice, on Flatcar's config and on AWS's Deep Learning image, whose script Debian's cloud-init runs: both nodes are the same, and a
job lives on the second one through a drain and a spot notice. An archive with another digest, a missing one and a denied one each stop a
machine, and `up` says which one and why.
"""

import hashlib
import http
import json
import pathlib
import re
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
import deep_learning_image  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from cloud_init_machine import CloudInitMachine  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from key_search import assert_no_key, holds_key, pieces_of_key  # noqa: E402
from training import NOTICE  # noqa: E402

GOLDEN = (ROOT / "tests/clusters/deep-learning/cluster.yaml").read_text()
# A controller and two workers.
NODES = 3
RUN = "first"
JOB = f"""
name: life
framework: program
image: {JOB_IMAGE}
pool: ubuntu
replicas: 1
gpus: 1
cpu: 100m
sharedMemory: 64Mi
scratchGiB: 20
grace: 20s
retries: 0
command: [python3, /mnt/training/program.py]
"""
# Each attempt writes what its container sees, and at the end how it was told to end.
PROGRAM = """
import json, os, pathlib, signal, subprocess, sys, time
output = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"])
attempt = 1 + len(list(output.glob("seen.*")))

def end(number, _frame):
    time.sleep(3)
    (output / f"ended.{attempt}").write_text(signal.Signals(number).name)
    sys.exit(1)

signal.signal(signal.SIGTERM, end)
smi = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout
(pathlib.Path("/mnt/scratch") / "shard").write_bytes(bytes(1 << 20))
part = output / "part"
part.write_text(json.dumps({"gpus": smi.split(), "scratch": os.statvfs("/mnt/scratch").f_blocks * os.statvfs("/mnt/scratch").f_frsize >> 30}))
part.rename(output / f"seen.{attempt}")
while not (output / "finish").exists():
    time.sleep(0.2)
"""

ADDED = "second"
# What there must not be before the digest is right.
UNPACKED = "ls -d /etc/kubernetes /opt/infra /opt/bin /etc/systemd/system/kubelet.service /run/infra-boot/* 2>/dev/null || true"
DENIED = "User: arn:aws:sts::111122223333:assumed-role/deep-nodes/i-0 is not authorized to perform: %s because no identity-based policy allows it"
REFUSAL = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>%s</Message></Error>'


def load_tests(_loader, _tests, _pattern):
    return in_order(DeepLearning)


class DeepLearning(Chapters):
    # The machines of the other pools have adapters that cannot be had here.
    text = GOLDEN.partition("- name: h100\n")[0] + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n"

    @classmethod
    def fill_file_system(cls, directory):
        (directory / "program.py").write_text(PROGRAM)

    def machine(self, pool):
        [machine] = self.of_role(f"pool-{pool}")
        return machine

    def node(self, pool):
        return self.get("node", self.machine(pool).facts["name"])

    def calls(self, machine, service, action):
        wanted = (machine.facts["address"], service, action)
        return [call for call in self.cluster.network.aws.calls if call == wanted]

    def assert_booted(self, machine, signal="signalled SUCCESS of Nodes"):
        """From the script to the signal, each once."""
        words = machine.script_output()
        for line in ("the configuration of this machine is unpacked", "NVIDIA driver", "the units of this node are started"):
            self.assertIn(f"infra: {line}", words + machine.journal("check-driver"))
        self.assertEqual(machine.failed_units(), "")
        # Of Docker, which has run before.
        self.assertIn("-P FORWARD DROP", machine.run("cat", deep_learning_image.DOCKER_LEFT))
        self.assertIn("-P FORWARD ACCEPT", machine.run("iptables", "--list-rules", "FORWARD"))
        self.assertNotIn("docker0", machine.run("ip", "link") + machine.run("iptables", "--table", "nat", "--list-rules", "POSTROUTING"))
        self.assertEqual(machine.unit("kubelet", "NRestarts", "SubState"), ("0", "running"))
        self.assertEqual(len(self.calls(machine, "s3", "GET")), 1)
        self.assertEqual(len(self.calls(machine, "cloudformation", "SignalResource")), 1)
        self.assertIn(signal, machine.journal("signal-node"))
        self.assertIn("kubelet", machine.run("systemd-inhibit", "--list", "--no-legend"))

    def test_up_ends_with_both_machines_ready(self):
        self.assertEqual(self.cluster.failures(), [])
        self.assertEqual(list(self.nodes().values()), ["True"] * NODES)
        self.assert_booted(self.machine("ubuntu"))
        self.assertEqual(self.machine("flatcar").failed_units(), "")
        self.wait_for_all_pods()
        self.assertIn("healthy", self.cluster.infra("status").stdout)

    def test_the_machine_has_run_what_was_rendered(self):
        machine = self.machine("ubuntu")
        user_data = machine.run("cat", "/var/lib/cloud/instance/user-data.txt")
        self.assertEqual(user_data, machine.facts["decodedUserData"].decode())
        archive = (self.cluster.directory / "userdata/pool-ubuntu.tar").read_bytes()
        self.assertEqual(re.search("(?m)^digest=(.*)$", user_data)[1], hashlib.sha512(archive).hexdigest())
        self.assertFalse(holds_key(user_data, pieces_of_key(self.bootstrap("ubuntu"))))
        assert_no_key(self, machine, self.bootstrap("ubuntu"))
        # The key that it came with is deleted once it has its own.
        self.assertNotIn("bootstrap.conf", machine.run("ls", "/etc/kubernetes"))

    def bootstrap(self, pool):
        with tarfile.open(self.cluster.directory / f"userdata/pool-{pool}.tar") as archive:
            return archive.extractfile("etc/kubernetes/bootstrap.conf").read().decode()

    def test_both_nodes_are_the_same(self):
        """Labels, taints, what pods can have, and every setting that the kubelet itself reports."""
        flatcar, ubuntu = self.node("flatcar"), self.node("ubuntu")
        self.assertEqual(labels(ubuntu), labels(flatcar))
        self.assertGreaterEqual(len(labels(ubuntu)), 10)
        self.assertEqual(ubuntu["metadata"]["labels"]["infra.internal/pool"], "ubuntu")
        self.assertEqual(ubuntu["spec"]["taints"], flatcar["spec"]["taints"])
        self.assertEqual({taint["key"] for taint in ubuntu["spec"]["taints"]}, {"dedicated", "nvidia.com/gpu"})
        for kind in ("capacity", "allocatable"):
            self.assertEqual(ubuntu["status"][kind], flatcar["status"][kind])
        self.assertEqual(ubuntu["status"]["allocatable"]["nvidia.com/gpu"], "1")
        settings = [self.settings(node) for node in (flatcar, ubuntu)]
        # Which machine it is.
        for each in settings:
            each.pop("providerID", None)
        self.assertEqual(settings[1], settings[0])
        self.assertIn("kubeReserved", settings[1])

    def settings(self, node):
        return json.loads(self.cluster.kubectl("get", "--raw", f"/api/v1/nodes/{node['metadata']['name']}/proxy/configz"))["kubeletconfig"]

    def output(self):
        return self.cluster.parts.shared / "life/runs" / RUN / "output"

    def wait_for_attempt(self, number):
        path = self.output() / f"seen.{number}"
        try:
            self.wait_for(f"attempt {number}", path.exists, 240)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.cluster.infra('job', 'status', 'life').stdout}") from None
        return json.loads(path.read_text())

    def pods(self, *words):
        return self.get("pods", "--all-namespaces", *words)["items"]

    def test_a_job_runs_on_it_and_a_drain_ends_it_in_order(self):
        (self.cluster.directory / "life.yaml").write_text(JOB)
        self.cluster.infra("job", "submit", "--file", "life.yaml", "--run", RUN, "--detach")
        seen = self.wait_for_attempt(1)
        self.assertEqual(seen["gpus"], ["GPU-pretend-0"])
        self.assertGreater(seen["scratch"], 150, "it is on the machine's own drive")
        name = self.machine("ubuntu").facts["name"]
        self.assertEqual([pod["spec"]["nodeName"] for pod in self.pods("--selector=infra.internal/job=life")], [name])

        self.cluster.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s", timeout=150)
        self.assertEqual((self.output() / "ended.1").read_text(), "SIGTERM")
        left = self.pods(f"--field-selector=spec.nodeName={name}")
        self.assertEqual({pod["metadata"]["ownerReferences"][0]["kind"] for pod in left}, {"DaemonSet"})
        self.cluster.kubectl("uncordon", name)
        self.assertEqual(self.wait_for_attempt(2), seen)

    def test_a_spot_notice_ends_its_pods_first_and_another_machine_takes_over(self):
        machine = self.machine("ubuntu")
        began = time.monotonic()
        self.cluster.network.metadata.spot_notices[machine.id] = NOTICE
        self.wait_for("the machine to shut down", lambda: machine.process.poll() is not None, 240)
        say(f"from the notice to the end of the machine: {time.monotonic() - began:.0f} s")
        self.assertEqual((self.output() / "ended.2").read_text(), "SIGTERM")
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[machine.id])
        self.wait_for_attempt(3)
        say(f"until the job runs on another machine: {time.monotonic() - began:.0f} s")
        self.assertNotEqual(self.machine("ubuntu").id, machine.id)
        # A node is Ready a moment before it signals.
        # Auto Scaling has replaced it on its own.
        needless = "is in no operation that waits for Nodes: SUCCESS need not be signalled"
        self.wait_for("the signal", lambda: needless in self.machine("ubuntu").journal("signal-node"))
        self.assert_booted(self.machine("ubuntu"), needless)
        (self.output() / "finish").touch()
        self.wait_for("the end of the job", lambda: "complete" in self.cluster.infra("job", "status", "life").stdout)

    def assert_stopped(self, answer, reason):
        """`up` adds a pool whose machine gets this answer from S3."""
        stopped = StoppedMachine(self.cluster, answer)
        self.cluster.network.aws.intercept = stopped
        try:
            printed = self.cluster.infra("up", "--yes", expected=(6,)).stderr
        finally:
            self.cluster.network.aws.intercept = lambda _call, _path: None
            self.cluster.account.allow_machines()
        self.assertRegex(stopped.console, f"infra: boot failed: s3://.*/pool-{ADDED}/[0-9a-f]{{128}}[.]tar {reason}")
        self.assertFalse(holds_key(stopped.console, pieces_of_key(self.bootstrap(ADDED))))
        self.assertEqual(stopped.unpacked, "")
        self.assertEqual(stopped.kubelet, ("inactive",))
        self.assertIn(f"stack deep-pool-{ADDED} failed (ROLLBACK_COMPLETE): pool {ADDED}, 1 × g6e.xlarge in us-west-2a (Nodes): Received 1 FAILURE", printed)
        self.assertIn(f"console of {stopped.machine}:\n", printed)
        self.assertRegex(printed, f"the last step it reported: boot failed: s3://.*[.]tar {reason}")
        self.assertEqual(self.cluster.failures(), [])

    def test_an_archive_with_another_digest_stops_a_machine(self):
        self.change("storage: {efs: {}}\n", f"- {{name: {ADDED}, image: deep-learning, instanceType: g6e.xlarge}}\nstorage: {{efs: {{}}}}\n")
        archive = (self.cluster.directory / f"userdata/pool-{ADDED}.tar").read_bytes()
        digest = hashlib.sha512(archive).hexdigest()
        answer = (http.HTTPStatus.OK, {"Content-Type": "application/x-tar", "ETag": '"0"'}, archive + bytes(512))
        self.assert_stopped(answer, f"does not have the sha512 {digest}; nothing was unpacked")

    def assert_refusal_stops(self, message, reason):
        # In the place of five minutes.
        CloudInitMachine.settings = {"INFRA_DEADLINE_SECONDS": "20"}
        try:
            self.assert_stopped((http.HTTPStatus.FORBIDDEN, {"Content-Type": "application/xml"}, (REFUSAL % message).encode()), reason)
        finally:
            CloudInitMachine.settings = {}

    def test_a_missing_archive_stops_a_machine(self):
        # S3 says so to whoever may not list a bucket, as the role of pools may not.
        message = DENIED % "s3:ListBucket on resource: arn:aws:s3:::cluster-assets"
        reason = "was not read within 20 s: the machine's role may not read it, or it is missing: .*[(]AccessDenied[)].* s3:ListBucket"
        self.assert_refusal_stops(message, reason)

    def test_a_denied_key_stops_a_machine(self):
        reason = "was not read within 20 s: the machine's role may not read it, or it is missing: .*[(]AccessDenied[)].* kms:Decrypt"
        self.assert_refusal_stops(DENIED % "kms:Decrypt on the resource associated with this ciphertext", reason)

    def test_once_s3_answers_up_completes(self):
        # An address may be that of a machine that was stopped.
        self.cluster.network.aws.calls.clear()
        self.cluster.infra("up", "--yes")
        self.assertEqual(list(self.nodes().values()), ["True"] * (NODES + 1))
        self.assert_booted(self.machine(ADDED))

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])


class StoppedMachine:
    """Answers the machine of the added pool in S3's place, and looks at it before its signal arrives: then it is terminated."""

    def __init__(self, cluster, answer):
        self.cluster, self.answer = cluster, answer
        self.machine = self.console = self.unpacked = self.kubelet = None

    def __call__(self, call, _path):
        machines = [machine for machine in self.cluster.room.of_role(f"pool-{ADDED}") if machine.facts["address"] == call.source]
        if machines and (call.service, call.action) == ("s3", "GET"):
            return self.answer
        if machines and call.action == "SignalResource":
            self.look_at(machines[0])
        return None

    def look_at(self, machine):
        self.machine, self.console = machine.id, machine.script_output()
        self.unpacked, self.kubelet = machine.run("sh", "-c", UNPACKED), machine.unit("kubelet", "ActiveState")
        account = self.cluster.account
        self.cluster.aws.control(**account.pace, **account.wishes, console={machine.id: self.console})


def labels(node):
    """Without those that name the machine, its pool and its kernel."""
    own = {"kubernetes.io/hostname", "infra.internal/pool"}
    return {name: value for name, value in node["metadata"]["labels"].items() if name not in own}
