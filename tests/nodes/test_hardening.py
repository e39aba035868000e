"""The CIS Kubernetes benchmark's checks that can be read from rendered files: each passes, or is in docs/decisions.md with its reason."""

import re
import unittest

import yaml

from golden import CLUSTERS, ROOT, configs
from test_manifests import documents, static_pods

# Checks that do not pass, each explained in docs/decisions.md.
EXCEPTIONS = ["1.2.1", "1.2.9", "1.2.11", "1.2.20", "4.1.1", "4.2.7", "4.2.9"]

STRONG_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}


def settings(pod):
    words = [word for word in pod["spec"]["containers"][0]["command"] if word.startswith("--")]
    return dict(word.removeprefix("--").split("=", 1) if "=" in word else (word.removeprefix("--"), "true") for word in words)


def of_kind(*kinds):
    return [config for config in configs() if config.kind in kinds]


class ControlPlane(unittest.TestCase):
    def each(self, name):
        for config in of_kind("controller"):
            pod = next(pod for pod in static_pods(config) if pod["metadata"]["name"] == name)
            with self.subTest(str(config)):
                yield config, settings(pod)

    def test_1_1_files(self):
        for config in of_kind("controller"):
            for path, file in config.files.items():
                with self.subTest(f"{config} {path}"):
                    # 1.1.1-1.1.8, 1.1.13-1.1.18: pod specifications and kubeconfigs.
                    if path.startswith("/opt/infra/static-pods/") or path.endswith(".conf") and path.startswith("/etc/kubernetes/"):
                        self.assertEqual((oct(file.mode), file.owner), ("0o600", 0))
                    # 1.1.19-1.1.21: keys and certificates.
                    if path.startswith("/etc/kubernetes/pki/"):
                        self.assertEqual(file.owner, 0)
                        self.assertEqual(oct(file.mode), "0o600" if path.endswith("-key.pem") else "0o644")
            self.assertEqual(oct(config.directories["/etc/kubernetes/pki"]["mode"]), "0o700")
        # 1.1.11, 1.1.12: etcd's data.
        for config in of_kind("etcd"):
            directory = config.directories["/var/lib/etcd"]
            self.assertEqual((oct(directory["mode"]), directory["user"]["id"]), ("0o700", 232))

    def test_1_2_api_server(self):
        for config, flags in self.each("kube-apiserver"):
            # 1.2.1: anonymous requests are for health paths only.
            access = documents(config.text("/etc/kubernetes/authentication.yaml"))[0]
            paths = {condition["path"] for condition in access["anonymous"]["conditions"]}
            self.assertEqual(paths, {"/livez", "/readyz", "/healthz"})
            self.assertNotIn("token-auth-file", flags)  # 1.2.2
            plugins = flags["enable-admission-plugins"].split(",")
            self.assertIn("DenyServiceExternalIPs", plugins)  # 1.2.3
            self.assertIn("NodeRestriction", plugins)  # 1.2.14
            self.assertNotIn("AlwaysAdmit", plugins)  # 1.2.10
            self.assertTrue(flags["kubelet-client-certificate"] and flags["kubelet-client-key"])  # 1.2.4
            self.assertEqual(flags["kubelet-certificate-authority"], "/etc/kubernetes/pki/ca.pem")  # 1.2.5
            self.assertEqual(flags["authorization-mode"], "Node,RBAC")  # 1.2.6-1.2.8
            for plugin in ["ServiceAccount", "NamespaceLifecycle"]:  # 1.2.12, 1.2.13
                self.assertNotIn(plugin, flags.get("disable-admission-plugins", ""))
            self.assertEqual(flags["profiling"], "false")  # 1.2.15
            self.assertEqual(flags["audit-log-path"], "/var/log/kubernetes/audit.log")  # 1.2.16
            self.assertGreaterEqual(int(flags["audit-log-maxage"]), 30)  # 1.2.17
            self.assertGreaterEqual(int(flags["audit-log-maxbackup"]), 10)  # 1.2.18
            self.assertGreaterEqual(int(flags["audit-log-maxsize"]), 100)  # 1.2.19
            self.assertEqual(flags.get("service-account-lookup", "true"), "true")  # 1.2.21
            self.assertTrue(flags["service-account-key-file"])  # 1.2.22
            for name in ["etcd-certfile", "etcd-keyfile", "etcd-cafile", "tls-cert-file", "tls-private-key-file", "client-ca-file"]:
                self.assertTrue(flags[name], name)  # 1.2.23-1.2.26
            encryption = documents(config.text("/etc/kubernetes/encryption.yaml"))[0]  # 1.2.27, 1.2.28
            self.assertIn("secretbox", encryption["resources"][0]["providers"][0])
            self.assertEqual(set(flags["tls-cipher-suites"].split(",")) - STRONG_SUITES, set())  # 1.2.29
            self.assertEqual(flags["tls-min-version"], "VersionTLS12")
            self.assertEqual(flags["service-account-extend-token-expiration"], "false")  # 1.2.30

    def test_1_3_controller_manager(self):
        for _, flags in self.each("kube-controller-manager"):
            self.assertGreater(int(flags["terminated-pod-gc-threshold"]), 0)  # 1.3.1
            self.assertEqual(flags["profiling"], "false")  # 1.3.2
            self.assertEqual(flags["use-service-account-credentials"], "true")  # 1.3.3
            self.assertTrue(flags["service-account-private-key-file"])  # 1.3.4
            self.assertTrue(flags["root-ca-file"])  # 1.3.5
            self.assertNotIn("RotateKubeletServerCertificate=false", flags.get("feature-gates", ""))  # 1.3.6
            self.assertEqual(flags["bind-address"], "127.0.0.1")  # 1.3.7
            # Callers that it cannot authenticate are anonymous, so the API server must decide what they may do.
            self.assertEqual(flags["authentication-tolerate-lookup-failure"], "true")
            self.assertTrue(flags["authorization-kubeconfig"])

    def test_1_4_scheduler(self):
        for _, flags in self.each("kube-scheduler"):
            self.assertEqual(flags["profiling"], "false")  # 1.4.1
            self.assertEqual(flags["bind-address"], "127.0.0.1")  # 1.4.2

    def test_2_etcd(self):
        for config in of_kind("etcd"):
            with self.subTest(str(config)):
                values = dict(re.findall(r"^(ETCD_\w+)=(.*)$", config.text("/etc/etcd/etcd.env"), re.M))
                self.assertTrue(values["ETCD_CERT_FILE"] and values["ETCD_KEY_FILE"])  # 2.1
                self.assertEqual(values["ETCD_CLIENT_CERT_AUTH"], "true")  # 2.2
                self.assertNotEqual(values.get("ETCD_AUTO_TLS"), "true")  # 2.3
                self.assertTrue(values["ETCD_PEER_CERT_FILE"] and values["ETCD_PEER_KEY_FILE"])  # 2.4
                self.assertEqual(values["ETCD_PEER_CLIENT_CERT_AUTH"], "true")  # 2.5
                self.assertNotEqual(values.get("ETCD_PEER_AUTO_TLS"), "true")  # 2.6
                key = config.files["/etc/etcd/pki/member-key.pem"]
                self.assertEqual((oct(key.mode), key.owner), ("0o600", 232))
                # Numbers only, and with monitoring for controllers, by the table of who may talk to whom.
                open_to = "0.0.0.0" if "monitoring" in (CLUSTERS / config.cluster / "cluster.yaml").read_text() else "127.0.0.1"
                self.assertEqual(values["ETCD_LISTEN_METRICS_URLS"], f"http://{open_to}:2381")
        # 2.7: etcd has an authority of its own.
        for config in of_kind("controller"):
            self.assertNotEqual(config.text("/etc/kubernetes/pki/etcd-ca.pem"), config.text("/etc/kubernetes/pki/ca.pem"))

    def test_3_2_audit(self):
        for config in of_kind("controller"):
            policy = documents(config.text("/etc/kubernetes/audit-policy.yaml"))[0]  # 3.2.1
            worker, anyone = ("system:node:w", "system:nodes"), ("someone", "system:authenticated")
            metrics = ("system:serviceaccount:kube-system:metrics-server", "system:serviceaccounts:kube-system")
            flannel = ("system:serviceaccount:kube-flannel:flannel", "system:serviceaccounts:kube-flannel")
            users = [worker, anyone, metrics, flannel, ("system:kube-scheduler", "system:authenticated")]
            # 3.2.2: reads of what may hold a secret are seen, whoever reads, and the contents are never written down: no Secret, and no
            # environment of a pod or of whatever has a template of one.
            for user in users:
                for group, resource in CONFIDENTIAL:
                    for verb in ("get", "list", "watch", "create", "update", "patch"):
                        self.assertEqual(audit_level(policy, user, verb, group, resource), "Metadata", (user, verb, resource))
            for resource in ("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/log", "services/proxy", "nodes/proxy"):
                for verb in ("get", "create"):
                    self.assertEqual(audit_level(policy, anyone, verb, "", resource), "Metadata", resource)
            # What a stolen token reads is seen as well; only kubelets read Nodes and Services unseen.
            for resource in ("nodes", "services", "namespaces"):
                self.assertEqual(audit_level(policy, metrics, "list", "", resource), "Metadata", resource)
            self.assertEqual(audit_level(policy, worker, "get", "", "nodes"), "None")
            self.assertEqual(audit_level(policy, worker, "patch", "", "nodes/status"), "None")
            # Rights are written down as they were changed.
            for group, resource in (("rbac.authorization.k8s.io", "clusterrolebindings"), ("", "nodes"), ("", "nodes/status"),
                                    ("admissionregistration.k8s.io", "validatingadmissionpolicies")):
                self.assertEqual(audit_level(policy, flannel, "patch", group, resource), "Request", resource)


