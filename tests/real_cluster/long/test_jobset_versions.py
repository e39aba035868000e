"""JobSet with every minor version of Kubernetes, and with both definitions of its API: ours, and the one that JobSet publishes.

A control plane of real programs for each (control_plane.py), without machines (pretend_machines.py). Jobs come from `infra job
submit`; what Kubernetes says of their ends has to be what the rules of their JobSets match.
"""

import json
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import IMPOSSIBLE, enter_scratch, say  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
import jobset  # noqa: E402
from jobset_checks import JobSetChecks  # noqa: E402
from api_calls import Refused  # noqa: E402
import modules  # noqa: E402
from pretend_machines import PretendMachines, path_of  # noqa: E402

CLUSTER = """
clusterName: plane
externalDNSName: plane.example.com
region: us-west-2
availabilityZones: [us-west-2a]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
kubernetes: {version: %s}
etcd: {count: 1}
controllers: {count: 1}
pools:
- {name: cpu, instanceType: m5.2xlarge, count: 2}
storage: {efs: {}}
addons: {clusterAutoscaler: false, metricsServer: false}
"""
PAIR = """
name: %s
framework: pytorch
image: registry.example.com/train:1
replicas: 2
cpu: 100m
memory: 1Gi
sharedMemory: 64Mi
retries: 1
deadline: %s
command: [python3, /mnt/training/train.py]
"""
SERVED = """
name: %s
framework: tensorflow
image: registry.example.com/train:1
ps: 1
workers: 2
cpu: 100m
memory: 1Gi
sharedMemory: 64Mi
deadline: %s
command: [python3, /mnt/training/train.py]
"""
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/efs"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/infra-jobsets"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
DISRUPTED = r"Pod default/%s-worker-0-0-\w{5} has condition DisruptionTarget matching FailJob rule at index 1"
UNSEEN = r"Container worker for pod default/%s-worker-0-1-\w{5} failed with exit code 255 matching FailJob rule at index 2"


