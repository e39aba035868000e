"""Rendered Kubernetes texts: schemas, flags that exist, settings that are spelled as their types spell them."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

from golden import CLUSTERS, TOOLS, configs, minor

FLAGS = pathlib.Path(__file__).parent / "flags"
VERSIONS = ["1.35", "1.36"]

# kubelet.config.k8s.io/v1beta1, the keys we use; a misspelt one would be ignored without a word.
KUBELET_KEYS = {
    "apiVersion", "authentication", "authorization", "cgroupDriver", "clusterDNS", "clusterDomain", "containerLogMaxFiles",
    "containerLogMaxSize", "containerRuntimeEndpoint", "enableProfilingHandler", "eventRecordQPS", "evictionHard", "kind",
    "makeIPTablesUtilChains", "maxParallelImagePulls", "podPidsLimit", "protectKernelDefaults", "readOnlyPort", "registerWithTaints",
    "resolvConf", "rotateCertificates", "seccompDefault", "serializeImagePulls", "serverTLSBootstrap", "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods", "staticPodPath", "streamingConnectionIdleTimeout", "systemReserved", "tlsCipherSuites",
    "tlsMinVersion", "volumePluginDir",
}
# Accounts with rights that no worker may have: their tokens are on controllers only.
ON_CONTROLLERS = {
    "cloud-controller-manager", "metrics-server", "cluster-autoscaler", "jobset", "prometheus", "kube-state-metrics",
}
EVICTION_SIGNALS = {"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"}


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def known_flags(component, version):
    return set((FLAGS / f"{component}-{version}.txt").read_text().split())


def flags_of(command):
    return {word.split("=")[0] for word in command if word.startswith("--")}


def static_pods(config):
    for path in sorted(config.files):
        if path.startswith("/opt/infra/static-pods/"):
            yield documents(config.text(path))[0]


class Manifests(unittest.TestCase):
    def validate(self, text, version):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            command = [TOOLS / "venv/bin/kubernetes-validate", "--strict", "-k", version, file.name]
            return subprocess.run(command, capture_output=True, text=True)

    def test_every_manifest_fits_both_versions(self):
        texts = {}
        for path in sorted(CLUSTERS.glob("*/expected/manifests/*.yaml")):
            texts.setdefault(path.read_text(), path)
        for config in configs():
            if config.role == "controller":
                for pod in static_pods(config):
                    texts.setdefault(yaml.safe_dump(pod), config.path)
        self.assertGreater(len(texts), 12)
        for version in VERSIONS:
            # One process for all: starting it costs more than the work.
            run = self.validate("---\n".join(text if text.endswith("\n") else text + "\n" for text in texts), version)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertNotIn("WARN", (run.stdout + run.stderr).upper())

    def test_the_judge_can_refuse(self):
        path = next(CLUSTERS.glob("minimal/expected/manifests/12-coredns.yaml"))
        broken = path.read_text().replace("replicas:", "replica:", 1)
        self.assertNotEqual(broken, path.read_text())
        self.assertNotEqual(self.validate(broken, "1.36").returncode, 0)

    def test_static_pods_use_flags_that_exist(self):
        for config in configs():
            if config.role != "controller":
                continue
            for pod in static_pods(config):
                name = pod["metadata"]["name"]
                used = flags_of(pod["spec"]["containers"][0]["command"])
                self.assertGreater(len(used), 5, name)
                for version in VERSIONS:
                    self.assertEqual(used - known_flags(name, version), set(), f"{config}: {name} {version}")

    def test_kubelet_uses_flags_and_keys_that_exist(self):
        for config in configs():
            if config.kind == "etcd":
                continue
            unit = config.units["kubelet.service"]["contents"]
            command = unit[unit.index("ExecStart=/opt/bin/kubelet"):].split("\nRestart=")[0]
            used = set(re.findall(r"(--[a-z-]+)=", command))
            self.assertIn("--node-ip", used)
            for version in VERSIONS:
                self.assertEqual(used - known_flags("kubelet", version), set(), str(config))
            settings = documents(config.text("/etc/kubernetes/kubelet.yaml"))[0]
            self.assertEqual(set(settings) - KUBELET_KEYS, set(), str(config))
            self.assertEqual(set(settings["evictionHard"]) - EVICTION_SIGNALS, set())

    def test_kubelet_reads_what_the_machine_reserves(self):
        for config in configs():
            if config.kind == "etcd":
                continue
            unit = config.units["kubelet.service"]["contents"]
            [directory] = re.findall(r"--config-dir=(\S+)", unit)
            written = re.findall(r'write_file "\$state/(\S+)/[\w-]+\.conf"', config.text("/opt/infra/bin/node-environment"))
            self.assertEqual([f"/run/infra/{name}" for name in written], [directory], str(config))
            self.assertRegex(unit, r"(?m)^Requires=.*\bnode-environment\.service\b")
            # The flag is deprecated, and would win over the file.
            self.assertNotIn("--kube-reserved", unit)

    def test_kube_proxy_uses_flags_that_exist(self):
        for path in CLUSTERS.glob("*/expected/manifests/10-kube-proxy.yaml"):
            for document in documents(path.read_text()):
                if document["kind"] == "DaemonSet":
                    container = document["spec"]["template"]["spec"]["containers"][0]
                    used = flags_of(container["command"] + container.get("args", []))
                    for version in VERSIONS:
                        self.assertEqual(used - known_flags("kube-proxy", version), set())

    def test_etcd_settings_are_flags_of_the_shipped_version(self):
        known = known_flags("etcd", "3.6")
        for config in configs():
            if config.kind == "etcd":
                names = re.findall(r"^(ETCD_\w+)=", config.text("/etc/etcd/etcd.env"), re.M)
                used = {"--" + name.removeprefix("ETCD_").lower().replace("_", "-") for name in names}
                self.assertEqual(used - known, set(), str(config))

    def test_controllers_carry_exactly_the_manifests_that_are_shown(self):
        for config in configs():
            if config.role == "controller":
                shown = {path.name: path.read_bytes() for path in (config.path.parent.parent / "manifests").glob("*.yaml")}
                prefix = "/etc/kubernetes/addons/"
                carried = {path.removeprefix(prefix): file.contents for path, file in config.files.items() if path.startswith(prefix)}
                self.assertEqual(carried, shown)

    def test_an_api_with_a_server_is_applied_once_the_server_is_ready(self):
        for config in configs():
            if config.role != "controller":
                continue
            script = config.text("/opt/infra/bin/apply-addons")
            [late] = re.findall(r"^metrics_api=\$root(\S+)$", script, re.M)
            [selector] = re.findall(r"--selector=(\S+)", script)
            for path in config.files:
                if path.startswith("/etc/kubernetes/addons/"):
                    found = documents(config.text(path))
                    if any(document["kind"] == "APIService" for document in found):
                        self.assertEqual((path, len(found)), (late, 1), str(config))
            name, value = selector.split("=")
            sets = [document for path in config.files if "metrics-server" in path for document in documents(config.text(path))]
            pods = [document["spec"]["template"] for document in sets if document["kind"] == "DaemonSet"]
            self.assertEqual([pod["metadata"]["labels"].get(name) for pod in pods], [value] * (late in config.files), str(config))

    def test_images_are_pinned_and_come_from_mirrors_where_there_are_any(self):
        for path in CLUSTERS.glob("*/expected/manifests/*.yaml"):
            images = re.findall(r"image: (\S+)", path.read_text())
            for image in images:
                # By digest as well, but for flannel and EFA's device plugin, whose digests are not known.
                digest = "" if "/flannel" in image or "aws-efa-k8s-device-plugin" in image else "@sha256:[0-9a-f]{64}"
                self.assertRegex(image, rf":v?\d+\.\d+[\w.-]*{digest}$", str(path))
                if path.parent.parent.parent.name == "private":
                    self.assertNotIn("registry.k8s.io", image)

    def test_labels_are_such_as_a_kubelet_may_set(self):
        for config in configs():
            if config.kind == "etcd":
                continue
            labels = re.search(r"--node-labels=(\S+)", config.units["kubelet.service"]["contents"]).group(1)
            for label in labels.split(","):
                domain = label.split("=")[0].split("/")[0] if "/" in label.split("=")[0] else ""
                reserved = domain.endswith("kubernetes.io") or domain.endswith("k8s.io")
                self.assertTrue(not reserved or domain in ("node.kubernetes.io", "kubelet.kubernetes.io"), label)

    def test_no_account_is_placed_by_a_label_that_a_kubelet_may_set(self):
        # A worker's kubelet would get the token of whatever it can attract.
        for path in CLUSTERS.glob("*/expected/manifests/*.yaml"):
            for document in documents(path.read_text()):
                if document["kind"] not in ("DaemonSet", "Deployment"):
                    continue
                pod = document["spec"]["template"]["spec"]
                if not pod.get("automountServiceAccountToken", True):
                    continue
                self.assertNotIn("affinity", pod, path)
                chosen = set(pod.get("nodeSelector", {})) - {"kubernetes.io/os"}
                self.assertLessEqual(chosen, {"node-role.kubernetes.io/control-plane"}, path)
                # Where there is no such label, the account is on workers anyway; those with more rights must have it.
                if pod["serviceAccountName"] in ON_CONTROLLERS:
                    self.assertEqual(pod["nodeSelector"].get("node-role.kubernetes.io/control-plane"), "", path)

    def test_who_may_change_nodes_is_on_controllers_or_confined_to_its_own(self):
        for directory in CLUSTERS.glob("*/expected/manifests"):
            every = [document for path in directory.glob("*.yaml") for document in documents(path.read_text())]
            changing = {
                document["metadata"]["name"] for document in every if document["kind"] == "ClusterRole" for rule in document["rules"]
                if {"nodes", "nodes/status"} & set(rule.get("resources", [])) and {"create", "update", "patch", "delete", "*"} & set(rule["verbs"])}
            accounts = {
                f"system:serviceaccount:{subject['namespace']}:{subject['name']}" for document in every
                if document["kind"] == "ClusterRoleBinding" and document["roleRef"]["name"] in changing for subject in document["subjects"]}
            on_controllers = {"system:serviceaccount:kube-system:cluster-autoscaler"}
            self.assertEqual(accounts - on_controllers, {"system:serviceaccount:kube-flannel:flannel"}, directory)
            [policy] = [document for document in every if document["kind"] == "ValidatingAdmissionPolicy"
                        and document["metadata"]["name"] == "infra-flannel"]
            [condition] = policy["spec"]["matchConditions"]
            self.assertEqual(condition["expression"], "request.userInfo.username == 'system:serviceaccount:kube-flannel:flannel'")

    def test_monitoring_is_where_it_was_asked_for_and_opens_nothing_else(self):
        found = {path.parent.parent.parent.name for path in CLUSTERS.glob("*/expected/manifests/55-prometheus.yaml")}
        self.assertEqual(found, {"adopted"})
        for config in configs():
            monitored = config.cluster in found
            if config.kind == "etcd":
                [address] = re.findall(r"^ETCD_LISTEN_METRICS_URLS=(.*)$", config.text("/etc/etcd/etcd.env"), re.M)
                self.assertEqual(address, f"http://{'0.0.0.0' if monitored else '127.0.0.1'}:2381", str(config))
            if config.role == "controller":
                directory = config.directories.get("/var/lib/prometheus")
                self.assertEqual(directory and (oct(directory["mode"]), directory["user"]["id"]),
                                 ("0o700", 65534) if monitored else None, str(config))
        for path in CLUSTERS.glob("*/expected/stacks/network.json"):
            rules = re.findall(r'"FromPort": ?2381', path.read_text())
            self.assertEqual(len(rules), int(path.parent.parent.parent.name in found), path)
        # No key of etcd is in a pod, and what is on the machine's own network listens on 127.0.0.1.
        for name in ("55-prometheus", "57-kube-state-metrics", "58-node-exporter", "59-dcgm-exporter"):
            text = (CLUSTERS / f"adopted/expected/manifests/{name}.yaml").read_text()
            self.assertNotIn("pki", text)
            for document in documents(text):
                if document["kind"] != "DaemonSet":
                    continue
                pod = document["spec"]["template"]["spec"]
                flags = " ".join(pod["containers"][0]["args"])
                if pod.get("hostNetwork"):
                    self.assertRegex(flags, r"--(web\.listen-address|host)=127\.0\.0\.1")
                    self.assertNotRegex(flags, r"0\.0\.0\.0|=:\d")
                # It never displaces a job.
                self.assertNotIn("priorityClassName", pod, name)
                self.assertTrue(pod["containers"][0]["resources"]["limits"]["memory"], name)

    def test_every_admission_policy_is_in_force(self):
        for directory in CLUSTERS.glob("*/expected/manifests"):
            every = [document for path in directory.glob("*.yaml") for document in documents(path.read_text())]
            policies = [document for document in every if document["kind"] == "ValidatingAdmissionPolicy"]
            bound = {document["spec"]["policyName"]: document["spec"]["validationActions"] for document in every
                     if document["kind"] == "ValidatingAdmissionPolicyBinding"}
            self.assertEqual(bound, {policy["metadata"]["name"]: ["Deny"] for policy in policies}, directory)
            self.assertEqual({policy["spec"]["failurePolicy"] for policy in policies}, {"Fail"}, directory)

    def test_nothing_asks_a_webhook(self):
        # An API that waits for a program that does not run is no API.
        for path in CLUSTERS.glob("*/expected/manifests/*.yaml"):
            self.assertNotRegex(path.read_text(), "WebhookConfiguration|strategy: Webhook", path)

    def test_only_pools_are_targets_of_load_balancers(self):
        for config in configs():
            if config.kind == "etcd":
                continue
            labels = re.search(r"--node-labels=(\S+)", config.units["kubelet.service"]["contents"]).group(1).split(",")
            excluded = "node.kubernetes.io/exclude-from-external-load-balancers=true" in labels
            self.assertEqual(excluded, config.kind == "controller", str(config))

    def test_what_breaks_the_bootstrap_circle_tolerates_it(self):
        needed = {
            "kube-proxy": ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane", "node.kubernetes.io/not-ready"],
            "kube-flannel-ds": ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane", "node.kubernetes.io/not-ready"],
            "cloud-controller-manager": ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane", "node.kubernetes.io/not-ready"],
            "coredns": ["node-role.kubernetes.io/control-plane"],
        }
        found = set()
        for path in (CLUSTERS / "minimal/expected/manifests").glob("*.yaml"):
            for document in documents(path.read_text()):
                if document["kind"] not in ("DaemonSet", "Deployment"):
                    continue
                name = next((name for name in needed if name in document["metadata"]["name"] or document["metadata"]["name"] in name), None)
                if name is None:
                    continue
                found.add(name)
                tolerations = document["spec"]["template"]["spec"].get("tolerations", [])
                for key in needed[name]:
                    tolerated = any(t.get("operator") == "Exists" and t.get("key") in (None, key) or t.get("key") == key for t in tolerations)
                    self.assertTrue(tolerated, f"{name} does not tolerate {key}")
        self.assertEqual(found, set(needed))

    def test_versions_go_with_the_minor(self):
        for config in configs():
            if config.role == "controller":
                images = [pod["spec"]["containers"][0]["image"] for pod in static_pods(config)]
                self.assertTrue(all(f":v{minor(config)}." in image for image in images), images)


if __name__ == "__main__":
    unittest.main()
