"""Four machines all-reduce with gloo, in real pods: healthy, with one of them slowed, cut off or busy, and interrupted."""

import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import real_cluster  # noqa: E402, F401 - first: it says where everything else is
from chapters import in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from training import MACHINES, POOL, TrainingChapters  # noqa: E402

CHECK = ("job", "nccl-check", "--backend", "gloo", "--pool", POOL, "--image", JOB_IMAGE, "--size", "16Mi")
# Of each bit that the machine sends; without it, it sends gigabits.
SLOW = "40mbit"
# The image has Python; PyTorch is on the file system, where the pods of the check have no business: an administrator's rule adds it.
PYTORCH = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: pytorch}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
  - {name: check, expression: '"infra.internal/role" in object.metadata.labels && object.metadata.labels["infra.internal/role"].startsWith("nccl-check")'}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "training",
        persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: "efs"}}},
        JSONPatch{op: "add", path: "/spec/containers/0/volumeMounts/-",
        value: Object.spec.containers.volumeMounts{name: "training", mountPath: "/mnt/training"}},
        JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: Object.spec.containers.env{name: "PATH",
        value: "/mnt/training/frameworks/pytorch/bin:/usr/bin:/bin"}},
        JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: Object.spec.containers.env{name: "LD_LIBRARY_PATH",
        value: "/mnt/training/frameworks/pytorch/lib"}},
        JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: Object.spec.containers.env{name: "OMP_NUM_THREADS", value: "1"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: pytorch}
spec: {policyName: pytorch}
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(NcclCheck)


class NcclCheck(TrainingChapters):
    environments = ["pytorch"]

    def machines(self):
        """In the order of their nodes, which is that of the report."""
        return sorted(self.of_role(f"pool-{POOL}"), key=lambda machine: machine.facts["name"])

    def check(self, *expected):
        began = time.monotonic()
        done = self.cluster.infra(*CHECK, "--output", "json", expected=expected)
        report = json.loads(done.stdout)
        pairs = sorted(pair["bandwidth"] or 0 for pair in report["pairs"])
        say(f"nccl-check: exit {done.returncode} in {time.monotonic() - began:.0f} s; pairs {[round(pair, 3) for pair in pairs]}, together {report['together']}; "
            + "; ".join([machine["problem"] for machine in report["machines"] if machine["problem"]] + report["problems"]))
        self.assert_nothing_is_left()
        return report

    def assert_nothing_is_left(self):
        def left():
            words = "--selector=infra.internal/role in (nccl-check,nccl-check-conductor)"
            return [item["metadata"]["name"] for kind in ("pods", "configmaps") for item in self.get(kind, words)["items"]]

        self.wait_for("nothing is left of the check", lambda: not left(), 60)

    def assert_is_not_blamed(self, machine):
        """Beside builds, a pair of other machines may be slow for once."""
        self.assertNotIn(machine.facts["name"], self.blamed(self.check(0, 3)))

    def blamed(self, report):
        return {machine["node"]: machine["problem"] for machine in report["machines"] if machine["problem"]}

    def test_the_machines_are_healthy(self):
        self.cluster.kubectl("apply", "--filename=-", input=PYTORCH)
        self.wait_for_machines()
        # The rule is known to the API server a moment later.
        time.sleep(10)
        report = self.check(0)
        self.assertEqual(len(report["machines"]), MACHINES)
        self.assertEqual(len(report["pairs"]), MACHINES * (MACHINES - 1) // 2)
        self.assertGreater(report["together"], 0)
        self.assertEqual([machine["instanceType"] for machine in report["machines"]], ["m5.large"] * MACHINES)

    def test_a_slowed_machine_is_named_until_it_is_not_slow_any_more(self):
        slow = self.machines()[2]
        slow.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", SLOW, "burst", "64kb", "latency", "100ms")
        try:
            report = self.check(3)
        finally:
            slow.run("tc", "qdisc", "del", "dev", "eth0", "root")
        self.assertEqual(list(self.blamed(report)), [slow.facts["name"]])
        self.assertRegex(self.blamed(report)[slow.facts["name"]], "^slow: at most 0.00")
        self.assertEqual(report["problems"], [])
        self.assert_is_not_blamed(slow)

    def test_a_machine_that_nobody_reaches_is_named(self):
        """Orders reach its pod, and what machines say to one another does not."""
        lost = self.machines()[1]
        for rule in ("--new-chain check", "--append check --protocol tcp --dport 29400 --jump RETURN",
                     "--append check --protocol tcp --sport 29400 --jump RETURN", "--append check --protocol tcp --jump DROP",
                     "--insert FORWARD --jump check"):
            lost.run("iptables", *rule.split())
        try:
            report = self.check(3)
        finally:
            lost.run("iptables", "--delete", "FORWARD", "--jump", "check")
        self.assertEqual(list(self.blamed(report)), [lost.facts["name"]])
        self.assertRegex(self.blamed(report)[lost.facts["name"]], "^it reaches no other machine, in 3 pairs: ")
        self.assert_is_not_blamed(lost)

    def test_a_busy_machine_is_left_out_and_its_job_goes_on(self):
        self.submit("busy", replicas=1)
        self.wait_for_step("busy", 3)
        [machine] = self.machines_of("busy")
        before = self.highest("busy")
        report = self.check(0)
        left_out = {line["node"]: line["leftOut"] for line in report["machines"] if line["leftOut"]}
        self.assertEqual(left_out, {machine.facts["name"]: "job 'busy' of namespace default runs there"})
        self.assertEqual(len(report["pairs"]), (MACHINES - 1) * (MACHINES - 2) // 2)
        self.wait_for_step("busy", before + 3)
        self.assertEqual(self.restarts("busy"), (0, 0))
        self.finish("busy")
        self.delete("busy")

    def test_an_interrupted_check_leaves_nothing(self):
        self.wait_for_machines()
        command = self.cluster.operators_command(self.cluster.binary, *CHECK)
        with subprocess.Popen(command, cwd=self.cluster.directory, env=self.cluster.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                if line.startswith("pairs, round 1"):
                    break
            self.assertEqual(len(self.get("pods", "--selector=infra.internal/role=nccl-check")["items"]), MACHINES)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 130)
        self.assert_nothing_is_left()
