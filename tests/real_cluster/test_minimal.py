"""The life of a small cluster, for real: `infra up` on the stand-in for AWS, machines that boot, Kubernetes, a job, losses, `destroy`.

The tests are the chapters of one life and run in their order.
"""

import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from real_cluster import ROOT, RealCluster  # noqa: E402
from container import wait_for  # noqa: E402
from parts import IMAGE_FOR_CHECKS, find_parts, why_not  # noqa: E402

CLUSTER = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + "storage: {efs: {}}\n"
BUCKET = ["--s3-uri", "s3://minimal-assets/clusters"]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %(name)s, labels: {app: %(app)s}}
spec:
  nodeSelector: {%(selector)s}
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: %(image)s, command: [sh, -c, %(command)s]}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
CONTROLLER, WORKER = 'node.kubernetes.io/controller: "true"', "infra.internal/pool: cpu"
SERVE = '"mkdir /tmp/www; hostname > /tmp/www/index.html; exec python3 -m http.server --directory /tmp/www 8080"'
JOB = """
name: pair
framework: pytorch
image: %s
replicas: 2
command: [python3, train.py]
"""

IMPOSSIBLE = why_not()
if IMPOSSIBLE:
    print(f"\nNO REAL CLUSTER IS BOOTED: {IMPOSSIBLE}\n", file=sys.stderr)


