"""Who becomes a node: what a bootstrap key gets and what it does not, with and without controllers that approve, and a hundred machines at once."""

import base64
import collections
import datetime
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import CONTROLLER, WORKER, Chapters, in_order, is_ready, say  # noqa: E402

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
OWN_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
SERVING_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-server-current.pem"
# A controller and two workers.
NODES = 3
HUNDRED = 100
SPARE = 20
# What clusters had before there was an approver, as their controllers applied it.
STOCK_APPROVAL = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "infra:approve-first-node-certificate"}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:certificates.k8s.io:certificatesigningrequests:nodeclient
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers"}
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(NodeCertificates)


class NodeCertificates(Chapters):
    text = ((ROOT / "tests/clusters/minimal/cluster.yaml").read_text().replace("m5.large}", "m5.large, count: 2}")
            + "addons: {clusterAutoscaler: false}\n")

    def controller(self):
        [machine] = self.of_role("controller")
        return machine

    def approver(self, action):
        self.controller().run("systemctl", action, "approve-nodes")

    def bootstrap_config(self):
        """A pool's bootstrap.conf, from what its machines boot with."""
        config = json.loads((self.cluster.directory / "userdata/pool-cpu.ign").read_text())
        [source] = [file["contents"]["source"] for file in config["storage"]["files"] if file["path"] == "/etc/kubernetes/bootstrap.conf"]
        path = self.cluster.directory / "stolen.conf"
        path.write_bytes(base64.b64decode(source.partition(",")[2]))
        return ["--kubeconfig", path]

    def node_config(self, machine):
        """The identity of a node."""
        path = self.cluster.directory / "node.pem"
        path.write_text(machine.run("cat", OWN_CERTIFICATE))
        return ["--kubeconfig=/dev/null", "--certificate-authority", self.cluster.directory / "credentials/ca.pem",
                "--client-certificate", path, "--client-key", path]

    def request(self, name, node, names="", signer=CLIENT):
        """The object for a certificate of that node."""
        key = self.cluster.scratch / "key.pem"
        if not key.exists():
            subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
                           check=True, capture_output=True)
        words = ["openssl", "req", "-new", "-key", key, "-subj", f"/O=system:nodes/CN=system:node:{node}"]
        made = subprocess.run(words + (["-addext", f"subjectAltName={names}"] if names else []), check=True, capture_output=True)
        usage = "server auth" if signer == SERVING else "client auth"
        return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
                "spec": {"request": base64.b64encode(made.stdout).decode(), "signerName": signer, "usages": ["digital signature", usage]}}

    def create(self, identity, *requests):
        server = self.cluster.kubectl("config", "view", "--output=jsonpath={.clusters[0].cluster.server}")
        return self.cluster.run(self.cluster.parts.kubectl, *identity, "--server", server, "create", "--filename=-",
                                input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(requests)}))

    def ask(self, identity, *requests):
        done = self.create(identity, *requests)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.cluster.kubectl, "delete", "csr", "--ignore-not-found",
                        *(request["metadata"]["name"] for request in requests))

    def conditions(self, name):
        return [condition["type"] for condition in self.get("csr", name)["status"].get("conditions", [])]

    def expect(self, name, decision, text):
        """What the controller said of a request, and that it was not signed."""
        line = f"{name} {decision}: {text}"
        self.wait_for(line, lambda: line in self.controller().journal("approve-nodes"), 60)
        self.assertEqual(self.conditions(name), ["Denied"] if decision == "deny" else [])
        self.assertNotIn("certificate", self.get("csr", name)["status"])

    def test_every_node_has_certificates_of_the_cluster_for_90_days(self):
        self.wait_for_all_pods()
        for machine in [self.controller(), *self.of_role("pool-cpu")]:
            self.assertEqual(machine.failed_units(), "", machine.role)
            name, address = machine.facts["name"], machine.facts["address"]
            for path, subject in (OWN_CERTIFICATE, name), (SERVING_CERTIFICATE, name):
                text = machine.run("openssl", "x509", "-in", path, "-noout", "-subject", "-enddate", "-ext", "subjectAltName",
                                   "-dateopt", "iso_8601")
                self.assertIn(f"CN = system:node:{subject}", text)
                [end] = [line.partition("=")[2] for line in text.splitlines() if line.startswith("notAfter=")]
                left = datetime.datetime.fromisoformat(end.replace("Z", "+00:00")) - datetime.datetime.now(datetime.timezone.utc)
                self.assertAlmostEqual(left / datetime.timedelta(days=1), 90, delta=0.2)
            self.assertIn(f"IP Address:{address}", text)

    def test_the_bootstrap_key_is_gone(self):
        for machine in [self.controller(), *self.of_role("pool-cpu")]:
            self.assertNotIn("bootstrap.conf", machine.run("ls", "/etc/kubernetes"))

    def test_logs_come_from_verified_kubelets(self):
        flags = self.controller().run("cat", "/etc/kubernetes/manifests/kube-apiserver.yaml")
        self.assertIn("--kubelet-certificate-authority=", flags)
        for name, selector in ("near", CONTROLLER), ("far", WORKER):
            self.create_pod(name, selector, '"echo here; exec sleep 3600"')
        self.wait_for_pods("near", "far")
        for name in "near", "far":
            self.assertEqual(self.cluster.kubectl("logs", name), "here\n")
            self.assertEqual(self.execute(name, "echo", "there"), "there\n")
        self.wait_for("metrics of every node", lambda: self.cluster.kubectl("top", "nodes", "--no-headers", check=False).count("\n") == NODES)

    def test_a_kubelet_with_a_self_signed_certificate_is_refused(self):
        worker, _ = self.of_role("pool-cpu")
        self.create_pod("verified", f"kubernetes.io/hostname: {worker.facts['name']}", '"echo here; exec sleep 3600"')
        self.wait_for_pods("verified")
        names = worker.run("openssl", "x509", "-in", SERVING_CERTIFICATE, "-noout", "-ext", "subjectAltName").splitlines()[1]
        worker.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90",
                   "-subj", f"/O=system:nodes/CN=system:node:{worker.facts['name']}", "-keyout", "/run/key.pem", "-out", "/run/certificate.pem",
                   "-addext", "subjectAltName=" + names.strip().replace("IP Address", "IP"))
        worker.run("sh", "-c", f"rm {SERVING_CERTIFICATE}; cat /run/certificate.pem /run/key.pem > {SERVING_CERTIFICATE}; systemctl restart kubelet")

        def answer():
            return self.cluster.run(self.cluster.parts.kubectl, "--kubeconfig", self.cluster.directory / "kubeconfig", "logs", "verified").stderr

        self.wait_for("the refusal", lambda: "x509: certificate signed by unknown authority" in answer(), 60)
        worker.run("sh", "-c", f"rm {SERVING_CERTIFICATE}; systemctl restart kubelet")
        self.wait_for("the answer", lambda: self.cluster.kubectl("logs", "verified", check=False) == "here\n")

    def test_a_new_controller_removes_the_stock_approval(self):
        binding = ["clusterrolebinding", "infra:approve-first-node-certificate"]
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=infra", "--filename=-", input=STOCK_APPROVAL)
        self.assertEqual(len(self.get(*binding)["subjects"]), 1)
        self.controller().run("systemctl", "restart", "apply-addons")
        self.assertNotIn("subjects", self.get(*binding))

    def test_a_bootstrap_key_becomes_no_other_node(self):
        controller, (worker, _) = self.controller().facts, self.of_role("pool-cpu")
        other, nobody = worker.facts["name"], "ip-10-0-99-99.us-west-2.compute.internal"
        self.ask(self.bootstrap_config(), self.request("as-controller", controller["name"]), self.request("as-worker", other),
                 self.request("as-nobody", nobody), self.request("serving", other, f"IP:{worker.facts['address']}", SERVING))
        self.expect("as-controller", "deny",
                    f"the bootstrap identity of a pool asks for {controller['name']}, but {controller['id']} is controller")
        self.expect("as-worker", "waits", f"{worker.id} is Node {other} already; if it has lost its certificate, terminate the machine")
        self.expect("as-nobody", "waits", f"EC2 knows no machine {nobody} of this cluster")
        self.assertEqual(self.conditions("serving"), [])

    def test_a_node_gets_serving_certificates_for_itself_only(self):
        worker, other = self.of_role("pool-cpu")
        name, own, foreign = worker.facts["name"], worker.facts["address"], other.facts["address"]
        self.ask(self.node_config(worker), self.request("foreign-address", name, f"IP:{own},IP:{foreign}", SERVING),
                 self.request("foreign-name", name, f"DNS:{other.facts['name']}", SERVING),
                 self.request("own", name, f"DNS:{name},IP:{own}", SERVING))
        self.expect("foreign-address", "deny", f"{foreign} does not belong to {name} ({worker.id})")
        self.expect("foreign-name", "deny", f"{other.facts['name']} does not belong to {name} ({worker.id})")
        # Kubernetes itself refuses a request in the name of another node.
        refused = self.create(self.node_config(worker), self.request("foreign-node", other.facts["name"], f"IP:{foreign}", SERVING))
        self.assertIn(f"can only create a node CSR with CN=system:node:{name}", refused.stderr)
        self.wait_for("its own", lambda: self.get("csr", "own")["status"].get("certificate"), 60)

    def test_a_hundred_machines_at_once(self):
        ec2 = self.cluster.account.client("ec2")
        tags = [{"Key": "infra:cluster", "Value": "minimal"}, {"Key": "infra:role", "Value": "pool-cpu"}]
        made = ec2.run_instances(ImageId="ami-0123456789abcdef0", InstanceType="m5.large", MinCount=HUNDRED + SPARE, MaxCount=HUNDRED + SPARE,
                                 TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])["Instances"]
        self.addCleanup(ec2.terminate_instances, InstanceIds=[instance["InstanceId"] for instance in made])
        # The stand-in draws addresses at random, perhaps one of them twice.
        drawn = collections.Counter(instance["PrivateDnsName"] for instance in made)
        names = [name for name, machines in drawn.items() if machines == 1][:HUNDRED]
        self.assertEqual(len(names), HUNDRED)
        requests = [self.request(f"many-{number}", name) for number, name in enumerate(sorted(names))]
        self.ask(self.bootstrap_config(), *requests)
        began = time.monotonic()

        def signed():
            return [request for request in self.get("csr")["items"]
                    if request["metadata"]["name"].startswith("many-") and request["status"].get("certificate")]

        self.wait_for("a hundred certificates", lambda: len(signed()) == HUNDRED, 120)
        say(f"a hundred first certificates: {time.monotonic() - began:.0f} s")

    def test_no_other_machine_becomes_a_node_that_is_down(self):
        worker, _ = self.of_role("pool-cpu")
        worker.cut_power()
        self.wait_for("the node is not Ready", lambda: self.nodes()[worker.facts["name"]] == "Unknown")
        self.ask(self.bootstrap_config(), self.request("while-down", worker.facts["name"]))
        self.expect("while-down", "waits",
                    f"{worker.id} is Node {worker.facts['name']} already; if it has lost its certificate, terminate the machine")
        # It comes back with its own certificate: it has no other.
        worker.switch_on()
        self.wait_for("every node", lambda: self.all_nodes_are_ready(NODES))
        self.assertEqual(worker.failed_units(), "")

    def test_without_an_approver_nodes_continue_and_new_ones_wait(self):
        lost, kept = self.of_role("pool-cpu")
        self.approver("stop")
        self.addCleanup(self.approver, "start")
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[lost.id])

        def newcomer():
            return next((machine for machine in self.of_role("pool-cpu") if machine.id not in (lost.id, kept.id)), None)

        self.wait_for("a machine in its place", newcomer)
        said = "no certificate yet; a controller's approve-nodes approves it, and its journal says what it waits for"
        self.wait_for("it says what it waits for",
                      lambda: newcomer().ready.is_set() and said in newcomer().journal("signal-node"))
        self.wait_for("the lost node is gone", lambda: lost.facts["name"] not in self.nodes())
        self.assertEqual(self.nodes(), {self.controller().facts["name"]: "True", kept.facts["name"]: "True"})
        self.create_pod("while-away", f"kubernetes.io/hostname: {kept.facts['name']}", '"echo here; exec sleep 3600"')
        self.wait_for_pods("while-away")
        self.assertEqual(self.cluster.kubectl("logs", "while-away"), "here\n")
        self.assertIn("bootstrap.conf", newcomer().run("ls", "/etc/kubernetes"))

        began = time.monotonic()
        self.approver("start")
        self.wait_for("it joins", lambda: self.all_nodes_are_ready(NODES))
        say(f"a machine that had waited is Ready: {time.monotonic() - began:.0f} s")
        self.assertNotIn("bootstrap.conf", newcomer().run("ls", "/etc/kubernetes"))

    def test_kubelets_renew_their_certificates(self):
        """Of a machine that joins while certificates are valid for minutes instead of 90 days."""
        manifest = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
        self.controller().run("sed", "-i", "s/--cluster-signing-duration=2160h/--cluster-signing-duration=5m/", manifest)
        known = {machine.id for machine in self.of_role("pool-cpu")}

        def signs_for_minutes():
            pods = self.get("pods", "--namespace=kube-system", "--selector=component=kube-controller-manager")["items"]
            return all(is_ready(pod) and "--cluster-signing-duration=5m" in pod["spec"]["containers"][0]["command"] for pod in pods)

        self.wait_for("the controller manager with another duration", signs_for_minutes)
        self.cluster.account.client("ec2").terminate_instances(InstanceIds=[min(known)])
        self.wait_for("a machine in its place", lambda: {machine.id for machine in self.of_role("pool-cpu")} - known)
        [newcomer] = [machine for machine in self.of_role("pool-cpu") if machine.id not in known]
        # Of the terminated machine the Node may still be Ready.
        self.wait_for("it joins", lambda: newcomer.ready.is_set() and self.nodes().get(newcomer.facts["name"]) == "True")
        self.wait_for("the other Node is deleted", lambda: self.all_nodes_are_ready(NODES))

        def serial(path):
            return newcomer.run("openssl", "x509", "-in", path, "-noout", "-serial")

        paths = f"{OWN_CERTIFICATE} {SERVING_CERTIFICATE}"
        self.wait_for("both certificates", lambda: newcomer.run("sh", "-c", f"ls {paths} 2>/dev/null || true").count("\n") == 2)
        first = {path: serial(path) for path in (OWN_CERTIFICATE, SERVING_CERTIFICATE)}
        began = time.monotonic()
        self.wait_for("both are renewed", lambda: all(serial(path) != number for path, number in first.items()), 400)
        say(f"certificates of five minutes renewed: {time.monotonic() - began:.0f} s")
        self.assertNotIn("bootstrap.conf", newcomer.run("ls", "/etc/kubernetes"))
        self.create_pod("renewed", f"kubernetes.io/hostname: {newcomer.facts['name']}", '"echo here; exec sleep 3600"')
        self.wait_for_pods("renewed")
        self.assertEqual(self.cluster.kubectl("logs", "renewed"), "here\n")

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
