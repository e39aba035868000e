"""Two teams and a user of one: what that user can do with a kubeconfig alone, what is refused and in which words, and that no secret is seen.

The user is another account of this machine, which cannot read the asset directory. Every command is run with `-vv`, and everything that any
of them prints is searched for the values of secrets at the end, as are logs, process lists and files.
"""

import base64
import hashlib
import json
import pathlib
import secrets
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from offences import SIMPLE_JOB, TEAM, OffenceChecks  # noqa: E402
from team_user import PYTHON, TeamUser  # noqa: E402

OTHER_TEAM, USER = "speech", "ada"
JOB = f"""
name: train
framework: program
image: {JOB_IMAGE}
replicas: 2
cpu: 100m
memory: 256Mi
sharedMemory: 64Mi
retries: 0
deadline: 1h
code: src
command: [python3, train.py]
secrets: [tokens]
imagePullSecrets: [registry]
tensorboard: {{image: {JOB_IMAGE}, cpu: 100m, memory: 256Mi}}
"""
# Proves that it has the values, and says none.
PROGRAM = """
import hashlib, os, pathlib, time
names = ("TYPED", "FROM_FILE", "FROM_INPUT")
print("digest", hashlib.sha256(" ".join(os.environ[name] for name in names).encode()).hexdigest(), flush=True)
output, number = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"]), os.environ["JOB_COMPLETION_INDEX"]
while not (output / "finish").exists():
    time.sleep(0.2)
(output / f"model.{number}").write_text(f"weights of {number}")
"""
# In the place of TensorBoard, which the image does not have.
BOARD = 'cd "$INFRA_RUNS_DIR"\nexec python3 -m http.server 6006\n'
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"
AUDIT_LOG = "/var/log/kubernetes/audit.log"


def load_tests(_loader, _tests, _pattern):
    return in_order(Teams)