def load_tests(loader, _tests, _pattern):
    """In the order in which they stand here."""
    names = [name for name in vars(Life) if name.startswith("test_")]
    return unittest.TestSuite(map(Life, names))


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="infra-real-")))
        directory = scratch / "cluster"
        directory.mkdir()
        (directory / "cluster.yaml").write_text(CLUSTER)
        cls.cluster = cls.enterClassContext(RealCluster(scratch, directory, ROOT / "target/debug/infra", find_parts("1.36", scratch)))
        began = time.monotonic()
        cls.cluster.infra("render", "--generate-ca")
        cls.up = cls.cluster.infra("up", "--yes", *BUCKET, "--create-bucket")
        print(f"\ninfra up: {time.monotonic() - began:.0f} s", file=sys.stderr)

    # --- What is asked again and again

    def get(self, *words):
        return json.loads(self.cluster.kubectl("get", *words, "--output=json"))

    def pods(self):
        return self.get("pods", "--all-namespaces")["items"]

    def nodes(self):
        return {node["metadata"]["name"]: {entry["type"]: entry["status"] for entry in node["status"]["conditions"]}["Ready"]
                for node in self.get("nodes")["items"]}

    def wait_until_all_pods_run(self, seconds=240):
        def look():
            not_ready = [pod["metadata"]["name"] for pod in self.pods() if not is_ready(pod)]
            return not not_ready

        wait_for("every pod is ready", look, seconds)

    def create_pod(self, name, selector, command, app="check"):
        self.cluster.kubectl("apply", "--filename=-", input=POD % {
            "name": name, "app": app, "selector": selector, "command": command, "image": IMAGE_FOR_CHECKS})
        self.addCleanup(self.cluster.kubectl, "delete", "pod", name, "--wait=false", check=False)

    def wait_for_pods(self, *names):
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=120s", *(f"pod/{name}" for name in names), timeout=150)

    def execute(self, pod, *words, check=True):
        return self.cluster.kubectl("exec", pod, "--", *words, check=check)

    # --- The chapters

    def test_up_ends_with_real_nodes(self):
        self.assertEqual(self.cluster.room.failures, [])
        nodes = self.nodes()
        self.assertEqual(sorted(nodes.values()), ["True", "True"])
        names = {machine.facts["name"] for machine in self.cluster.room.machines.values() if not machine.role.startswith("etcd")}
        self.assertEqual(set(nodes), names)
        for machine in self.cluster.room.machines.values():
            self.assertEqual(machine.failed_units(), "", machine.role)

    def test_every_pod_runs_and_none_was_restarted(self):
        self.wait_until_all_pods_run()
        restarts = {pod["metadata"]["name"]: status["restartCount"] for pod in self.pods()
                    for status in pod["status"]["containerStatuses"] if status["restartCount"]}
        self.assertEqual(restarts, {})

    def test_status_is_healthy(self):
        self.assertIn("healthy", self.cluster.infra("status").stdout)

    def test_pods_reach_each_other_and_names_across_machines(self):
        self.create_pod("web-0", CONTROLLER, SERVE, app="web")
        self.create_pod("web-1", WORKER, SERVE, app="web")
        self.create_pod("client", WORKER, '"exec sleep 3600"')
        self.cluster.kubectl("apply", "--filename=-", input=SERVICE)
        self.addCleanup(self.cluster.kubectl, "delete", "service", "web")
        self.wait_for_pods("web-0", "web-1", "client")
        addresses = [self.get("pod", name)["status"]["podIP"] for name in ("web-0", "web-1")]
        for address, name in zip(addresses, ("web-0", "web-1")):
            self.assertEqual(self.fetch_page("client", f"http://{address}:8080/"), name)
        # By name, through the Service, from both.
        seen = {self.fetch_page("client", "http://web.default.svc.cluster.local/") for _ in range(20)}
        self.assertEqual(seen, {"web-0", "web-1"})
        self.assertIn("GET / HTTP", self.cluster.kubectl("logs", "web-1"))
        # Names of the VPC are forwarded to its resolver.
        resolve = "import socket; print(socket.gethostbyname('api.minimal.infra.internal'))"
        self.assertRegex(self.execute("client", "python3", "-c", resolve), r"^10\.0\.")

    def fetch_page(self, pod, url):
        program = f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=10).read().decode())"
        return self.execute(pod, "python3", "-c", program).strip()

    def test_the_metrics_api_answers(self):
        wait_for("metrics of both nodes", lambda: self.cluster.kubectl("top", "nodes", "--no-headers", check=False).count("\n") == 2, 180)
        self.assertIn("kube-apiserver", self.cluster.kubectl("top", "pods", "--all-namespaces"))

    def test_a_pod_does_not_reach_the_metadata_service(self):
        self.create_pod("curious", WORKER, '"exec sleep 3600"')
        self.wait_for_pods("curious")
        program = ("import urllib.request; request = urllib.request.Request('http://169.254.169.254/latest/api/token', method='PUT', "
                   "headers={'X-aws-ec2-metadata-token-ttl-seconds': '60'}); print(urllib.request.urlopen(request, timeout=5).read())")
        answer = self.cluster.run(self.cluster.parts.kubectl, "--kubeconfig", self.cluster.directory / "kubeconfig",
                                  "exec", "curious", "--", "python3", "-c", program)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("timed out", answer.stderr)
        # The machine itself does reach it.
        [worker] = self.cluster.room.of_role("pool-cpu")
        token = worker.run("curl", "--silent", "--fail", "--request", "PUT", "--header", "X-aws-ec2-metadata-token-ttl-seconds: 60",
                           "http://169.254.169.254/latest/api/token")
        self.assertTrue(token)

    def test_a_workers_certificate_opens_neither_etcd_nor_secrets(self):
        [worker] = self.cluster.room.of_role("pool-cpu")
        for key in ("get", "secrets", "--all-namespaces"), ("get", "secret", "--namespace=kube-system", "anything"):
            done = worker.run("/opt/bin/kubectl", "--kubeconfig=/var/lib/kubelet/kubeconfig", *key, check=False)
            self.assertEqual(done, "", "a node must not read Secrets that it does not mount")
        [etcd] = self.cluster.room.of_role("etcd-0")
        certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
        words = ["curl", "--silent", "--show-error", "--insecure", "--cert", certificate, "--max-time", "5",
                 "https://etcd-0.minimal.infra.internal:2379/health"]
        self.assertEqual(worker.run(*words, check=False), "")
        self.assertRegex(etcd.journal("etcd"), "rejected connection")

    def test_add_ons_have_the_rights_they_use(self):
        [controller] = self.cluster.room.of_role("controller")
        log = controller.run("cat", "/var/log/kubernetes/audit.log")
        ready = max(condition["lastTransitionTime"] for node in self.get("nodes")["items"]
                    for condition in node["status"]["conditions"] if condition["type"] == "Ready")
        refused = [f"{event['user']['username']} {event['verb']} {event['requestURI']}" for event in map(json.loads, log.splitlines())
                   if event.get("responseStatus", {}).get("code") == 403 and event["requestReceivedTimestamp"] > ready
                   and event["user"]["username"].startswith("system:serviceaccount:kube-")]
        self.assertEqual(refused, [])

    def test_the_cloud_controller_makes_calls_that_its_role_allows(self):
        stack = json.loads((self.cluster.directory / "stacks/control-plane.json").read_text())
        allowed = set(actions(stack["Resources"]["ControllerRole"]["Properties"]["Policies"]))
        [controller] = self.cluster.room.of_role("controller")
        made = {f"{call.service}:{call.action}" for call in self.cluster.network.aws.calls
                if call.source == controller.facts["address"] and "cloud-provider-aws" in call.agent}
        self.assertIn("ec2:DescribeInstances", made)
        self.assertEqual(made - allowed, set())

    def test_a_job_of_two_pods_completes(self):
        directory = self.cluster.directory
        (directory / "job.yaml").write_text(JOB % IMAGE_FOR_CHECKS)
        self.assertIn("complete", self.cluster.infra("job", "submit").stderr)
        self.assertIn("met 2 of 2", self.cluster.infra("job", "logs", "--index", "1").stdout)
        self.cluster.infra("job", "fetch", "--to", "results")
        self.assertEqual((directory / "results/result.txt").read_text(), "met 2 of 2\n")
        self.cluster.infra("job", "delete", "--yes")
        self.assertEqual(self.get("pods", "--selector=infra.internal/job=pair")["items"], [])

    def test_a_lost_worker_is_replaced(self):
        [worker] = self.cluster.room.of_role("pool-cpu")
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[worker.id])
        began = time.monotonic()
        wait_for("a machine in its place", lambda: [machine.id for machine in self.cluster.room.of_role("pool-cpu")] not in ([worker.id], []))
        wait_for("both nodes are Ready and the lost one is gone",
                 lambda: worker.facts["name"] not in self.nodes() and sorted(self.nodes().values()) == ["True", "True"], 300)
        print(f"a worker replaced: {time.monotonic() - began:.0f} s", file=sys.stderr)
        self.wait_until_all_pods_run()
        self.cluster.infra("status")

    def test_the_controller_comes_back_after_a_power_cut(self):
        [controller] = self.cluster.room.of_role("controller")
        self.cluster.kubectl("create", "configmap", "kept", "--from-literal=a=b")
        began = time.monotonic()
        controller.cut_power()
        controller.switch_on()
        wait_for("the API", lambda: "kept" in self.cluster.kubectl("get", "configmaps", "--output=name", check=False), 240)
        print(f"the API after a power cut: {time.monotonic() - began:.0f} s", file=sys.stderr)
        wait_for("both nodes", lambda: sorted(self.nodes().values()) == ["True", "True"])
        self.wait_until_all_pods_run()
        self.assertEqual(controller.failed_units(), "")

    def test_destroy_switches_everything_off(self):
        machines = list(self.cluster.room.machines.values())
        self.cluster.infra("destroy", "--yes")
        wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual([machine.process.poll() is None for machine in machines], [False] * len(machines))
        self.assertEqual(self.cluster.account.left(), [])


def is_ready(pod):
    if pod["status"]["phase"] == "Succeeded":
        return True
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", []))


def actions(policies):
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            named = statement["Action"]
            yield from [named] if isinstance(named, str) else named


if __name__ == "__main__":
    unittest.main()
