"""The keys that sign tokens and encrypt Secrets are changed while the cluster runs: no token is refused, no Secret is lost."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import BUCKET, Chapters, InBackground, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402

ROTATE = ["render", "credentials", "--rotate", "service-account", "--rotate", "secrets-encryption"]
RETIRE = ["render", "credentials", "--retire", "service-account", "--retire", "secrets-encryption", "--yes"]
PREFIX = "k8s:enc:secretbox:v1:"
NAMESPACES = ["default", "team-a", "team-b"]
PER_NAMESPACE = 12
# Its token lives for ten minutes, the shortest time that Kubernetes allows, and the kubelet renews it after eight.
CLIENT = """
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  nodeSelector: {infra.internal/pool: cpu}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: %(image)s
    command: [python3, -u, -c, %(program)s]
    volumeMounts: [{name: token, mountPath: /token}]
  volumes:
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 600}}]}
"""
PROGRAM = """
import ssl, time, urllib.error, urllib.request
context = ssl._create_unverified_context()
while True:
    token = open("/token/token").read()
    request = urllib.request.Request("https://10.3.0.1/version", headers={"Authorization": "Bearer " + token})
    try:
        print(urllib.request.urlopen(request, context=context, timeout=5).status)
    except urllib.error.HTTPError as error:
        print(error.code)
    except OSError:
        print("away")
    time.sleep(1)