# Secrets, tokens, and everything with a pod's environment; the last represents any custom resource.
CONFIDENTIAL = [
    ("", "secrets"), ("", "configmaps"), ("", "serviceaccounts/token"), ("authentication.k8s.io", "tokenreviews"), ("", "pods"),
    ("", "pods/ephemeralcontainers"), ("", "podtemplates"), ("", "replicationcontrollers"), ("apps", "deployments"), ("apps", "daemonsets"),
    ("apps", "statefulsets"), ("apps", "replicasets"), ("apps", "controllerrevisions"), ("batch", "jobs"), ("batch", "cronjobs"),
    ("jobset.x-k8s.io", "jobsets"),
]


def audit_level(policy, user, verb, group, resource):
    """The level of the first rule that matches, by the rules of audit.k8s.io/v1."""
    name, user_group = user

    def matches(rule):
        if "nonResourceURLs" in rule or name not in rule.get("users", [name]) or user_group not in rule.get("userGroups", [user_group]):
            return False
        if verb not in rule.get("verbs", [verb]):
            return False
        return "resources" not in rule or any(
            entry.get("group", "") == group and resource in entry.get("resources", [resource]) for entry in rule["resources"])

    return next((rule["level"] for rule in policy["rules"] if matches(rule)), "None")


class Nodes(unittest.TestCase):
    def test_4_1_files(self):
        for config in of_kind("controller", "pool"):
            with self.subTest(str(config)):
                for path in ["/etc/kubernetes/kubelet.yaml", "/etc/kubernetes/bootstrap.conf"]:  # 4.1.5, 4.1.6, 4.1.9, 4.1.10
                    self.assertEqual((oct(config.files[path].mode), config.files[path].owner), ("0o600", 0), path)
                authority = config.files["/etc/kubernetes/pki/ca.pem"]  # 4.1.7, 4.1.8
                self.assertEqual((oct(authority.mode), authority.owner), ("0o644", 0))

    def test_4_2_kubelet(self):
        for config in of_kind("controller", "pool"):
            with self.subTest(str(config)):
                kubelet = yaml.safe_load(config.text("/etc/kubernetes/kubelet.yaml"))
                self.assertFalse(kubelet["authentication"]["anonymous"]["enabled"])  # 4.2.1
                self.assertEqual(kubelet["authorization"]["mode"], "Webhook")  # 4.2.2
                self.assertEqual(kubelet["authentication"]["x509"]["clientCAFile"], "/etc/kubernetes/pki/ca.pem")  # 4.2.3
                self.assertEqual(kubelet["readOnlyPort"], 0)  # 4.2.4
                self.assertNotEqual(kubelet["streamingConnectionIdleTimeout"], 0)  # 4.2.5
                self.assertTrue(kubelet["makeIPTablesUtilChains"])  # 4.2.6
                self.assertGreater(kubelet["eventRecordQPS"], 0)  # 4.2.8
                self.assertTrue(kubelet["rotateCertificates"])  # 4.2.10
                self.assertTrue(kubelet["serverTLSBootstrap"])  # 4.2.11
                self.assertEqual(set(kubelet["tlsCipherSuites"]) - STRONG_SUITES, set())  # 4.2.12
                self.assertEqual(kubelet["tlsMinVersion"], "VersionTLS12")
                self.assertGreater(kubelet["podPidsLimit"], 0)  # 4.2.13
                self.assertTrue(kubelet["seccompDefault"])  # 4.2.14
                self.assertTrue(kubelet["protectKernelDefaults"])
                grace = int(kubelet["shutdownGracePeriod"].rstrip("s"))
                delay = re.search(r"InhibitDelayMaxSec=(\d+)", config.text("/etc/systemd/logind.conf.d/90-kubelet.conf"))
                self.assertGreater(int(delay.group(1)), grace, "systemd would not wait for the kubelet")


class Exceptions(unittest.TestCase):
    def test_every_exception_is_explained(self):
        decisions = (ROOT / "docs/decisions.md").read_text()
        for check in EXCEPTIONS:
            self.assertRegex(decisions, rf"\b{re.escape(check)}\b", f"CIS {check} is not explained")


if __name__ == "__main__":
    unittest.main()
