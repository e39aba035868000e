"""Three etcd members, two controllers, two workers: what is lost comes back, and the API answers meanwhile."""

import base64
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402, F401
from chapters import Chapters, in_order, say  # noqa: E402

CLUSTER = """
clusterName: ha
externalDNSName: ha.example.com
region: us-west-2
availabilityZones: [us-west-2a, us-west-2b, us-west-2c]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
etcd: {count: 3}
controllers: {count: 2}
pools:
- {name: cpu, instanceType: m5.large, count: 2}
addons: {clusterAutoscaler: false}
"""
NODES = 4


def load_tests(_loader, _tests, _pattern):
    return in_order(HighAvailability)


class Questions:
    """Asks the API again and again, as an impatient user would; `longest` is the longest time without an answer."""

    def __init__(self, cluster):
        self.cluster, self.stopping = cluster, threading.Event()
        self.longest = 0.0
        self.thread = threading.Thread(target=self.ask)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def ask(self):
        answered = time.monotonic()
        while not self.stopping.wait(0.5):
            done = self.cluster.kubectl("get", "--raw=/readyz", "--request-timeout=4s", check=False)
            now = time.monotonic()
            if done == "ok":
                self.longest = max(self.longest, now - answered)
                answered = now


class HighAvailability(Chapters):
    text = CLUSTER

    def terminate(self, machine):
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[machine.id])
        self.wait_for("another machine", lambda: any(other.id != machine.id for other in self.of_role(machine.role)) and
                 machine not in self.of_role(machine.role))

    def test_every_pod_runs(self):
        self.assertEqual(len(self.nodes()), NODES)
        self.wait_for_all_pods()
        self.cluster.infra("status")

    def test_a_worker_is_lost(self):
        lost = self.of_role("pool-cpu")[0]
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.terminate(lost)
            self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES, without=lost), 300)
        say(f"a worker replaced: {time.monotonic() - began:.0f} s")
        self.assertLess(questions.longest, 30)

    def test_a_controller_is_lost(self):
        lost = self.of_role("controller")[0]
        self.cluster.kubectl("create", "configmap", "before", "--from-literal=a=b")
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.terminate(lost)
            self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES, without=lost), 300)
        say(f"a controller replaced: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.cluster.kubectl("get", "configmap", "before")
        self.wait_for_all_pods()

    def test_an_etcd_member_is_lost(self):
        lost = self.of_role("etcd-1")[0]
        volumes = set(lost.disks)
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.terminate(lost)
            self.wait_for("its unit", lambda: self.is_serving("etcd-1"), 300)
        say(f"an etcd member replaced: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        [found] = self.of_role("etcd-1")
        self.assertEqual(set(found.disks), volumes, "the member is the same one, on its own volume")
        self.assertNotIn("blank", found.journal("claim-volume").splitlines()[-1])

    def is_serving(self, role):
        machines = [machine for machine in self.of_role(role) if machine.ready.is_set() and machine.leader]
        return machines and machines[0].unit("signal-etcd.service", "SubState") == ("exited",)

    def test_all_power_is_cut_at_once(self):
        self.cluster.kubectl("create", "configmap", "power", "--from-literal=a=b")
        machines = list(self.cluster.room.machines.values())
        began = time.monotonic()
        for machine in machines:
            machine.cut_power()
        for machine in machines:
            machine.switch_on()
        self.wait_for("the API", lambda: "power" in self.cluster.kubectl("get", "configmaps", "--output=name", check=False), 300)
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)
        say(f"everything after a power cut: {time.monotonic() - began:.0f} s")
        self.wait_for_all_pods()
        for machine in machines:
            self.assertEqual(machine.failed_units(), "", machine.role)

    def test_the_control_plane_rolls_while_the_api_answers(self):
        path = self.cluster.directory / "cluster.yaml"
        path.write_text(path.read_text() + "api: {additionalNames: [other.example.com]}\n")
        before = {machine.id for machine in self.of_role("controller")}
        began = time.monotonic()
        self.cluster.infra("render")
        with Questions(self.cluster) as questions:
            self.cluster.infra("up", "--yes")
        say(f"the control plane rolled: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.assertFalse(before & {machine.id for machine in self.of_role("controller")})
        self.assertLess(questions.longest, 30)
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)

    def test_secrets_are_unreadable_in_etcd(self):
        self.cluster.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=plainly-visible")
        [member] = self.of_role("etcd-0")
        found = member.run("grep", "--recursive", "--text", "--count", "plainly-visible", "/var/lib/etcd/member", check=False)
        self.assertTrue(found)
        self.assertEqual([line for line in found.splitlines() if not line.endswith(":0")], [])
        self.assertIn("plainly", base64.b64decode(json.loads(
            self.cluster.kubectl("get", "secret", "hidden", "--output=json"))["data"]["key"]).decode())

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