class Teams(OffenceChecks, Chapters):
    text = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text() + "storage: {efs: {}}\naddons: {clusterAutoscaler: false}\n"
    # In the order of the program's digest; the last is the password of a registry.
    values = {name: f"hidden-{name.lower()}-{secrets.token_hex(12)}" for name in ("TYPED", "FROM_FILE", "FROM_INPUT", "PASSWORD")}
    # What the administrator's commands print.
    printed = []

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.user = TeamUser(cls.cluster)
        cls.addClassCleanup(cls.user.close)

    def administrator(self, *words, expected=(0,)):
        done = self.cluster.infra(*words, expected=expected)
        self.printed += [done.stdout, done.stderr]
        return done

    # --- What the user can do ---

    def test_a_team_and_its_user(self):
        began = time.monotonic()
        self.assertIn(f"/teams/{TEAM} of the file system", self.administrator("team", "add", TEAM, "--gpus", "2").stderr)
        say(f"infra team add: {time.monotonic() - began:.0f} s")
        self.administrator("team", "add", OTHER_TEAM)
        self.administrator("user", "add", USER, "--team", TEAM, "--valid", "90d")
        kubeconfig = self.cluster.directory / f"credentials/users/{TEAM}-{USER}.kubeconfig"
        self.assertEqual(kubeconfig.stat().st_mode & 0o777, 0o600)
        self.user.take_kubeconfig(kubeconfig)
        self.assertRegex(self.administrator("team", "list").stdout, rf"{TEAM} +0/2 +0 +{USER}\n")
        self.assertRegex(self.administrator("user", "list").stdout, rf"{TEAM} +{USER} +\S+ +{USER}:")
        for path in ("credentials/admin-key.pem", "credentials/ca-key.pem", "kubeconfig"):
            self.assertIn("Permission denied", self.user.run("cat", self.cluster.directory / path).stderr)

    def test_secrets(self):
        values = self.values
        code, shown = self.user.answer("-vv", "secret", "set", "tokens", "TYPED", question="(not shown):", answer=values["TYPED"])
        self.assertEqual(code, 0, shown)
        source = self.user.write("token.txt", values["FROM_FILE"] + "\n")
        self.user.infra("secret", "set", "tokens", "FROM_FILE=@token.txt")
        source.unlink()
        self.assert_in_no_process_list()
        self.user.infra("secret", "set", "registry", "--registry", "registry.example.com", "--username", USER, "password=-",
                        input=values["PASSWORD"])
        listed = self.user.infra("secret", "list").stdout
        self.assertRegex(listed, r"tokens +\S+ +FROM_FILE, FROM_INPUT, TYPED")
        self.user.infra("secret", "set", "spare", "KEY=-", input=values["FROM_INPUT"])
        self.user.infra("secret", "delete", "spare", "--yes")
        self.assertNotIn("spare", self.user.infra("secret", "list").stdout)
        refused = self.user.infra("secret", "set", "tokens", f"OTHER={values['PASSWORD'][:9]}", expected=2)
        self.assertIn("the value of OTHER is on the command line", refused.stderr)

    def assert_in_no_process_list(self):
        """While `secret set` has the value and waits for the end of its input."""
        process = self.user.start("-vv", "secret", "set", "tokens", "FROM_INPUT=-", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        process.stdin.write(self.values["FROM_INPUT"])
        process.stdin.flush()
        time.sleep(1)
        self.assertIsNone(process.poll())
        seen = self.processes_that_show_secrets()
        printed, _ = process.communicate(timeout=60)
        self.user.printed.append(printed)
        self.assertEqual((process.returncode, seen), (0, []), printed)

    def processes_that_show_secrets(self):
        """Of this machine, so also of all machines of the cluster."""
        words = [value.encode() for value in self.values.values()]
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            found += [content for word in words if word in content]
        return found

    def test_files(self):
        user = self.user
        user.write("images/a.txt", "a")
        user.write("images/deep/b.txt", "b")
        began = time.monotonic()
        user.infra("data", "put", "images", "import")
        say(f"infra data put of a user: {time.monotonic() - began:.1f} s")
        # Of the whole file system that is another directory.
        self.assertEqual((self.cluster.parts.shared / f"teams/{TEAM}/import/images/deep/b.txt").read_text(), "b")
        self.assertIn("images", user.infra("data", "ls", "import").stdout)
        user.infra("data", "get", "import/images", "back")
        self.assertEqual((user.directory / "back/images/deep/b.txt").read_text(), "b")
        user.infra("data", "rm", "import", "--yes")
        self.assertNotIn("import", user.infra("data", "ls").stdout)
        outside = user.infra("data", "get", f"../{OTHER_TEAM}", "back", expected=2)
        self.assertIn("..", outside.stderr)

    def test_a_job(self):
        user = self.user
        user.write("job.yaml", JOB)
        user.write("src/train.py", PROGRAM)
        user.write("templates/jobs/tensorboard.sh", BOARD)
        rendered = user.infra("job", "render").stdout
        self.assertIn("kind: JobSet", rendered)
        user.infra("job", "lint")
        planned = user.infra("job", "submit", "--dry-run")
        self.assertIn(f"{TEAM}/train: submit would create a new run", planned.stdout)
        # Pods of others are not seen.
        self.assertIn("at most 2 of 2", planned.stdout)
        began = time.monotonic()
        submitted = user.infra("job", "submit", "--run", "first", "--detach")
        self.assertIn("code: 1 file", submitted.stderr)
        self.wait_for("both replicas run", lambda: user.infra("job", "status").stdout.count("Running") == 2)
        say(f"a user's job runs: {time.monotonic() - began:.0f} s")

    def test_what_is_seen_of_a_job(self):
        user = self.user
        digest = hashlib.sha256(" ".join(self.values[name] for name in ("TYPED", "FROM_FILE", "FROM_INPUT")).encode()).hexdigest()
        logs = user.infra("job", "logs", "--all", verbose=False).stdout
        for number in range(2):
            self.assertIn(f"worker-{number} │ digest {digest}", logs)
        self.assertIn("running", user.infra("job", "why").stdout)
        self.assertRegex(user.infra("job", "runs").stdout, "first +running")
        self.assertRegex(user.infra("job", "list").stdout, rf"{TEAM} +train +program +running")
        shell = user.infra("job", "shell", "1", "--", "sh", "-c", "pwd; exit 7", expected=7, verbose=False)
        self.assertEqual(shell.stdout, "/mnt/code\n")
        self.assertEqual(self.processes_that_show_secrets(), [])

    def test_the_tensorboard(self):
        process = self.user.start("job", "tensorboard", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()
        self.assertIn("first/", self.user.run(PYTHON, "-c", FETCH, address).stdout)
        self.end_with_interrupt(process)

    def end_with_interrupt(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)

    def test_results(self):
        user = self.user
        user.write("finish", "")
        user.infra("data", "put", "finish", "train/runs/first/output")
        # Attaches, and ends with the job.
        self.assertEqual(user.infra("job", "submit", "--run", "first").stdout.count("Succeeded"), 2)
        user.infra("job", "fetch")
        self.assertEqual((user.directory / "results/train/model.1").read_text(), "weights of 1")
        self.assertIn("digest", user.infra("job", "logs", "--attempt", "0").stdout)
        self.assertRegex(user.infra("job", "runs").stdout, "first +complete")
        user.infra("job", "delete", "--yes")
        self.assertRegex(user.infra("job", "runs").stdout, "first +complete")

    # --- What is refused ---

    def test_nothing_can_be_done_elsewhere(self):
        user = self.user
        user.write("token.txt", "anything")
        for namespace in ("default", OTHER_TEAM, "kube-system"):
            user.write("elsewhere.yaml", SIMPLE_JOB % {"name": "train", "namespace": f"namespace: {namespace}\n"})
            there = ["--namespace", namespace]
            for words in (
                ["data", "put", "src", "import", *there], ["data", "get", "import", "back", *there], ["data", "ls", *there],
                ["data", "rm", "import", "--yes", *there],
                ["secret", "set", "tokens", "KEY=@token.txt", *there], ["secret", "list", *there],
                ["secret", "delete", "tokens", "--yes", *there],
                ["job", "submit", "--file", "elsewhere.yaml"], ["job", "submit", "--file", "elsewhere.yaml", "--dry-run"],
                ["job", "lint", "--online", "--file", "elsewhere.yaml"],
                *(["job", *command, *there] for command in (
                    ["status", "train"], ["logs", "train", "--all"], ["logs", "train", "--attempt", "0"], ["why", "train"],
                    ["shell", "train"], ["tensorboard", "train"], ["runs", "train"], ["fetch", "train", "--to", "elsewhere"],
                    ["fetch", "train", "--run", "first", "--to", "elsewhere"], ["delete", "train", "--yes"], ["list"])),
            ):
                with self.subTest(command=" ".join(words)):
                    self.assert_refused(user.infra(*words, expected=1, verbose=False), namespace)
        for words in ["team", "list"], ["team", "add", "mine"], ["user", "add", "eve", "--team", TEAM], ["status"]:
            with self.subTest(command=" ".join(words)):
                self.assertIn("cluster.yaml does not exist", user.infra(*words, expected=2, verbose=False).stderr)

    def assert_refused(self, done, namespace):
        """In a line that says who may not do what and where, and one that says what to do."""
        self.assertRegex(done.stderr, rf"error: .*user '{USER}:\S+' may not \w+ \S+ in namespace {namespace} \(403 Forbidden\)\n")
        self.assertIn("help: ", done.stderr)
        for part in ("is forbidden", '"kind"', "panicked"):
            self.assertNotIn(part, done.stdout + done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 8, done.stderr)

    def test_rights_cannot_be_extended(self):
        allowed = ["get nodes", "create jobsets.jobset.x-k8s.io", "create pods/exec", "get secrets"]
        refused = [
            "create rolebindings", "create roles", "bind clusterroles", "escalate roles", "impersonate users", "create serviceaccounts",
            "create serviceaccounts/token", "patch namespaces", "create persistentvolumes", "create persistentvolumeclaims",
            "patch resourcequotas", "create pods/ephemeralcontainers", "create nodes/proxy", "get nodes/proxy", "patch nodes", "create pods/binding",
            "approve certificatesigningrequests", "create certificatesigningrequests", "delete validatingadmissionpolicies", "create daemonsets",
            "get secrets --namespace=default", "create pods --namespace=default", f"get secrets --namespace={OTHER_TEAM}", "list secrets --all-namespaces",
            "list pods --all-namespaces",
        ]
        for right in allowed + refused:
            with self.subTest(right=right):
                verb, resource, *more = right.split()
                resource, _, part = resource.partition("/")
                answer = self.user.kubectl("auth", "can-i", verb, resource, *more, *([f"--subresource={part}"] if part else []))
                self.assertEqual(answer.stdout.strip(), "yes" if right in allowed else "no")

    def test_pods_with_power_over_machines_are_refused(self):
        self.check_offences()

    def test_a_job_over_the_quota_is_refused(self):
        self.user.write("job.yaml", SIMPLE_JOB % {"name": "greedy", "namespace": ""} + "gpus: 3\n")
        planned = self.user.infra("job", "submit", "--dry-run", expected=1)
        self.assertIn(f"the job needs 3 GPUs, and the quota 'team' of namespace {TEAM} allows 2", planned.stdout)

    # --- Afterwards ---

    def test_no_secret_was_seen(self):
        words = [form for value in self.values.values() for form in forms_of(value)]
        printed = "\n".join(self.user.printed + self.printed)
        self.assertEqual([word for word in words if word in printed], [])
        self.assertGreater(len(printed), 50_000)
        patterns = "\n".join(words)
        places = [self.cluster.directory, self.user.home, self.cluster.parts.shared]
        for machine in self.cluster.room.machines.values():
            journal = machine.run("journalctl", "--quiet", "--no-pager")
            self.assertEqual([word for word in words if word in journal], [], machine.role)
            places += [path for path in (machine.root / "var/log", machine.root / "etc", machine.root / "opt") if path.exists()]
            if machine.role.startswith("etcd"):
                # Where the Secret itself is, encrypted.
                places.append(pathlib.Path(f"/proc/{machine.leader}/root/var/lib/etcd"))
        found = subprocess.run(["grep", "--recursive", "--text", "--files-with-matches", "--fixed-strings", "--file=-", *map(str, places)],
                               input=patterns, capture_output=True, text=True)
        self.assertEqual((found.stdout, found.stderr), ("", ""))
        [controller] = self.of_role("controller")
        events = [json.loads(line) for line in controller.run("cat", AUDIT_LOG).splitlines()]
        seen = [event for event in events if event["user"].get("username", "").startswith(f"{USER}:")]
        writes = [event for event in seen if event["objectRef"].get("resource") == "secrets" and event["verb"] in ("create", "patch", "update")]
        self.assertGreaterEqual(len(writes), 4)
        say(f"  searched: {len(printed)} characters of output, {len(places)} directories, {len(events)} lines of the audit log")

    def test_a_removed_user_is_out_at_once(self):
        user = self.user
        user.write("job.yaml", SIMPLE_JOB % {"name": "last", "namespace": ""})
        user.infra("job", "submit", "--detach")
        self.wait_for("it runs", lambda: "Running" in user.infra("job", "status").stdout)
        session = user.start("job", "shell", "--", "sh", "-c", "while sleep 0.5; do echo tick; done", stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
        self.addCleanup(session.wait)
        self.addCleanup(session.kill)
        self.assertEqual(session.stdout.readline(), "tick\n")
        kept = (user.home / "kubeconfig").read_bytes()
        removed = self.administrator("user", "remove", USER, "--team", TEAM, "--yes")
        self.assertIn("has no rights", removed.stderr)
        began = time.monotonic()
        self.assert_refused(user.infra("job", "status", "last", expected=1, verbose=False), TEAM)
        say(f"  refused {time.monotonic() - began:.1f} s after the removal")
        # Files are reached from machines, which the user may not even see.
        self.assertRegex(user.infra("data", "ls", expected=1, verbose=False).stderr, "may not list nodes in the whole cluster .403 Forbidden.\nhelp: ")
        for words in (["job", "list"], ["secret", "list"], ["job", "shell", "last", "--", "true"], ["job", "logs", "last"],
                      ["job", "delete", "last", "--yes"]):
            with self.subTest(command=" ".join(words)):
                self.assert_refused(user.infra(*words, expected=1, verbose=False), TEAM)
        time.sleep(2)
        say(f"  a shell that was open before is {'still open' if session.poll() is None else 'closed'}")
        self.administrator("user", "add", USER, "--team", TEAM)
        self.assertEqual((user.home / "kubeconfig").read_bytes(), kept)
        self.assert_refused(user.infra("job", "status", "last", expected=1, verbose=False), TEAM)
        user.take_kubeconfig(self.cluster.directory / f"credentials/users/{TEAM}-{USER}.kubeconfig")
        self.assertIn("Running", user.infra("job", "status", "last").stdout)

    def test_the_team_ends(self):
        refused = self.administrator("team", "remove", TEAM, "--yes", expected=(1,))
        self.assertIn("--delete-jobs", refused.stderr)
        began = time.monotonic()
        self.administrator("team", "remove", TEAM, "--yes", "--delete-jobs", "--keep-files")
        say(f"infra team remove: {time.monotonic() - began:.0f} s")
        self.assert_refused(self.user.infra("job", "list", expected=1, verbose=False), TEAM)
        self.assertTrue((self.cluster.parts.shared / f"teams/{TEAM}/train").exists())
        self.administrator("destroy", "--yes")
        self.assertEqual(self.cluster.account.left(), [])


def forms_of(value):
    """A text as it is, and as it would look inside of something that is encoded as base64, wherever it begins there."""
    encoded = [base64.b64encode(bytes(offset) + value.encode()).decode()[4:-4] for offset in range(3)]
    return [value, *encoded]
