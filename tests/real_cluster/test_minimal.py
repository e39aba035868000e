"""The life of a small cluster, for real: `infra up` on the stand-in for AWS, machines that boot, Kubernetes, a job, losses, `destroy`."""

import filecmp
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from real_cluster import ROOT  # noqa: E402
from chapters import CONTROLLER, WORKER, Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
import jobset  # noqa: E402
from jobset_checks import JobSetChecks  # noqa: E402

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
SERVE = '"mkdir /tmp/www; hostname > /tmp/www/index.html; exec python3 -m http.server --directory /tmp/www 8080"'
JOB = """
name: pair
framework: pytorch
image: %s
replicas: 2
cpu: 250m
command: [python3, /mnt/training/train.py]
"""
REGISTERS = "restarting the kubelet, which registers it again"
TRAINING = """
import os, pathlib
text = f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}"
print(text)
pathlib.Path(os.environ["INFRA_OUTPUT_DIR"], f"{text}.txt").write_text(text)
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(Life)


class Life(JobSetChecks, Chapters):
    text = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n"

    def test_up_ends_with_real_nodes(self):
        self.assertEqual(self.cluster.failures(), [])
        nodes = self.nodes()
        self.assertEqual(sorted(nodes.values()), ["True", "True"])
        names = {machine.facts["name"] for machine in self.cluster.room.machines.values() if not machine.role.startswith("etcd")}
        self.assertEqual(set(nodes), names)
        for machine in self.cluster.room.machines.values():
            self.assertEqual(machine.failed_units(), "", machine.role)
        [etcd] = self.of_role("etcd-0")
        self.assertNotIn("unrecognized environment variable", etcd.journal("etcd"))

    def test_every_pod_runs_and_none_was_restarted(self):
        self.wait_for_all_pods()
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
        # By name, through the Service, from both; a new Service reaches every node's rules a moment after its name.
        page = "http://web.default.svc.cluster.local/"
        self.wait_for("the Service", lambda: self.fetch_page("client", page, check=False), 60)
        seen = {self.fetch_page("client", page) for _ in range(20)}
        self.assertEqual(seen, {"web-0", "web-1"})
        self.assertIn("GET / HTTP", self.cluster.kubectl("logs", "web-1"))
        # The API server, by the address of its Service.
        program = ("import ssl, urllib.request; context = ssl._create_unverified_context(); "
                   "print(urllib.request.urlopen('https://10.3.0.1/livez', context=context, timeout=10).read().decode())")
        self.assertEqual(self.execute("client", "python3", "-c", program).strip(), "ok")
        # Names of the VPC are forwarded to its resolver.
        resolve = "import socket; print(socket.gethostbyname('api.minimal.infra.internal'))"
        self.assertRegex(self.execute("client", "python3", "-c", resolve), r"^10\.0\.")

    def fetch_page(self, pod, url, check=True):
        program = f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=10).read().decode())"
        return self.execute(pod, "python3", "-c", program, check=check).strip()

    def test_the_metrics_api_answers(self):
        self.wait_for("metrics of both nodes", lambda: self.cluster.kubectl("top", "nodes", "--no-headers", check=False).count("\n") == 2, 180)
        # Those of a pod come with the next reading of its node.
        self.wait_for("metrics of the API server's pod",
                      lambda: "kube-apiserver" in self.cluster.kubectl("top", "pods", "--all-namespaces", check=False), 180)

    def test_a_jobset_of_two_pods_is_restarted_and_completes(self):
        self.cluster.kubectl("rollout", "status", "daemonset/jobset", "--namespace=kube-system", "--timeout=120s", timeout=150)
        self.run_jobset()

    def run_jobset(self):
        self.cluster.kubectl("apply", "--validate=strict", "--filename=-", input=json.dumps(jobset.PAIR))
        # Suspended, its template can be changed, as a queue does it that chooses the machines.
        self.patch_jobset({"replicatedJobs": [jobset.on_nodes({"infra.internal/pool": "cpu"})]})
        self.patch_jobset({"suspend": False})
        self.cluster.kubectl("wait", "jobset/pair", "--for=condition=Completed", "--timeout=120s", timeout=150)
        self.assertEqual(self.get("jobset", "pair")["status"]["restartsCountTowardsMax"], 1)
        pods = self.get("pods", "--selector=jobset.sigs.k8s.io/jobset-name=pair")["items"]
        self.assertEqual({(pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods},
                         {("pair-worker-0-0", "pair"), ("pair-worker-0-1", "pair")})
        self.assertEqual(self.get("service", "pair")["spec"]["clusterIP"], "None")
        self.patch_jobset({"ttlSecondsAfterFinished": 0})
        self.cluster.kubectl("wait", "jobset/pair", "--for=delete", "--timeout=60s", timeout=90)

    def patch_jobset(self, spec):
        self.cluster.kubectl("patch", "jobset", "pair", "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def test_a_jobset_that_cannot_run_is_refused_with_the_reason(self):
        self.check_what_is_accepted()
        self.check_what_is_refused()
        # Nobody runs this one, so that it stays as it is.
        self.cluster.kubectl("create", "--filename=-", input=jobset.changed({"spec/managedBy": "example.com/nobody"}))
        self.addCleanup(self.cluster.kubectl, "delete", "jobset", "pair")
        self.check_what_cannot_be_changed("pair")

    def try_to_create(self, text):
        return self.refusal("create", "--filename=-", input=text)

    def try_to_change(self, name, spec):
        return self.refusal("patch", "jobset", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def refusal(self, *words, input=None):
        done = self.cluster.run(self.cluster.parts.kubectl, "--kubeconfig", self.cluster.directory / "kubeconfig", *words,
                                "--dry-run=server", input=input)
        return done.stderr if done.returncode else ""

    def test_a_jobset_runs_with_jobsets_own_definition_of_the_api(self):
        """A cluster may get it from elsewhere, such as a queue that brings its own."""
        apply = ["apply", "--server-side", "--force-conflicts"]
        self.cluster.kubectl(*apply, f"--filename={self.cluster.parts.jobset_api}")
        self.addCleanup(self.cluster.kubectl, *apply, f"--filename={self.cluster.directory / 'manifests/53-jobset-api.yaml'}")
        self.run_jobset()

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
        [worker] = self.of_role("pool-cpu")
        token = worker.run("curl", "--silent", "--fail", "--request", "PUT", "--header", "X-aws-ec2-metadata-token-ttl-seconds: 60",
                           "http://169.254.169.254/latest/api/token")
        self.assertTrue(token)

    def test_a_workers_certificate_opens_neither_etcd_nor_secrets(self):
        [worker] = self.of_role("pool-cpu")
        self.cluster.kubectl("create", "secret", "generic", "unmounted", "--from-literal=key=value")
        self.addCleanup(self.cluster.kubectl, "delete", "secret", "unmounted")

        def get(*words):
            # Refusals are on the other stream.
            return worker.run("sh", "-c", '"$@" 2>&1', "sh", "/opt/bin/kubectl", "--kubeconfig=/var/lib/kubelet/kubeconfig", "get", *words,
                              check=False)

        name = worker.facts["name"]
        self.assertIn(f"node/{name}\n", get("node", name, "--output=name"))
        for words in ("secrets", "--all-namespaces"), ("secret", "--namespace=default", "unmounted"):
            self.assertIn("Error from server (Forbidden): secrets ", get(*words), "a node must not read Secrets that it does not mount")
        [etcd] = self.of_role("etcd-0")
        certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
        words = ["curl", "--silent", "--show-error", "--insecure", "--cert", certificate, "--max-time", "5",
                 "https://etcd-0.minimal.infra.internal:2379/health"]
        self.assertEqual(worker.run(*words, check=False), "")
        self.assertRegex(etcd.journal("etcd"), "rejected connection")

    def test_add_ons_have_the_rights_they_use(self):
        [controller] = self.of_role("controller")
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
        [controller] = self.of_role("controller")
        made = {f"{call.service}:{call.action}" for call in self.cluster.network.aws.calls
                if call.source == controller.facts["address"] and call.service in ("ec2", "elasticloadbalancing", "autoscaling")}
        self.assertIn("ec2:DescribeInstances", made)
        self.assertEqual(made - allowed, set())

    def test_a_job_of_two_pods_completes(self):
        directory = self.cluster.directory
        (directory / "job.yaml").write_text(JOB % JOB_IMAGE)
        (self.cluster.parts.shared / "train.py").write_text(TRAINING)
        objects = self.cluster.infra("job", "render").stdout
        judged = self.cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", input=objects)
        self.assertEqual(judged.count("(server dry run)"), objects.count("\nkind: "))
        self.assertIn("complete", self.cluster.infra("job", "submit").stderr)
        self.assertIn("rank 1 of 2", self.cluster.infra("job", "logs", "--index", "1").stdout)
        self.cluster.infra("job", "fetch", "--to", "results")
        self.assertEqual({path.name for path in (directory / "results").rglob("*.txt")}, {"rank 0 of 2.txt", "rank 1 of 2.txt"})
        self.cluster.infra("job", "delete", "--yes")
        self.assertEqual(self.get("pods", "--selector=infra.internal/job=pair")["items"], [])

    def test_files_go_to_the_claim_and_back(self):
        """Through the real API server, kubelet and containerd: binary, large, many, and only once."""
        source, size = self.cluster.directory / "files", 200 << 20
        (source / "many").mkdir(parents=True)
        with (source / "large.bin").open("wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        for number in range(500):
            (source / f"many/{number}").write_bytes(bytes([number % 256]) * number)
        began = time.monotonic()
        self.cluster.infra("data", "put", f"{source}/", "files")
        say(f"200 MiB and 500 files put: {time.monotonic() - began:.0f} s")
        self.assertIn("nothing to move", self.cluster.infra("data", "put", f"{source}/", "files").stderr)
        self.assertIn("large.bin", self.cluster.infra("data", "ls", "files").stdout)
        began = time.monotonic()
        self.cluster.infra("data", "get", "files", "back")
        say(f"and got: {time.monotonic() - began:.0f} s")
        compared = filecmp.dircmp(source, self.cluster.directory / "back/files")
        self.assertEqual((compared.diff_files, compared.left_only, compared.right_only), ([], [], []))
        self.assertTrue(filecmp.cmp(source / "large.bin", self.cluster.directory / "back/files/large.bin", shallow=False))
        missing = self.cluster.infra("data", "get", "none", "back", expected=(1,))
        self.assertIn("there is no none on the claim efs", missing.stderr)
        self.cluster.infra("data", "rm", "files", "--yes")
        self.wait_for("the pods to terminate", lambda: not self.get("pods", "--selector=infra.internal/role=files")["items"], 60)

    def test_a_node_that_was_deleted_registers_again(self):
        [worker] = self.of_role("pool-cpu")
        name, before = worker.facts["name"], worker.journal("watch-node").count(REGISTERS)
        deleted = self.get("node", name)["metadata"]["uid"]
        self.cluster.kubectl("delete", "node", name)
        began = time.monotonic()
        self.wait_for("both nodes are Ready", lambda: self.all_nodes_are_ready(2), 240)
        say(f"a deleted Node is Ready again: {time.monotonic() - began:.0f} s")
        self.assertNotEqual(self.get("node", name)["metadata"]["uid"], deleted)
        self.assertEqual(worker.journal("watch-node").count(REGISTERS), before + 1)
        # The pods of a Node that was deleted are collected, and replaced, a minute later.
        self.wait_for_all_pods()
        # The cloud controller manager has initialized it.
        self.wait_for("infra counts it", lambda: self.cluster.infra("status", expected=(0, 3)).returncode == 0, 120)

    def test_a_lost_worker_is_replaced(self):
        [worker] = self.of_role("pool-cpu")
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[worker.id])
        began = time.monotonic()
        self.wait_for("a machine in its place", lambda: [machine.id for machine in self.of_role("pool-cpu")] not in ([worker.id], []))
        self.wait_for("both nodes are Ready and the lost one is gone", lambda: self.all_nodes_are_ready(2, without=worker), 300)
        say(f"a worker replaced: {time.monotonic() - began:.0f} s")
        self.wait_for_all_pods()
        self.cluster.infra("status")

    def test_the_controller_comes_back_after_a_power_cut(self):
        [controller] = self.of_role("controller")
        self.cluster.kubectl("create", "configmap", "kept", "--from-literal=a=b")
        began = time.monotonic()
        controller.cut_power()
        controller.switch_on()
        self.wait_for("the API", lambda: "kept" in self.cluster.kubectl("get", "configmaps", "--output=name", check=False), 240)
        say(f"the API after a power cut: {time.monotonic() - began:.0f} s")
        self.wait_for("both nodes", lambda: self.all_nodes_are_ready(2))
        self.wait_for_all_pods()
        self.assertEqual(controller.failed_units(), "")

    def test_destroy_switches_everything_off(self):
        machines = list(self.cluster.room.machines.values())
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual([machine.process.poll() is None for machine in machines], [False] * len(machines))
        self.assertEqual(self.cluster.account.left(), [])


def actions(policies):
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            named = statement["Action"]
            yield from [named] if isinstance(named, str) else named


if __name__ == "__main__":
    unittest.main()