"""

# The only controller is replaced: there is no answer, then an API server that has accepted the token but not read the rules of RBAC yet.
AWAY = ("000", "503", "403")


def load_tests(_loader, _tests, _pattern):
    return in_order(Rotation)


class Rotation(Chapters):
    text = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + "addons: {clusterAutoscaler: false}\n"

    def step(self, words):
        """One step of the rotation, on its way to the controllers; returns what `up` printed."""
        self.cluster.infra(*words)
        [before] = self.of_role("controller")
        began = time.monotonic()
        with TokenHolder(self) as holder:
            printed = self.cluster.infra("up", "--yes", *BUCKET).stderr
        say(f"{words[2]} and infra up: {time.monotonic() - began:.0f} s, {holder.answers} answers")
        [after] = self.of_role("controller")
        self.assertNotEqual(before.id, after.id, "the controller was replaced")
        self.assertEqual(holder.refusals, [])
        self.assertGreater(holder.answers, 5)
        self.wait_for_all_pods()
        self.assertEqual(self.secrets(), type(self).stored, "every Secret is readable and unchanged")
        return printed

    def secrets(self):
        found = self.get("secrets", "--all-namespaces")["items"]
        return {f"{secret['metadata']['namespace']}/{secret['metadata']['name']}": secret.get("data") for secret in found}

    def prefixes(self):
        """With which keys the Secrets in etcd are encrypted, and how many with each."""
        [member] = self.of_role("etcd-0")
        options = " ".join(f"--{option}=/etc/etcd/pki/{name}.pem" for option, name in
                           {"cacert": "ca", "cert": "member", "key": "member-key"}.items())
        etcdctl = f"docker exec etcd etcdctl --endpoints=https://127.0.0.1:2379 {options}"
        counts = {}
        for key in member.run("sh", "-c", f"{etcdctl} get --prefix --keys-only /registry/secrets/").split():
            value = member.run("sh", "-c", f"{etcdctl} get --print-value-only {key} | head -c {len(PREFIX) + 5}")
            self.assertTrue(value.startswith(PREFIX), f"{key}: {value!r}")
            name = value.removeprefix(PREFIX).split(":")[0]
            counts[name] = counts.get(name, 0) + 1
        return counts

    def ask(self, token):
        """The status of a request with this token, 000 if there is no answer."""
        done = self.cluster.run("curl", "--silent", "--max-time", "5", "--cacert", "credentials/ca.pem", "--output", "/dev/null",
                                "--write-out", "%{http_code}", "--header", f"Authorization: Bearer {token}",
                                f"https://{self.cluster.cluster.facts['externalDNSName']}/version")
        return done.stdout

    def create_client(self, name):
        self.cluster.kubectl("apply", "--filename=-", input=CLIENT % {
            "name": name, "image": JOB_IMAGE, "program": json.dumps(PROGRAM)})
        self.wait_for_pods(name)

    def assert_never_refused(self, client):
        answers = self.cluster.kubectl("logs", client).split()
        self.assertIn("200", answers)
        self.assertEqual(set(answers) - {"200", "away", *AWAY}, set(), answers)

    def published_keys(self):
        return len(json.loads(self.cluster.kubectl("get", "--raw=/openid/v1/jwks"))["keys"])

    def test_there_are_tokens_and_secrets(self):
        objects = []
        for namespace in NAMESPACES:
            objects += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
            objects += [{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": f"number-{number}"},
                         "immutable": number == 0, "stringData": {"text": f"{namespace} {number}"}} for number in range(PER_NAMESPACE)]
        # The old kind of token, which lives until its Secret is deleted.
        objects += [{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                     "metadata": {"name": "for-ever", "annotations": {"kubernetes.io/service-account.name": "default"}}}]
        self.cluster.kubectl("apply", "--filename=-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        self.wait_for("the token", lambda: "token" in (self.get("secret", "for-ever").get("data") or {}))
        type(self).stored = self.secrets()
        self.assertGreater(len(self.stored), len(NAMESPACES) * PER_NAMESPACE)
        type(self).old_token = self.cluster.kubectl("create", "token", "default", "--duration=24h").strip()
        self.assertEqual(self.ask(self.old_token), "200")
        self.assertEqual(self.ask(f"{self.old_token}x"), "401")
        self.assertEqual(self.prefixes(), {"key1": len(self.stored)})
        self.assertEqual(self.published_keys(), 1)
        self.create_client("client")

    def test_step_1_makes_the_new_keys_known(self):
        printed = self.step(ROTATE)
        self.assertIn("rotation of service-account, step 1 of 2 is deployed", printed)
        self.assertEqual(self.prefixes(), {"key1": len(self.stored)})
        self.assertEqual(self.published_keys(), 2)
        self.assert_never_refused("client")

    def test_step_2_uses_them_and_encrypts_every_secret_again(self):
        printed = self.step(ROTATE)
        self.assertIn(f"{len(self.stored)} Secrets are encrypted with the current key", printed)
        self.assertEqual(self.prefixes(), {"key2": len(self.stored)})
        self.assertEqual(self.published_keys(), 2)
        self.assertEqual(self.ask(self.old_token), "200")
        self.assert_never_refused("client")

    def test_the_old_keys_are_dropped(self):
        # As after a leak: an hour is too long to wait, so every pod gets a new token now.
        self.cluster.kubectl("delete", "pods", "--all", "--all-namespaces", "--wait=false")
        self.wait_for("the old pods are gone", lambda: "client" not in self.cluster.kubectl("get", "pods", "--output=name", check=False))
        self.wait_for_all_pods()
        self.create_client("new-client")
        self.step(RETIRE)
        self.assertEqual(self.prefixes(), {"key2": len(self.stored)})
        self.assertEqual(self.published_keys(), 1)
        self.assertEqual(self.ask(self.old_token), "401")
        self.assert_never_refused("new-client")
        [controller] = self.of_role("controller")
        self.assertNotIn("key1", controller.run("cat", "/etc/kubernetes/encryption.yaml"))
        # New Secrets, new tokens, new pods.
        self.cluster.kubectl("create", "secret", "generic", "after", "--from-literal=a=b")
        self.assertEqual(self.prefixes(), {"key2": len(self.stored) + 1})
        self.assertEqual(self.ask(self.cluster.kubectl("create", "token", "default").strip()), "200")
        self.create_client("last-client")
        self.cluster.infra("status")
        [controller] = self.of_role("controller")
        log = [json.loads(line) for line in controller.run("cat", "/var/log/kubernetes/audit.log").splitlines()]
        refused = {event["userAgent"].partition("/")[0] for event in log if event.get("responseStatus", {}).get("code") == 401}
        # A kubelet that starts has no certificate yet, and has never had a token.
        self.assertLessEqual(refused, {"curl", "kubelet"}, "only the old token was refused")

    def test_nothing_is_left_to_do(self):
        self.assertIn("no stack had to change", self.cluster.infra("up", "--yes", *BUCKET).stderr)


class TokenHolder(InBackground):
    """Calls the API with a token from before, and with one that is requested for each call, as long as the block lasts."""

    def __init__(self, life):
        super().__init__(pause=1)
        self.life, self.answers, self.refusals = life, 0, []
        # A token of the last step, so that the new controllers meet it; after the last step only new ones are accepted.
        self.tokens = {"from before": life.cluster.kubectl("create", "token", "default", "--duration=1h").strip()}

    def ask(self):
        if new := self.life.cluster.kubectl("create", "token", "default", "--request-timeout=4s", check=False).strip():
            self.tokens["new"] = new
        for name, token in self.tokens.items():
            status = self.life.ask(token)
            if status == "200":
                self.answers += 1
            elif status not in AWAY:
                self.refusals.append(f"{name}: {status}")


if __name__ == "__main__":
    import unittest

    unittest.main()
