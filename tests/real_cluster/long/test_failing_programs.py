"""What becomes of a PyTorch job when its program fails, when time is up, when a machine comes late, and while nobody runs JobSets."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import real_cluster  # noqa: E402, F401 - first: it says where everything else is
from chapters import in_order, say  # noqa: E402
from training import MACHINES, POOL, REPLICAS, TrainingChapters  # noqa: E402

ABSENCE_SECONDS = 300
# Three attempts begin in this time on a machine that does much else.
DEADLINE_SECONDS = 420
LATE_SECONDS = 120


def load_tests(_loader, _tests, _pattern):
    return in_order(FailingPrograms)


class FailingPrograms(TrainingChapters):
    # With an autoscaler, a job may need more machines than there are.
    text = (TrainingChapters.text.replace(f"count: {MACHINES},", f"count: {MACHINES}, maxCount: {MACHINES + 1},")
            .replace("addons: {clusterAutoscaler: false}\n", ""))
    environments = ["pytorch"]

    def order(self, name, file, code):
        (self.output(name) / file).write_text(str(code))

    def test_one_failed_process_restarts_all_and_counts_once(self):
        self.submit("once", retries=2)
        self.wait_for_step("once", 6)
        before = len({entry["attempt"] for entry in self.steps("once")})
        began = time.time()
        self.order("once", "order.1", 1)
        self.wait_for("a second attempt", lambda: len({entry["attempt"] for entry in self.steps("once")}) > before, 600)
        say(f"one process failed: {self.steps('once')[-1]['time'] - began:.0f} s until all train again")
        self.assertEqual(self.restarts("once"), (1, 1))
        for rank in range(REPLICAS):
            self.assertEqual({entry["attempt"] for entry in self.steps("once", rank)} - {0, 1}, set())
        self.finish("once")
        self.assert_same_losses("once")
        self.delete("once")

    def test_a_program_that_always_fails_ends_the_job_and_is_named(self):
        self.submit("always", retries=1)
        self.wait_for_step("always", 6)
        self.order("always", "orders.2", 3)
        self.assertEqual(self.wait_for_end("always"), "Failed")
        self.assertEqual(self.restarts("always"), (1, 1))
        why = self.why("always")
        say(why)
        self.assertRegex(why, r"first cause: attempt 1, worker 2\b")
        self.assertRegex(why, r"earlier attempts:\n  attempt 0, worker 2\b")
        # torchrun itself exits with 1. What its process did is in a line of ours, instead of torchrun's block.
        self.assertIn("process 2 of torchrun ended with exit code 3", why)
        self.assertNotIn("====", why)
        self.delete("always")

    def test_exit_64_ends_the_job_at_once(self):
        self.submit("wrong", retries=3)
        self.wait_for_step("wrong", 3)
        began = time.monotonic()
        self.order("wrong", "orders.0", 64)
        self.assertEqual(self.wait_for_end("wrong"), "Failed")
        say(f"exit 64: failed after {time.monotonic() - began:.0f} s")
        self.assertEqual(self.restarts("wrong"), (0, 0))
        self.delete("wrong")

    def test_a_process_that_fails_while_closing_does_not_fail_the_job(self):
        self.submit("closing", retries=0)
        self.wait_for_step("closing", 3)
        self.order("closing", "closing.2", 1)
        self.finish("closing")
        self.assertEqual(self.restarts("closing"), (0, 0))
        self.delete("closing")

    def test_the_deadline_ends_the_third_attempt(self):
        began = time.time()
        self.submit("late", retries=9, deadline=f"{DEADLINE_SECONDS}s")
        for attempt in range(2):
            self.wait_for(f"attempt {attempt}", lambda wanted=attempt: self.steps("late")[-1:] and self.steps("late")[-1]["attempt"] == wanted,
                          DEADLINE_SECONDS)
            self.order("late", "order.1", 1)
            self.wait_for("the order is obeyed", lambda: not (self.output("late") / "order.1").exists(), 120)
        self.assertEqual(self.wait_for_end("late"), "Failed")
        took = time.time() - began
        say(f"a deadline of {DEADLINE_SECONDS} s: failed after {took:.0f} s, in attempt {self.steps('late')[-1]['attempt']}")
        self.assertGreaterEqual(took, DEADLINE_SECONDS)
        self.assertEqual(self.steps("late")[-1]["attempt"], 2)
        self.assertIn("deadline", self.why("late"))
        self.delete("late")

    def test_another_learning_rate_is_another_run(self):
        models = {}
        for run, rate in (("slow", "0.01"), ("fast", "0.1")):
            self.submit("rates", run=run, program=f"pytorch.py, \"{rate}\"")
            self.wait_for_step("rates", 10, run)
            self.finish("rates", run)
            models[run] = self.results("rates", run)[0]
            self.assertEqual(self.steps("rates", run=run)[0]["step"], 0)
            self.delete("rates")
        self.assertNotEqual(models["slow"]["weights"], models["fast"]["weights"])
        text = self.cluster.infra("job", "runs", "rates").stdout
        say(text)
        for run in models:
            self.assertIn(run, text)

    def test_a_machine_that_comes_late_is_no_failure(self):
        """Five pods that need a machine each, on four machines. What the autoscaler asks for is asked for here: it cannot run."""
        self.submit("patient", replicas=MACHINES + 1, retries=0, cpu="1100m")
        self.wait_for("four pods", lambda: len(self.machines_of("patient")) == MACHINES, 300)
        time.sleep(LATE_SECONDS)
        self.assertEqual(self.steps("patient"), [])
        began = time.monotonic()
        self.add_machine()
        self.wait_for_step("patient", 5)
        say(f"trained with all pods {time.monotonic() - began:.0f} s after a machine was asked for, {LATE_SECONDS} s late")
        self.assertEqual(self.restarts("patient"), (0, 0))
        self.finish("patient")
        self.delete("patient")

    def test_nothing_is_lost_while_nobody_runs_jobsets(self):
        self.submit("alone", retries=1)
        self.wait_for_step("alone", 6)
        self.run_jobset_on({"infra.internal/pool": "nowhere"})
        self.wait_for("JobSet's pods are gone", lambda: not self.get("pods", "--namespace=kube-system", "--selector=k8s-app=jobset")["items"], 120)
        machine, before = self.any_machine_of("alone"), self.highest("alone")
        self.terminate(machine)
        say(f"JobSet is away for {ABSENCE_SECONDS} s")
        time.sleep(ABSENCE_SECONDS)
        self.assertEqual(self.restarts("alone"), (0, 0))
        self.run_jobset_on({"node-role.kubernetes.io/control-plane": ""})
        began = time.monotonic()
        self.wait_for("training continues", lambda: self.highest("alone") > before + 10, 600)
        say(f"training continued {time.monotonic() - began:.0f} s after JobSet was back, restarts {self.restarts('alone')}")
        self.assertEqual(self.restarts("alone"), (1, 0))
        self.finish("alone")
        self.assert_same_losses("alone")
        self.delete("alone")

    def add_machine(self):
        client = self.cluster.account.client("autoscaling")
        known = {machine.id for machine in self.of_role(f"pool-{POOL}")}
        [group] = [group for group in client.describe_auto_scaling_groups()["AutoScalingGroups"]
                   if known & {instance["InstanceId"] for instance in group["Instances"]}]
        client.set_desired_capacity(AutoScalingGroupName=group["AutoScalingGroupName"], DesiredCapacity=MACHINES + 1)

    def run_jobset_on(self, selector):
        patch = [{"op": "replace", "path": "/spec/template/spec/nodeSelector", "value": selector}]
        self.cluster.kubectl("patch", "daemonset", "jobset", "--namespace=kube-system", "--type=json", f"--patch={json.dumps(patch)}")
