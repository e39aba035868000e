"""The add-on JobSet: what it may do, where it listens, and the certificate that it does not start without."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import yaml

from golden import CLUSTERS, configs

EXPECTED = CLUSTERS / "minimal/expected"
UNIT = "jobset-certificate.service"


def objects():
    """Those of both manifests, by kind; each kind that is asked for here occurs once, but for ClusterRoles."""
    texts = [(EXPECTED / f"manifests/{name}.yaml").read_text() for name in ("53-jobset-api", "54-jobset")]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def one(kind, name=None):
    [found] = [document for document in objects() if document["kind"] == kind and name in (None, document["metadata"]["name"])]
    return found


def rights(role):
    """Each verb with its resource, as in `create leases.coordination.k8s.io`, and the names where the rule has some."""
    return {
        f"{verb} {resource}{'.' + group if group else ''}{' ' + ','.join(rule['resourceNames']) if 'resourceNames' in rule else ''}"
        for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def defaults(schema, path=""):
    if "default" in schema:
        yield path, schema["default"]
    for name, part in schema.get("properties", {}).items():
        yield from defaults(part, f"{path}.{name}")
    if "items" in schema:
        yield from defaults(schema["items"], f"{path}[]")


class JobSet(unittest.TestCase):
    maxDiff = None

    def test_it_may_do_what_it_does_and_no_more(self):
        self.assertEqual(rights(one("ClusterRole", "infra:jobset")), {
            "list jobsets.jobset.x-k8s.io", "watch jobsets.jobset.x-k8s.io", "delete jobsets.jobset.x-k8s.io",
            "update jobsets/status.jobset.x-k8s.io",
            "list jobs.batch", "watch jobs.batch", "create jobs.batch", "update jobs.batch", "delete jobs.batch", "update jobs/status.batch",
            "list services", "watch services", "create services", "list pods", "watch pods",
            "create events.events.k8s.io", "patch events.events.k8s.io"})
        self.assertEqual(rights(one("Role")), {
            "create leases.coordination.k8s.io", "get leases.coordination.k8s.io jobset", "update leases.coordination.k8s.io jobset",
            "create events"})
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            binding = one(kind)
            self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": "jobset", "namespace": "kube-system"}])
            self.assertEqual(binding["roleRef"]["name"], "infra:jobset")

    def test_whoever_may_view_or_edit_may_do_so_with_jobsets(self):
        def labels(role):
            return {key.removeprefix("rbac.authorization.k8s.io/aggregate-to-") for key in role["metadata"]["labels"]}

        viewer, editor = one("ClusterRole", "infra:jobset-viewer"), one("ClusterRole", "infra:jobset-editor")
        self.assertEqual((labels(viewer), labels(editor)), ({"view"}, {"edit", "admin"}))
        self.assertEqual({right.split()[0] for right in rights(viewer)}, {"get", "list", "watch"})
        # Who changes a status could have restarts that do not count.
        self.assertEqual({right for right in rights(editor) if "/status" in right}, {"get jobsets/status.jobset.x-k8s.io"})
        self.assertLessEqual({"create", "delete", "patch", "update"}, {right.split()[0] for right in rights(editor)})

    def test_it_listens_on_the_machine_itself_only(self):
        settings = yaml.safe_load(one("ConfigMap")["data"]["configuration.yaml"])
        self.assertEqual(settings["metrics"]["bindAddress"], "0")
        self.assertRegex(settings["health"]["healthProbeBindAddress"], r"^127\.0\.0\.1:")
        self.assertEqual(settings["webhook"]["host"], "127.0.0.1")
        [container] = one("DaemonSet")["spec"]["template"]["spec"]["containers"]
        probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
        health = settings["health"]["healthProbeBindAddress"]
        self.assertEqual({f"{probe['host']}:{probe['port']}" for probe in probes}, {health})

    def test_the_lease_is_the_one_that_it_may_change(self):
        election = yaml.safe_load(one("ConfigMap")["data"]["configuration.yaml"])["leaderElection"]
        self.assertTrue(election["leaderElect"])
        self.assertEqual((election["resourceNamespace"], election["resourceName"]), (one("Role")["metadata"]["namespace"], "jobset"))

    def test_what_the_controller_relies_on_has_a_default(self):
        [version] = one("CustomResourceDefinition")["spec"]["versions"]
        self.assertEqual(version["subresources"], {"status": {}})
        self.assertEqual(dict(defaults(version["schema"]["openAPIV3Schema"])), {
            ".spec.network": {}, ".spec.network.enableDNSHostnames": True, ".spec.network.publishNotReadyAddresses": True,
            ".spec.successPolicy": {}, ".spec.successPolicy.operator": "All",
            ".spec.startupPolicy": {}, ".spec.startupPolicy.startupPolicyOrder": "AnyOrder",
            ".spec.failurePolicy.restartStrategy": "Recreate",
            ".spec.coordinator.jobIndex": 0, ".spec.coordinator.podIndex": 0,
            ".spec.replicatedJobs[].groupName": "default", ".spec.replicatedJobs[].replicas": 1,
            ".spec.replicatedJobs[].template.spec.completionMode": "Indexed",
            ".spec.replicatedJobs[].template.spec.template.spec.restartPolicy": "OnFailure"})

    def test_its_api_is_applied_before_it(self):
        names = sorted(path.name for path in EXPECTED.glob("manifests/*jobset*"))
        kinds = [{document["kind"] for document in yaml.safe_load_all((EXPECTED / "manifests" / name).read_text())} for name in names]
        self.assertEqual([("CustomResourceDefinition" in found, "DaemonSet" in found) for found in kinds], [(True, False), (False, True)])

    def test_every_refusal_is_explained(self):
        for validation in one("ValidatingAdmissionPolicy")["spec"]["validations"]:
            self.assertNotIn("\n", validation["message"])
            self.assertGreater(len(validation["message"].split()), 5)


class Certificate(unittest.TestCase):
    """What jobset-certificate.service creates is what the pod mounts and may read."""

    def setUp(self):
        [config] = [config for config in configs() if str(config) == "minimal/controller"]
        unit = config.units[UNIT]
        self.assertTrue(unit["enabled"])
        text = unit["contents"].replace("\\\n", " ")
        self.settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
        self.pod = one("DaemonSet")["spec"]["template"]["spec"]

    def directory(self):
        [volume] = [volume for volume in self.pod["volumes"] if volume["name"] == "certificate"]
        return volume["hostPath"]["path"]

    def test_it_is_there_before_the_kubelet_and_belongs_to_the_user_of_the_pod(self):
        self.assertEqual(self.settings["Before"], "kubelet.service")
        self.assertEqual(self.settings["ExecStartPre"], f"/usr/bin/mkdir -p -m 0700 {self.directory()}")
        user = self.pod["securityContext"]
        owner = f"{user['runAsUser']}:{user['runAsGroup']}"
        self.assertEqual(self.settings["ExecStartPost"], f"/usr/bin/chown -R {owner} {self.directory()}")
        # systemd starts nothing as a user that the machine does not know.
        self.assertNotIn("User", self.settings)

    def test_the_program_finds_it(self):
        [container] = self.pod["containers"]
        [mounted] = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "certificate"]
        settings = yaml.safe_load(one("ConfigMap")["data"]["configuration.yaml"])
        self.assertEqual(settings["webhook"]["certDir"], mounted)
        # With its own management of certificates it would wait for a Secret and for webhooks.
        self.assertEqual(settings["internalCertManagement"], {"enable": False})

    def test_the_command_makes_a_key_and_its_certificate_without_any_configuration(self):
        with tempfile.TemporaryDirectory() as scratch:
            command = shlex.split(self.settings["ExecStart"].replace(self.directory(), scratch))
            run = subprocess.run(command, capture_output=True, text=True, env={"OPENSSL_CONF": "/nonexistent"})
            self.assertEqual(run.returncode, 0, run.stderr)
            key, certificate = (pathlib.Path(scratch) / name for name in ("tls.key", "tls.crt"))
            self.assertEqual(sorted(os.listdir(scratch)), ["tls.crt", "tls.key"])
            self.assertEqual(key.stat().st_mode & 0o077, 0)

            def openssl(*words):
                return subprocess.run(["openssl", *words], capture_output=True, text=True, check=True).stdout

            self.assertEqual(openssl("pkey", "-in", key, "-pubout"), openssl("x509", "-in", certificate, "-noout", "-pubkey"))
            self.assertIn("OK", openssl("verify", "-CAfile", certificate, certificate))
            self.assertIn("IP Address:127.0.0.1", openssl("x509", "-in", certificate, "-noout", "-ext", "subjectAltName"))

    def test_no_key_is_in_a_manifest(self):
        for path in CLUSTERS.glob("*/expected/manifests/*.yaml"):
            text = path.read_text()
            self.assertNotIn("PRIVATE KEY", text, path)
            self.assertNotRegex(text, "(?m)^kind: Secret$", path)


if __name__ == "__main__":
    unittest.main()