def load_tests(_loader, _tests, _pattern):
    names = [name for name in vars(JobSetLife) if name.startswith("test_")]
    suite = unittest.TestSuite()
    for minor in modules.minors():
        for has_own_definition in (False, True):
            title = f"JobSetLife_{minor.replace('.', '_')}{'_own_definition' if has_own_definition else ''}"
            case = type(title, (JobSetLife,), {"minor": minor, "has_own_definition": has_own_definition, "__module__": __name__})
            suite.addTests(case(name) for name in names)
    return suite


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class JobSetLife(JobSetChecks, unittest.TestCase):
    minor = None

    @classmethod
    def setUpClass(cls):
        began = time.monotonic()
        scratch = enter_scratch(cls, cls.__name__)
        version = modules.version(modules.module_named("kubernetes"), cls.minor)
        cls.plane = cls.enterClassContext(ControlPlane(cls.minor, scratch, CLUSTER % version))
        if cls.has_own_definition:
            cls.plane.use_own_definition()
        cls.api = cls.plane.api
        cls.machines = cls.enterClassContext(PretendMachines(cls.api, ["machine-0", "machine-1"]))
        cls.jobs = cls.api.watch(JOBS)
        cls.plane.wait_for("the claim is bound", lambda: cls.api.get(CLAIM)["status"].get("phase") == "Bound")
        cls.plane.wait_for("machines without taints", lambda: not any(
            node["spec"].get("taints") for node in cls.api.get("/api/v1/nodes")["items"]))
        say(f"\n{cls.__name__}: Kubernetes {version}, ready after {time.monotonic() - began:.0f} s")

    # --- What a job does and what is said of it -----------------------------------------------------------------------------------

    def begin(self, name, text=PAIR, deadline="24h", count=2):
        """Submits a job; its pods by role and index, once all run."""
        (self.plane.directory / f"{name}.yaml").write_text(text % (name, deadline))
        self.plane.infra("job", "submit", "--file", f"{name}.yaml", "--detach")
        self.addCleanup(self.plane.infra, "job", "delete", name, "--yes")
        return self.pods_of_attempt(name, 0, count)

    def pods_of_attempt(self, name, attempt, count=2):
        def running():
            found = self.api.get(f"{PODS}?labelSelector=jobset.sigs.k8s.io/jobset-name={name},{ATTEMPT}={attempt}")["items"]
            return found if [pod["status"]["phase"] for pod in found] == ["Running"] * count else None

        def key(pod):
            labels = pod["metadata"]["labels"]
            return labels["jobset.sigs.k8s.io/replicatedjob-name"], int(labels["batch.kubernetes.io/job-completion-index"])

        return {key(pod): pod for pod in self.plane.wait_for(f"attempt {attempt} of {name}", running)}

    def job_set(self, name):
        return self.api.get(f"{JOBSETS}/{name}")

    def wait_for_end(self, name, kind):
        """The reason of the JobSet's condition."""
        def reason():
            return next((condition["reason"] for condition in self.job_set(name).get("status", {}).get("conditions", [])
                         if condition["type"] == kind and condition["status"] == "True"), None)

        return self.plane.wait_for(f"{name} is {kind}", reason)

    def ends(self, job):
        """Reason and message of every end of the Jobs of this name, in their order."""
        found = []
        for state in self.jobs.states.get(job, []):
            for condition in state.get("status", {}).get("conditions", []):
                end = (condition.get("reason"), condition.get("message"))
                if condition["type"] in ("Failed", "Complete") and condition["status"] == "True" and end not in found:
                    found.append(end)
        return found

    def assert_end(self, job, reason, message):
        [(found, text)] = self.ends(job)
        self.assertEqual(found, reason)
        self.assertRegex(text, f"^{message}$")

    def status(self, name, *expected):
        return self.plane.infra("job", "status", name, expected=expected).stdout

    def test_exit_code_64_ends_the_job(self):
        pods = self.begin("misused")
        self.machines.finish(pods["worker", 1], 64)
        self.assertEqual(self.wait_for_end("misused", "Failed"), "FailJobSetFailurePolicyAction")
        self.assert_end("misused-worker-0", "PodFailurePolicy",
                        r"Container worker for pod default/misused-worker-0-1-\w{5} failed with exit code 64 matching FailJob rule at index 0")
        self.assertEqual(self.job_set("misused")["status"].get("restarts", 0), 0)
        self.assertIn("failed with exit code 64", self.status("misused", 3))

    def test_a_failure_restarts_the_group_and_counts(self):
        pods = self.begin("failing")
        self.machines.finish(pods["worker", 1], 1)
        pods = self.pods_of_attempt("failing", 1)
        status = self.job_set("failing")["status"]
        self.assertEqual((status["restarts"], status["restartsCountTowardsMax"]), (1, 1))
        self.assert_end("failing-worker-0", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        self.assertIn("restarted after 1 failure of 1", self.status("failing", 0))
        self.machines.finish(pods["worker", 0], 1)
        self.assertEqual(self.wait_for_end("failing", "Failed"), "ReachedMaxRestarts")
        self.assertIn("(after 1 restart)", self.status("failing", 3))

    def assert_uncounted(self, name, end=DISRUPTED):
        """The group was restarted because of a lost machine, and nothing counted."""
        self.pods_of_attempt(name, 1)
        status = self.job_set(name)["status"]
        self.assertEqual((status["restarts"], status.get("restartsCountTowardsMax", 0)), (1, 0))
        self.assert_end(f"{name}-worker-0", "PodFailurePolicy", end % name)
        self.assertIn("restarted after 1 lost machine", self.status(name, 0))

    def evict(self, pod):
        """As draining its node does."""
        self.api.call("POST", f"{path_of(pod)}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"], "namespace": "default"}})

    def test_an_evicted_pod_restarts_the_group_and_does_not_count(self):
        self.evict(self.begin("evicted")["worker", 0])
        self.assert_uncounted("evicted")

    def test_a_machine_that_shuts_down_restarts_the_group_and_does_not_count(self):
        self.machines.shut_down(self.begin("shut-down")["worker", 0])
        self.assert_uncounted("shut-down")

    def test_a_power_cut_restarts_the_group_and_does_not_count(self):
        """A machine that comes back reports 255 of the containers that it finds dead."""
        self.machines.finish(self.begin("powerless")["worker", 1], 255)
        self.assert_uncounted("powerless", UNSEEN)

    def test_a_deleted_machine_restarts_the_group_and_does_not_count(self):
        """Kubernetes collects its pods, and says so with the same condition."""
        if self.has_own_definition:
            self.skipTest("the definition of JobSets has no part in it, and it takes a minute")
        pod = self.begin("orphaned")["worker", 0]
        began = time.monotonic()
        with self.machines.without(pod["spec"]["nodeName"]):
            self.plane.wait_for("the group is restarted", lambda: self.job_set("orphaned")["status"].get("restarts"), 150)
        say(f"restarted after the deletion of a Node: {time.monotonic() - began:.0f} s")
        self.pods_of_attempt("orphaned", 1)
        self.assertEqual(self.job_set("orphaned")["status"].get("restartsCountTowardsMax", 0), 0)
        [(reason, message)] = self.ends("orphaned-worker-0")
        self.assertEqual(reason, "PodFailurePolicy")
        self.assertRegex(message, r"has condition DisruptionTarget matching FailJob rule at index 1$")

    def test_a_passed_deadline_ends_the_job(self):
        self.begin("late", deadline="6s")
        self.assertEqual(self.wait_for_end("late", "Failed"), "FailJobSetFailurePolicyAction")
        self.assert_end("late-worker-0", "DeadlineExceeded", "Job was active longer than specified deadline")
        self.assertEqual(self.job_set("late")["status"].get("restarts", 0), 0)

    def test_the_first_process_completes_the_job_and_it_can_be_deleted_by_time(self):
        pods = self.begin("done")
        self.machines.finish(pods["worker", 0], 0)
        self.assertEqual(self.wait_for_end("done", "Completed"), "AllJobsCompleted")
        self.assert_end("done-worker-0", "SuccessPolicy", "Matched rules at index 0")
        self.assertIn("complete", self.status("done", 0))
        self.api.patch(f"{JOBSETS}/done", {"spec": {"ttlSecondsAfterFinished": 0}})
        self.plane.wait_for("it is deleted", lambda: self.api.find(f"{JOBSETS}/done") is None and self.api.find(f"{JOBS}/done-worker-0") is None)

    def test_parameter_servers_end_with_the_job(self):
        pods = self.begin("served", SERVED, count=3)
        self.machines.finish(pods["worker", 0], 0)
        self.assertEqual(self.wait_for_end("served", "Completed"), "AllJobsCompleted")
        self.plane.wait_for("the servers are gone", lambda: self.api.find(f"{JOBS}/served-ps-0") is None)
        self.assertIsNotNone(self.api.find(f"{JOBS}/served-worker-0"))

    # --- What may be created and changed ------------------------------------------------------------------------------------------

    def refusal(self, *call):
        try:
            self.api.call(*call)
        except Refused as refused:
            return refused.message
        return ""

    def try_to_create(self, text):
        return self.refusal("POST", f"{JOBSETS}?dryRun=All", json.loads(text))

    def try_to_change(self, name, spec):
        return self.refusal("PATCH", f"{JOBSETS}/{name}?dryRun=All", {"spec": spec}, "application/merge-patch+json")

    def test_what_cannot_run_is_refused_and_everything_else_accepted(self):
        self.check_what_is_accepted()
        self.check_what_is_refused()
        self.api.call("POST", JOBSETS, json.loads(jobset.changed({"spec/managedBy": "example.com/nobody"})))
        self.addCleanup(self.api.call, "DELETE", f"{JOBSETS}/pair")
        self.check_what_cannot_be_changed("pair")

    def test_the_policy_fits_the_definition(self):
        """The API server compares the expressions of the policy with the fields that it knows."""
        status = self.plane.wait_for("the policy is judged", lambda: self.api.get(POLICY).get("status"))
        self.assertEqual(status.get("typeChecking", {}), {})

    def test_a_queue_can_hold_a_jobset_and_choose_its_machines(self):
        held = {**jobset.PAIR, "metadata": {"name": "queued", "namespace": "default"}}
        self.api.call("POST", JOBSETS, held)
        self.addCleanup(self.api.call, "DELETE", f"{JOBSETS}/queued")
        self.plane.wait_for("a suspended Job", lambda: (self.api.find(f"{JOBS}/queued-worker-0") or {}).get("spec", {}).get("suspend"))
        chosen = {"replicatedJobs": [jobset.on_nodes({"kubernetes.io/hostname": "machine-1"})], "suspend": False}
        self.api.patch(f"{JOBSETS}/queued", {"spec": chosen})
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.pods_of_attempt("queued", 0).values()}, {"machine-1"})
        self.api.patch(f"{JOBSETS}/queued", {"spec": {"suspend": True, "replicatedJobs": [jobset.WORKER]}})
        self.plane.wait_for("no pod", lambda: not self.api.get(f"{PODS}?labelSelector=jobset.sigs.k8s.io/jobset-name=queued")["items"])
        self.assertEqual(self.job_set("queued")["status"].get("restarts", 0), 0)

    def test_a_queue_is_refused_without_kueue(self):
        (self.plane.directory / "waiting.yaml").write_text(PAIR % ("waiting", "24h") + "queue: training\n")
        words = "the job waits in queue 'training', and Kueue is not installed (docs/runbooks/share-with-queues.md shows how to install it)"
        self.assertIn(words, self.plane.infra("job", "submit", "--file", "waiting.yaml", expected=(1,)).stderr)
        self.assertIn(words, self.plane.infra("job", "lint", "--online", "--file", "waiting.yaml", expected=(2,)).stdout)
        self.assertIsNone(self.api.find(f"{JOBSETS}/waiting"))

    def test_a_tensorboard_runs_beside_its_job_and_moves(self):
        pods = self.begin("shown", PAIR + "tensorboard: true\n")

        def board():
            found = self.api.get(f"{PODS}?labelSelector=infra.internal/job=shown,infra.internal/role=tensorboard")["items"]
            return next((pod for pod in found if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]), None)

        first = self.plane.wait_for("the TensorBoard", board)
        self.evict(first)
        self.plane.wait_for("another pod of it", lambda: (board() or first)["metadata"]["uid"] != first["metadata"]["uid"])
        self.assertEqual(self.job_set("shown")["status"].get("restarts", 0), 0)
        self.machines.finish(pods["worker", 0], 0)
        self.wait_for_end("shown", "Completed")
        self.assertIsNotNone(board())
        # A day later.
        self.machines.finish(board(), 0)
        self.plane.wait_for("its end", lambda: self.ends("shown-tensorboard"))
        self.assertIn("complete", self.status("shown", 0))

    def test_every_rendered_job_is_accepted_to_the_last_field(self):
        nowhere = self.plane.scratch / "nowhere"
        nowhere.mkdir()
        files = sorted((ROOT / "tests/jobs/files").glob("*.yaml"))
        self.assertGreater(len(files), 10)
        for file in files:
            with self.subTest(file.name):
                for namespace in re.findall(r"^namespace: (\S+)", file.read_text(), re.MULTILINE):
                    self.plane.kubectl("create", "namespace", namespace, check=False)
                objects = self.plane.infra("-C", str(nowhere), "job", "render", "--file", str(file)).stdout
                judged = self.plane.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", input=objects)
                self.assertEqual(judged.count("(server dry run)"), len(re.findall(r"^kind: ", objects, re.MULTILINE)), judged)

    def test_jobset_has_the_rights_that_it_uses(self):
        log = (self.plane.root / "var/log/kubernetes/audit.log").read_text()
        calls = [json.loads(line) for line in log.splitlines() if '"system:serviceaccount:kube-system:jobset"' in line]
        self.assertGreater(len(calls), 20)
        self.assertEqual([f"{call['verb']} {call['requestURI']}" for call in calls if call.get("responseStatus", {}).get("code") == 403], [])


if __name__ == "__main__":
    unittest.main()
