"""The life of a real cluster as chapters that run in their order, and what they ask again and again."""

import atexit
import json
import signal
import sys
import threading
import time
import unittest

from container import wait_for
from images import JOB_IMAGE
from parts import find_parts, why_not
from real_cluster import real_cluster, scratch_directory

BUCKET = ["--s3-uri", "s3://cluster-assets/clusters"]
CONTROLLER, WORKER = 'node-role.kubernetes.io/control-plane: ""', "infra.internal/pool: cpu"
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

IMPOSSIBLE = why_not()
if IMPOSSIBLE:
    print(f"\nNO REAL CLUSTER IS BOOTED: {IMPOSSIBLE}\n", file=sys.stderr)


def in_order(case):
    """The chapters of a life, in the order in which they are written."""
    return unittest.TestSuite(case(name) for name in vars(case) if name.startswith("test_"))


def say(text):
    print(text, file=sys.stderr, flush=True)


def enter_scratch(case, part=""):
    """A directory for the files of a test case. What the case enters ends with it, however it ends."""
    # An interrupted unittest does not clean up, and one that is told to end does nothing at all. An exit would end one chapter only.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    scratch = case.enterClassContext(scratch_directory(part))
    # After the directory, which would otherwise be deleted at the exit while machines still have it mounted.
    atexit.register(case.doClassCleanups)
    return scratch


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class Chapters(unittest.TestCase):
    # The cluster.yaml.
    text = None
    # Minor versions of Kubernetes that its machines run.
    minors = ["1.36"]
    # What its machines get images of beside those of every cluster, by its name in images.OPTIONAL.
    more_images = None

    @classmethod
    def setUpClass(cls):
        scratch = enter_scratch(cls)
        parts = find_parts(cls.minors, scratch, cls.more_images)
        cls.fill_file_system(parts.shared)
        cls.cluster = cls.enterClassContext(real_cluster(scratch, cls.text, parts))
        cls.cluster.infra("render", "--generate-ca")
        began = time.monotonic()
        cls.cluster.infra("up", "--yes", *BUCKET, "--create-bucket")
        say(f"\ninfra up: {time.monotonic() - began:.0f} s")

    @classmethod
    def fill_file_system(cls, directory):
        """Puts what machines need there from their first moment into what stands for the file system."""

    def change(self, old, new):
        """cluster.yaml, and what is rendered from it."""
        path = self.cluster.directory / "cluster.yaml"
        text = path.read_text()
        self.assertEqual(text.count(old), 1, old)
        path.write_text(text.replace(old, new))
        self.cluster.infra("render")

    def of_role(self, role):
        return self.cluster.room.of_role(role)

    def get(self, *words):
        return json.loads(self.cluster.kubectl("get", *words, "--output=json"))

    def pods(self):
        return self.get("pods", "--all-namespaces")["items"]

    def nodes(self):
        """Whether each is Ready."""
        return {node["metadata"]["name"]: {entry["type"]: entry["status"] for entry in node["status"]["conditions"]}["Ready"]
                for node in self.get("nodes")["items"]}

    def all_nodes_are_ready(self, count, without=None):
        """Whether there are that many nodes, all of them Ready, and none of a machine that was lost."""
        try:
            nodes = self.nodes()
        except AssertionError:
            # The API may be away for a moment.
            return False
        return list(nodes.values()) == ["True"] * count and not (without and without.facts["name"] in nodes)

    def wait_for(self, what, look, seconds=180):
        """What `look` gives. Fails at once if a machine cannot boot."""
        def look_again():
            self.assertEqual(self.cluster.failures(), [])
            return look()

        return wait_for(what, look_again, seconds)

    def wait_for_all_pods(self, seconds=300):
        def waiting():
            return [pod["metadata"]["name"] for pod in self.pods() if not is_ready(pod)]

        try:
            self.wait_for("every pod is ready", lambda: not waiting(), seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; not ready: {waiting()}\n{self.cluster.kubectl('get', 'pods', '-A', '-o', 'wide')}") from None

    def create_pod(self, name, selector, command, app="check"):
        self.cluster.kubectl("apply", "--filename=-", input=POD % {
            "name": name, "app": app, "selector": selector, "command": command, "image": JOB_IMAGE})
        self.addCleanup(self.cluster.kubectl, "delete", "pod", name, "--wait=false", check=False)

    def wait_for_pods(self, *names):
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=120s", *(f"pod/{name}" for name in names), timeout=150)

    def execute(self, pod, *words, check=True):
        return self.cluster.kubectl("exec", pod, "--", *words, check=check)


class InBackground:
    """Calls `ask` every `pause` seconds as long as the block lasts."""

    def __init__(self, pause):
        self.pause, self.stopping = pause, threading.Event()
        self.thread = threading.Thread(target=self.ask_again_and_again)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def ask_again_and_again(self):
        while not self.stopping.wait(self.pause):
            self.ask()


class Questions(InBackground):
    """Asks the API as an impatient user would; `longest` is the longest time without an answer."""

    def __init__(self, cluster):
        super().__init__(pause=0.5)
        self.cluster, self.longest, self.answered = cluster, 0.0, None

    def __enter__(self):
        self.answered = time.monotonic()
        return super().__enter__()

    def __exit__(self, *failure):
        super().__exit__(*failure)
        # A silence may last until now.
        self.longest = max(self.longest, time.monotonic() - self.answered)

    def ask(self):
        done = self.cluster.kubectl("get", "--raw=/readyz", "--request-timeout=4s", check=False)
        now = time.monotonic()
        if done == "ok":
            self.longest = max(self.longest, now - self.answered)
            self.answered = now


def is_ready(pod):
    if pod["status"]["phase"] == "Succeeded":
        return True
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", []))
