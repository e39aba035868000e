"""Three etcd members, two controllers, two workers: what is lost comes back, and the API answers meanwhile."""

import base64
import hashlib
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402, F401
from chapters import WORKER, Chapters, Questions, in_order, say  # noqa: E402
from container import run  # noqa: E402

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
API_AWAY_SECONDS = 30


def load_tests(_loader, _tests, _pattern):
    return in_order(HighAvailability)


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
        self.assertLess(questions.longest, 30)
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
        self.assertLess(questions.longest, 30)
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

    def test_a_full_disk_stops_one_member_until_there_is_space(self):
        [member] = self.of_role("etcd-2")
        free = member.run("df", "--output=avail", "--block-size=1", "/var/lib/etcd").split()[-1]
        member.run("fallocate", "--length", free, "/var/lib/etcd/filler")
        # More than the rest of a segment of etcd's log, which has its space already.
        large = json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"large-{number}", "labels": {"size": "large"}},
             "data": {"text": "x" * 900_000}} for number in range(80)]})
        with Questions(self.cluster) as questions:
            self.cluster.kubectl("create", "--filename=-", input=large, timeout=300)
            self.wait_for("etcd runs out of space", lambda: "no space left on device" in member.journal("etcd"), 300)
            # The others go on, and take writes.
            self.cluster.kubectl("create", "configmap", "meanwhile", "--from-literal=a=b")
            member.run("rm", "/var/lib/etcd/filler")
            began = time.monotonic()
            self.wait_for("the member serves again", lambda: self.is_healthy(member), 300)
        say(f"an etcd member after its disk was full: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.assertLess(questions.longest, 30)
        self.cluster.kubectl("delete", "configmaps", "--selector=size=large")

    def is_healthy(self, member):
        return "is healthy" in self.etcdctl(member, "endpoint", "health", check=False)

    def etcdctl(self, member, *words, check=True):
        """As docs/runbooks/lose-an-etcd-member.md has it."""
        files = {"cacert": "ca", "cert": "member", "key": "member-key"}
        options = [f"--{option}=/etc/etcd/pki/{name}.pem" for option, name in files.items()]
        # etcdctl prints what it finds on one stream or the other.
        return member.run("sh", "-c", '"$@" 2>&1', "sh", "docker", "exec", "etcd", "etcdctl", "--endpoints=https://127.0.0.1:2379",
                          *options, *words, check=check)

    def test_one_member_that_lost_its_data_learns_from_the_others(self):
        [member], [other] = self.of_role("etcd-1"), self.of_role("etcd-0")
        member.run("systemctl", "stop", "etcd")
        member.run("mv", "/var/lib/etcd/member", "/var/lib/etcd/member.lost")
        listed = self.etcdctl(other, "member", "list")
        [lost] = [line.split(",")[0] for line in listed.splitlines() if ", etcd-1," in line]
        self.etcdctl(other, "member", "remove", lost)
        self.etcdctl(other, "member", "add", "etcd-1", "--peer-urls=https://etcd-1.ha.infra.internal:2380")
        member.run("sed", "-i", "s/^ETCD_INITIAL_CLUSTER_STATE=new/ETCD_INITIAL_CLUSTER_STATE=existing/", "/etc/etcd/etcd.env")
        member.run("systemctl", "restart", "etcd")
        self.wait_for("three members", lambda: self.etcdctl(other, "member", "list").count(", started, ") == 3, 300)
        self.wait_for("the member serves again", lambda: self.is_healthy(member), 300)

    def test_blank_volumes_are_restored_from_a_snapshot(self):
        s3, folder = self.cluster.account.client("s3"), "clusters/ha/snapshots/"
        self.cluster.kubectl("create", "configmap", "in-the-snapshot", "--from-literal=a=b")
        members = [machine for machine in self.cluster.room.machines.values() if machine.role.startswith("etcd-")]
        for machine in members:
            machine.run("systemctl", "start", "snapshot-etcd")
        self.cluster.kubectl("create", "configmap", "behind-the-snapshot", "--from-literal=a=b")
        listed = s3.list_objects_v2(Bucket="cluster-assets", Prefix=folder)["Contents"]
        name = max(listed, key=lambda found: found["LastModified"])["Key"].removeprefix(folder)
        stored = s3.get_object(Bucket="cluster-assets", Key=folder + name)
        digest, version = hashlib.sha256(stored["Body"].read()).hexdigest(), stored.get("VersionId")
        told = rf"in the bucket as {name}(, version \S+)?; its SHA-256 is {digest}"
        # Only the leader uploads.
        self.assertEqual(sum(bool(re.search(told, machine.journal("snapshot-etcd"))) for machine in members), 1)
        named = f"INFRA_RESTORE_VERSION={version}\n" if version else ""
        for machine in members:
            settings = f"INFRA_RESTORE_SNAPSHOT={name}\n{named}INFRA_RESTORE_SHA256={digest}\n"
            machine.run("sh", "-c", f"printf '{settings}' > /etc/infra/restore.env && sync")
            machine.cut_power()
            for device in machine.disks.values():
                run("blkdiscard", "--force", device)
        began = time.monotonic()
        for machine in members:
            machine.switch_on()
        self.wait_for("the API", lambda: "in-the-snapshot" in self.cluster.kubectl("get", "configmaps", "--output=name", check=False), 300)
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)
        say(f"blank volumes restored from a snapshot: {time.monotonic() - began:.0f} s")
        for machine in members:
            self.assertIn("is blank: formatting it", machine.journal("claim-volume"))
            self.assertIn(f"etcd restored from {name}", machine.journal("prepare-etcd"))
        self.assertNotIn("behind-the-snapshot", self.cluster.kubectl("get", "configmaps", "--output=name"))
        # Controllers and kubelets follow what happens behind the restore.
        self.create_pod("restored", WORKER, '"exec sleep 3600"')
        self.wait_for_pods("restored")
        for machine in members:
            machine.run("rm", "/etc/infra/restore.env")
        self.wait_for_all_pods()

    def test_up_outlasts_an_api_that_is_away(self):
        self.change("instanceType: m5.large, count: 2", "instanceType: m5.large, count: 3")
        controllers = self.of_role("controller")
        # At its own pace: an API that is away for five minutes is another case.
        with self.cluster.running_infra("up", "--yes", INFRA_TEST_TEMPO="1") as up:
            self.wait_for("a new machine", lambda: len(self.of_role("pool-cpu")) == 3, 300)
            for controller in controllers:
                controller.cut_power()
            time.sleep(API_AWAY_SECONDS)
            self.assertFalse(up.has_ended(), up.printed())
            for controller in controllers:
                controller.switch_on()
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES + 1), 300)
        self.change("instanceType: m5.large, count: 3", "instanceType: m5.large, count: 2")
        self.cluster.infra("up", "--yes")
        self.wait_for("the machine goes, and its Node", lambda: self.all_nodes_are_ready(NODES), 300)

    def test_the_control_plane_rolls_while_the_api_answers(self):
        self.change("controllers: {count: 2}", "controllers: {count: 2}\napi: {additionalNames: [other.example.com]}")
        before = {machine.id for machine in self.of_role("controller")}
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.cluster.infra("up", "--yes")
        say(f"the control plane rolled: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.assertFalse(before & {machine.id for machine in self.of_role("controller")})
        self.assertLess(questions.longest, 30)
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)

    def test_certificates_are_renewed(self):
        before = set(self.cluster.room.machines)
        kubeconfig = self.cluster.directory / "kubeconfig"
        kubeconfig.rename(self.cluster.directory / "kubeconfig.old")
        self.cluster.infra("render", "credentials", "--renew")
        began = time.monotonic()
        with Questions(self.cluster) as questions:
            self.cluster.infra("up", "--yes")
        say(f"certificates renewed: {time.monotonic() - began:.0f} s, longest without an answer {questions.longest:.0f} s")
        self.assertLess(questions.longest, 30)
        self.assertFalse(before & set(self.cluster.room.machines), "every machine has its new certificates")
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)
        self.wait_for_all_pods()
        self.cluster.infra("certificates")
        # The old one is good until it expires.
        self.assertEqual(self.cluster.run(self.cluster.parts.kubectl, "--kubeconfig=kubeconfig.old", "get", "nodes").returncode, 0)
        # Service accounts' tokens are still good: their key is no certificate.
        self.create_pod("renewed", WORKER, '"exec sleep 3600"')
        self.wait_for_pods("renewed")
        lost = self.of_role("pool-cpu")[0]
        self.terminate(lost)
        self.wait_for("a machine that starts later joins", lambda: self.all_nodes_are_ready(NODES, without=lost), 300)

    def test_secrets_are_unreadable_in_etcd(self):
        self.cluster.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=plainly-visible")
        [member] = self.of_role("etcd-0")

        def files_with(text):
            return member.run("grep", "--recursive", "--text", "--files-with-matches", text, "/var/lib/etcd/member", check=False).splitlines()

        # Keys are readable. The other members may have it first.
        self.wait_for("the Secret in the data of etcd-0", lambda: files_with("/registry/secrets/default/hidden"), 60)
        self.assertEqual(files_with("plainly-visible"), [])
        self.assertIn("plainly", base64.b64decode(json.loads(
            self.cluster.kubectl("get", "secret", "hidden", "--output=json"))["data"]["key"]).decode())

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
