"""One worker's machine in an attacker's hands, with its kubelet's certificate and the tokens of its pods: how far that reaches.

What is refused here must stay refused. What still succeeds is printed, and listed in docs/security.md.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402

CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
API = "https://api.minimal.infra.internal"
AUDIT_LOG = "/var/log/kubernetes/audit.log"
ROLE_LABEL = "node-role.kubernetes.io/control-plane"
# Kubelets may set it; controllers were known by it once.
OLD_LABEL = "node.kubernetes.io/controller"
FLANNEL = "system:serviceaccount:kube-flannel:flannel"
# Longer than the scheduler and a kubelet need for a pod, by far.
PATIENCE = 45
QUIET_SECONDS = 180
WORKLOAD = """
apiVersion: v1
kind: Secret
metadata: {name: %(name)s}
stringData: {key: %(name)s}
---
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  nodeName: %(node)s
  terminationGracePeriodSeconds: 0
  volumes: [{name: key, secret: {secretName: %(name)s}}]
  containers:
  - name: main
    image: %(image)s
    command: [sleep, "3600"]
    env: [{name: API_KEY, value: %(word)s}]
    volumeMounts: [{name: key, mountPath: /key}]
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(CompromisedWorker)


class CompromisedWorker(Chapters):
    text = ((ROOT / "tests/clusters/minimal/cluster.yaml").read_text().replace("m5.large}", "m5.large, count: 2}")
            + "addons: {clusterAutoscaler: false}\n")
    # In the environment of pods; must be in no log.
    word = f"in-no-log-{time.time_ns()}"
    found_tokens = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.worker, cls.other = cls.cluster.room.of_role("pool-cpu")
        [cls.controller] = cls.cluster.room.of_role("controller")
        cls.own, cls.others = cls.worker.facts["name"], cls.other.facts["name"]
        for name, node in ("mine", cls.own), ("theirs", cls.others):
            cls.cluster.kubectl("apply", "--filename=-", input=WORKLOAD % {
                "name": name, "node": node, "image": JOB_IMAGE, "word": cls.word})

    # --- What the attacker does, on the machine ---

    def ask(self, method, path, body=None, token=None, kind="application/merge-patch+json", machine=None):
        """Status and body of the API's answer to the kubelet's certificate, or to a token."""
        machine = machine or self.worker
        who = ["--header", f"Authorization: Bearer {token}"] if token else ["--cert", CERTIFICATE]
        kind = kind if method == "PATCH" else "application/json"
        sent = ["--header", f"Content-Type: {kind}", "--data", json.dumps(body)] if body is not None else []
        answer = machine.run("curl", "--silent", "--show-error", "--max-time", "20", "--cacert", "/etc/kubernetes/pki/ca.pem", *who,
                             "--request", method, *sent, "--write-out", "\n%{http_code}", API + path)
        text, _, status = answer.rpartition("\n")
        return int(status), text

    def tokens(self, machine):
        """The tokens of a machine's pods, by their accounts."""
        if machine.id in self.found_tokens:
            return self.found_tokens[machine.id]
        found = self.found_tokens[machine.id] = {}
        for pod in self.pods():
            if pod["spec"].get("nodeName") == machine.facts["name"]:
                directory = f"/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~projected"
                for path in machine.run("find", directory, "-name", "token", check=False).split():
                    account = f"system:serviceaccount:{pod['metadata']['namespace']}:{pod['spec']['serviceAccountName']}"
                    found[account] = machine.run("cat", path)
        return found

    def set_label(self, node, name, value):
        return self.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {name: value}}})

    def patch_status(self, node, body, kind="application/merge-patch+json"):
        return self.ask("PATCH", f"/api/v1/nodes/{node}/status", body, token=self.tokens(self.worker)[FLANNEL], kind=kind)

    def assert_refused(self, answer, statuses=(403,)):
        self.assertIn(answer[0], statuses, answer[1])

    # --- Chapters ---

    def test_the_audit_log_of_a_quiet_cluster_is_small(self):
        self.wait_for_all_pods()
        time.sleep(30)
        size = self.log_size()
        time.sleep(QUIET_SECONDS)
        lines, minutes = len(self.events(after=size)), QUIET_SECONDS / 60
        say(f"audit log: {lines / minutes:.0f} lines, {(self.log_size() - size) / minutes / 1000:.0f} kB a minute")
        # Clients renew each of their watches every five to ten minutes.
        watches = {(event["user"].get("username"), event["requestURI"].split("resourceVersion")[0]) for event in self.events()
                   if event["verb"] == "watch"}
        say(f"  and {len(watches)} watches, of which {len(watches) / 7.5:.0f} are renewed in a minute")
        self.assertLess(lines / minutes, 60)

    def log_size(self):
        return int(self.controller.run("stat", "--format=%s", AUDIT_LOG))

    def events(self, after=0):
        return [json.loads(line) for line in self.controller.run("tail", f"--bytes=+{after + 1}", AUDIT_LOG).splitlines()]

    def test_it_cannot_give_itself_the_role_of_a_controller(self):
        self.assert_refused(self.set_label(self.own, ROLE_LABEL, ""))
        self.assert_refused(self.set_label(self.own, "node-restriction.kubernetes.io/anything", "x"))
        self.assert_refused(self.set_label(self.others, OLD_LABEL, "true"))
        self.assert_refused(self.ask("PATCH", f"/api/v1/nodes/{self.own}", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}))

    def test_no_label_that_it_may_set_brings_it_a_pod_of_the_control_plane(self):
        before = self.status()
        status, text = self.set_label(self.own, OLD_LABEL, "true")
        self.assertEqual(status, 200, text)
        self.addCleanup(self.set_label, self.own, OLD_LABEL, None)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.assertEqual(self.control_plane_pods(), {})
            time.sleep(1)
        # A controller that boots applies the add-ons, and labels.
        self.controller.run("systemctl", "restart", "apply-addons", timeout=600)
        labels = {node["metadata"]["name"]: ROLE_LABEL in node["metadata"]["labels"] for node in self.get("nodes")["items"]}
        self.assertEqual(labels, {self.own: False, self.others: False, self.controller.facts["name"]: True})
        self.assertEqual(self.control_plane_pods(), {})
        self.assertEqual(self.status(), before)

    def control_plane_pods(self):
        """Pods of the control plane that are not on the controller, with their nodes."""
        apps = ("cloud-controller-manager", "metrics-server", "cluster-autoscaler", "jobset")
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.pods()
                if pod["metadata"].get("labels", {}).get("k8s-app") in apps
                and pod["spec"].get("nodeName") not in (None, self.controller.facts["name"])}

    def status(self):
        return [(entry["pool"], entry["ready"], entry["wanted"])
                for entry in json.loads(self.cluster.infra("status", "--output", "json").stdout)["nodes"]]

    def test_flannels_token_does_not_change_another_node(self):
        address = {"status": {"addresses": [{"type": "InternalIP", "address": self.worker.facts["address"]}],
                              "daemonEndpoints": {"kubeletEndpoint": {"Port": 10666}}}}
        public = {"metadata": {"annotations": {"flannel.alpha.coreos.com/public-ip": self.worker.facts["address"]}}}
        for node in self.others, self.controller.facts["name"]:
            for body in address, public, {"metadata": {"labels": {"a": "b"}}}:
                before = self.get("node", node)
                self.assert_refused(self.patch_status(node, body), (422,))
                for part in "addresses", "daemonEndpoints":
                    self.assertEqual(self.get("node", node)["status"][part], before["status"][part])

    def test_flannels_token_changes_flannels_part_of_its_own_node_only(self):
        for body in (
            {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.66"}]}},
            {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10666}}}},
            {"status": {"capacity": {"cpu": "99"}}},
            {"metadata": {"labels": {ROLE_LABEL: ""}}},
            {"metadata": {"annotations": {"volumes.kubernetes.io/anything": "x"}}},
            {"metadata": {"finalizers": ["example.com/stay"]}},
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "gone"}]}},
        ):
            self.assert_refused(self.patch_status(self.own, body), (422,))
        ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        self.assert_refused(self.patch_status(self.own, ready, "application/strategic-merge-patch+json"), (422,))
        self.assertNotIn(ROLE_LABEL, self.get("node", self.own)["metadata"]["labels"])
        # What flannel does itself.
        status, text = self.patch_status(self.own, {"metadata": {"annotations": {"flannel.alpha.coreos.com/test": "x"}}})
        self.assertEqual(status, 200, text)
        self.patch_status(self.own, {"metadata": {"annotations": {"flannel.alpha.coreos.com/test": None}}})
        network = {"status": {"conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "FlannelIsUp"}]}}
        status, text = self.patch_status(self.own, network, "application/strategic-merge-patch+json")
        self.assertEqual(status, 200, text)

    def test_the_policy_is_understood(self):
        policy = self.get("validatingadmissionpolicy", "infra-flannel")
        self.assertEqual(policy["status"]["observedGeneration"], policy["metadata"]["generation"])
        self.assertEqual(policy["status"].get("typeChecking", {}), {})

    def test_secrets_and_tokens_of_other_machines_are_refused(self):
        self.wait_for_pods("mine", "theirs")
        self.assertEqual(self.ask("GET", "/api/v1/namespaces/default/secrets/mine")[0], 200)
        self.assert_refused(self.ask("GET", "/api/v1/namespaces/default/secrets/theirs"))
        self.assert_refused(self.ask("GET", "/api/v1/secrets"))
        self.assert_refused(self.ask("GET", "/api/v1/pods"))
        theirs = self.get("pod", "theirs")
        bound = {"kind": "Pod", "apiVersion": "v1", "name": "theirs", "uid": theirs["metadata"]["uid"]}
        token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [], "boundObjectRef": bound}}
        self.assert_refused(self.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", token))
        # Nor accounts that no pod of this machine has.
        self.assert_refused(self.ask("POST", "/api/v1/namespaces/kube-system/serviceaccounts/node-controller/token", token))

    def test_pods_of_other_machines_are_refused(self):
        self.assert_refused(self.ask("DELETE", "/api/v1/namespaces/default/pods/theirs"))
        self.assert_refused(self.ask("PATCH", "/api/v1/namespaces/default/pods/theirs/status", {"status": {"phase": "Failed"}}))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"},
               "spec": {"nodeName": self.own, "serviceAccountName": "default", "containers": [{"name": "a", "image": JOB_IMAGE}]}}
        self.assert_refused(self.ask("POST", "/api/v1/namespaces/default/pods", pod))

    def test_no_token_of_the_machine_opens_more(self):
        tokens = self.tokens(self.worker)
        self.assertIn(FLANNEL, tokens)
        self.assertIn("system:serviceaccount:kube-system:kube-proxy", tokens)
        # CoreDNS may be on any machine.
        for machine in self.worker, self.other, self.controller:
            for account, token in self.tokens(machine).items():
                if machine is self.controller and not account.endswith(":coredns"):
                    continue
                for method, path, body in (
                    ("GET", "/api/v1/secrets", None),
                    ("GET", "/api/v1/pods", None),
                    ("GET", "/api/v1/configmaps", None),
                    ("DELETE", "/api/v1/namespaces/default/pods/theirs", None),
                    ("PATCH", f"/api/v1/nodes/{self.own}", {"metadata": {"labels": {ROLE_LABEL: ""}}}),
                    ("PATCH", f"/api/v1/nodes/{self.others}", {"spec": {"unschedulable": True}}),
                ):
                    with self.subTest(account=account, call=f"{method} {path}"):
                        self.assert_refused(self.ask(method, path, body, token=token, machine=machine))

    def test_reads_are_in_the_audit_log(self):
        size = self.log_size()
        # Not on the worker, but a token like it may leak.
        [token] = [token for account, token in self.tokens(self.controller).items() if account.endswith(":metrics-server")]
        self.assertEqual(self.ask("GET", "/api/v1/pods?limit=7", token=token)[0], 200)
        self.ask("GET", "/api/v1/secrets?limit=7")
        self.ask("GET", "/api/v1/services?limit=7", token=self.tokens(self.worker)[FLANNEL])
        seen = {(event["user"]["username"], event["objectRef"]["resource"], event["responseStatus"]["code"]) for event in self.events(size)
                if event["requestURI"].endswith("?limit=7")}
        self.assertEqual(seen, {("system:serviceaccount:kube-system:metrics-server", "pods", 200),
                                (f"system:node:{self.own}", "secrets", 403), (FLANNEL, "services", 403)})

    def test_no_environment_is_in_the_audit_log(self):
        template = {"metadata": {"labels": {"app": "quiet"}}, "spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": JOB_IMAGE, "command": ["true"], "env": [{"name": "API_KEY", "value": self.word}]}]}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "quiet"}, "spec": {"template": template}}
        self.cluster.kubectl("apply", "--filename=-", input=json.dumps(job))
        self.cluster.kubectl("delete", "job", "quiet")
        log = self.controller.run("cat", AUDIT_LOG)
        self.assertIn('"name":"quiet"', log)
        self.assertEqual([line[:300] for line in log.splitlines() if self.word in line], [])

    def test_what_it_can_still_do(self):
        tokens = self.tokens(self.worker)
        proxy, flannel = tokens["system:serviceaccount:kube-system:kube-proxy"], tokens[FLANNEL]
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "made-up", "namespace": "default"}, "reason": "MadeUp",
                 "message": "anything", "involvedObject": {"kind": "Pod", "name": "theirs", "namespace": "default"}}
        own = f"/api/v1/nodes/{self.own}"
        for what, answer in {
            "read all Nodes (flannel's token)": self.ask("GET", "/api/v1/nodes", token=flannel),
            "read all Services": self.ask("GET", "/api/v1/services"),
            "read all EndpointSlices, so the addresses of all pods behind Services (kube-proxy's token)":
                self.ask("GET", "/apis/discovery.k8s.io/v1/endpointslices", token=proxy),
            "read Secrets and ConfigMaps that pods of its machine use": self.ask("GET", "/api/v1/namespaces/default/secrets/mine"),
            "write Events of any object": self.ask("POST", "/api/v1/namespaces/default/events", event),
            "put itself into another pool, whose pods may then be placed on it":
                self.ask("PATCH", own, {"metadata": {"labels": {"infra.internal/pool": "another"}}}),
            "report any capacity of its own machine": self.ask("PATCH", f"{own}/status", {"status": {"capacity": {"example.com/x": "1"}}}),
            "lead the pod network's traffic for its own pods elsewhere (flannel's token)": self.ask(
                "PATCH", f"{own}/status", {"metadata": {"annotations": {"flannel.alpha.coreos.com/test": "x"}}}, token=flannel),
            "fail and delete the pods of its own machine": self.ask("DELETE", "/api/v1/namespaces/default/pods/mine"),
        }.items():
            self.assertIn(answer[0], (200, 201), f"{what}: {answer[1]}")
            say(f"  it can still: {what}")
        self.ask("PATCH", own, {"metadata": {"labels": {"infra.internal/pool": "cpu"}}})
        stack = json.loads((self.cluster.directory / "stacks/pool-cpu.json").read_text())
        for policy in stack["Resources"]["NodeRole"]["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                say(f"  its IAM role allows: {statement['Action']} on {json.dumps(statement['Resource'])}")

    def test_a_controller_whose_node_was_deleted_is_one_again(self):
        name = self.controller.facts["name"]
        self.cluster.kubectl("delete", "node", name)

        def is_back():
            found = json.loads(self.cluster.kubectl("get", "node", name, "--output=json", check=False) or "{}")
            return ROLE_LABEL in found.get("metadata", {}).get("labels", {}) and self.all_nodes_are_ready(3)

        # Its watch-node needs two minutes before it restarts the kubelet, and with it apply-addons, which sets the label.
        self.wait_for("the controller's Node with its label", is_back, 420)
        # The cloud controller manager is on it again, and has initialized it.
        self.wait_for("infra counts it", lambda: self.cluster.infra("status", expected=(0, 3)).returncode == 0, 300)
        self.wait_for_all_pods()

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
