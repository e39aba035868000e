"""Who gets a certificate of a node: real requests, written by openssl, before the script that approves them, and EC2's answers."""

import base64
import datetime
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from ec2_resources import Instance  # noqa: E402
from node_case import Node  # noqa: E402

DOMAIN = "us-west-2.compute.internal"
CONTROLLER, WORKER, OTHER = f"ip-10-0-0-10.{DOMAIN}", f"ip-10-0-0-20.{DOMAIN}", f"ip-10-0-0-30.{DOMAIN}"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
POOL = ("kubelet-bootstrap", ["system:bootstrappers", "system:authenticated"])
CONTROLLERS = ("controller-bootstrap", ["infra:controller-bootstrappers", "system:authenticated"])
USAGES = {CLIENT: ["digital signature", "client auth"], SERVING: ["digital signature", "server auth"]}
# In the place of kubectl and the API server: objects in a file, printed as the templates of the script ask for.
KUBECTL = """
import json, sys
path, words = sys.argv[1], sys.argv[2:]
state = json.load(open(path))
words = words[words.index("--cache-dir") + 2:]
if state["down"]:
    sys.exit("The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?")
if words[:2] == ["get", "certificatesigningrequests"]:
    assert words[-1].startswith("go-template={{range .items}}"), words
    for name, request in state["requests"].items():
        fields = [name, request["created"], request["signer"], json.dumps(request["user"]), "".join(f"{json.dumps(group)}," for group in request["groups"]),
                  "".join(f"{usage}," for usage in request["usages"]), "".join(f"{word}," for word in request["status"]), request["request"]]
        print("\\x1f".join(fields))
elif words[:3] == ["get", "nodes", "--ignore-not-found"]:
    for name in words[3:-2]:
        if name in state["nodes"]:
            print("\\x1f".join([name, *state["nodes"][name]]))
elif words[0] == "certificate":
    for name in words[2:]:
        request = state["requests"][name]
        request["status"] = {"approve": ["Approved", "Issued"], "deny": ["Denied"]}[words[1]]
        state["decisions"].append([words[1], name])
    json.dump(state, open(path, "w"))
else:
    sys.exit(f"unexpected: {words}")
"""


def moment(minutes=0):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


class ApproveNodes(Node):
    @classmethod
    def setUpClass(cls):
        cls.key = subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                                 check=True, capture_output=True, text=True).stdout

    def setUp(self):
        super().setUp()
        self.write("run/infra/node.env", f"NODE_NAME={CONTROLLER}\nNODE_IP=10.0.0.10\n")
        self.write("key.pem", self.key)
        self.path = self.write("state.json", "")
        program = self.write("kubectl.py", KUBECTL)
        self.stub("kubectl", f'exec {sys.executable} {program} {self.path} "$@"', folder=self.root / "opt/bin")
        self.state = {"requests": {}, "nodes": {}, "decisions": [], "down": False}
        launched = moment(-3)[:-1] + ".000Z"
        self.aws.instances = [
            Instance("i-0c", "10.0.0.10", role="controller", launched=launched),
            Instance("i-0w", "10.0.0.20", launched=launched, public="54.1.2.3"),
            Instance("i-0o", "10.0.0.30", role="pool-gpu", launched=launched),
        ]

    def request(self, subject=None, names=(), attributes=()):
        """A request in PEM, as base64."""
        subject = subject or f"/O=system:nodes/CN=system:node:{WORKER}"
        words = ["openssl", "req", "-new", "-key", self.root / "key.pem", "-utf8", "-config", "/dev/stdin"]
        parts = [part.partition("=") for part in subject.removeprefix("/").split("/")]
        sections = "[req]\ndistinguished_name = subject\nprompt = no\nattributes = attributes\n[attributes]\n" + "\n".join(attributes)
        sections += "\n[subject]\n" + "\n".join(f"{number}.{key} = {value}" for number, (key, _, value) in enumerate(parts)) + "\n"
        if names:
            words += ["-addext", "subjectAltName=" + (names if isinstance(names, str) else ",".join(names))]
        made = subprocess.run(words, input=sections, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return base64.b64encode(made.stdout.encode()).decode()

    def add(self, name, asked_by, request, signer=CLIENT, usages=None, created=None, status=()):
        user, groups = asked_by
        self.state["requests"][name] = {
            "created": created or moment(), "signer": signer, "user": user, "groups": groups,
            "usages": USAGES[signer] if usages is None else usages, "status": list(status), "request": request}

    def decide(self, rounds=1, **environment):
        """What was decided, by request, and what was said."""
        self.path.write_text(json.dumps(self.state))
        words = self.run_script("approve-nodes", INFRA_ROUNDS=str(rounds), INFRA_POLL_SECONDS="0.01",
                                INFRA_CLUSTER_TAG="infra:cluster", INFRA_ROLE_TAG="infra:role", **environment)
        self.state = json.loads(self.path.read_text())
        return {name: action for action, name in self.state["decisions"]}, words

    def expect(self, expected, why, *arguments, **more):
        """A single request, and what becomes of it."""
        self.state["requests"] = {}
        self.state["decisions"] = []
        self.add("csr-1", *arguments, **more)
        decisions, words = self.decide()
        self.assertEqual((decisions.get("csr-1"), words), (expected, f"infra: csr-1 {why}\n"))

    def node(self, name):
        return (f"system:node:{name}", ["system:nodes", "system:authenticated"])

    def test_machines_get_their_first_certificates(self):
        self.expect("approve", f"approve: first certificate of {WORKER} (i-0w, pool-cpu)", POOL, self.request())
        self.expect("approve", f"approve: first certificate of {CONTROLLER} (i-0c, controller)", CONTROLLERS,
                    self.request(f"/O=system:nodes/CN=system:node:{CONTROLLER}"),
                    usages=["key encipherment", "digital signature", "client auth"])
        self.assertEqual(self.console.read_text(), "", "decisions are for the journal")

    def test_a_bootstrap_key_gets_no_other_first_certificate(self):
        controller = f"/O=system:nodes/CN=system:node:{CONTROLLER}"
        self.aws.instances += [
            Instance("i-0f", "10.0.0.40", cluster="foreign"),
            Instance("i-0s", "10.0.0.50", state="stopped"),
            Instance("i-0e", "10.0.0.60", role="etcd-0"),
        ]
        self.state["nodes"][OTHER] = ["aws:///us-west-2b/i-0o", "True"]

        def subject_of(address):
            return f"/O=system:nodes/CN=system:node:ip-10-0-0-{address}.{DOMAIN}"

        def unknown(address):
            return f"waits: EC2 knows no machine ip-10-0-0-{address}.{DOMAIN} of this cluster"

        table = [
            ("deny", f"deny: the bootstrap identity of a pool asks for {CONTROLLER}, but i-0c is controller", POOL, controller, {}),
            ("deny", f"deny: the bootstrap identity of a controller asks for {WORKER}, but i-0w is pool-cpu", CONTROLLERS, None, {}),
            ("deny", f"deny: the bootstrap identity of a pool asks for ip-10-0-0-60.{DOMAIN}, but i-0e is etcd-0", POOL, subject_of(60), {}),
            (None, f"waits: i-0o is Node {OTHER} already; if it has lost its certificate, terminate the machine", POOL, subject_of(30), {}),
            (None, unknown(99), POOL, subject_of(99), {}),
            (None, unknown(40), POOL, subject_of(40), {}),
            (None, unknown(50), POOL, subject_of(50), {}),
            (None, "waits: EC2 knows no machine ip-10-0-0-20.elsewhere of this cluster", POOL,
             "/O=system:nodes/CN=system:node:ip-10-0-0-20.elsewhere", {}),
            ("deny", f"deny: asks for {WORKER} in a client certificate", POOL, None, {"names": [f"DNS:{WORKER}"]}),
            ("deny", "deny: asks for the usages digital signature,client auth,server auth", POOL, None,
             {"usages": ["digital signature", "client auth", "server auth"]}),
            ("deny", "deny: asks for the usages ", POOL, None, {"usages": []}),
            ("deny", "deny: asks for the subject CN=system:masters,O=system:nodes", POOL, "/O=system:nodes/CN=system:masters", {}),
            ("deny", f"deny: asks for the subject CN=system:node:{WORKER},O=system:masters,O=system:nodes", POOL,
             f"/O=system:nodes/O=system:masters/CN=system:node:{WORKER}", {}),
            ("deny", f"deny: asks for the subject CN=system:node:{CONTROLLER},CN=system:node:{WORKER},O=system:nodes", POOL,
             f"/O=system:nodes/CN=system:node:{WORKER}/CN=system:node:{CONTROLLER}", {}),
            ("deny", "deny: asks for the subject CN=system:node:ip-10-0-0-20\\,O=system:nodes", POOL,
             "/CN=system:node:ip-10-0-0-20,O=system:nodes", {}),
            ("deny", "deny: asks for the subject CN=system:node:*,O=system:nodes", POOL, "/O=system:nodes/CN=system:node:*", {}),
            (None, 'is asked by "jane", which is neither a bootstrap identity nor a node: left to the administrator',
             ("jane", ["system:bootstrappers"]), None, {}),
            (None, 'is asked by "kubelet-bootstrap", which is neither a bootstrap identity nor a node: left to the administrator',
             ("kubelet-bootstrap", ['team",x"system:bootstrappers']), None, {}),
            (None, 'is asked by "controller-bootstrap", which is neither a bootstrap identity nor a node: left to the administrator',
             ("controller-bootstrap", ["system:bootstrappers"]), controller, {}),
        ]
        for expected, why, asked_by, subject, more in table:
            with self.subTest(why):
                self.expect(expected, why, asked_by, self.request(subject, more.get("names", ())), usages=more.get("usages"))

    def test_a_request_that_is_none_is_denied(self):
        good = base64.b64decode(self.request()).decode()
        for text in [
            "", "nonsense", good + good, "x" + good, good + "x\n", good.replace("REQUEST", "REQUEST"[:-1]),
            good.replace("-----\n", "-----\nProc-Type: 4\n\n", 1), good.replace(" CERT", " NEW CERT"),
        ]:
            with self.subTest(text):
                self.expect("deny", "deny: is not a request as kubelets write it", POOL, base64.b64encode(text.encode()).decode())
        for attributes in ["challengePassword = secret", "unstructuredName = X509v3 Subject Alternative Name"]:
            with self.subTest(attributes):
                self.expect("deny", "deny: is not a request as kubelets write it", POOL, self.request(attributes=[attributes]))

    def test_serving_certificates_are_for_the_machine_itself(self):
        self.expect("approve", f"approve: serving certificate of {WORKER} (i-0w) for {WORKER} 10.0.0.20", self.node(WORKER),
                    self.request(names=[f"DNS:{WORKER}", "IP:10.0.0.20"]), signer=SERVING)
        public = "ec2-54-1-2-3.compute.amazonaws.com"
        self.expect("approve", f"approve: serving certificate of {WORKER} (i-0w) for {public} {WORKER} 10.0.0.20 54.1.2.3",
                    self.node(WORKER), self.request(names=[f"DNS:{public}", f"DNS:{WORKER}", "IP:10.0.0.20", "IP:54.1.2.3"]),
                    signer=SERVING)
        no_kubelets = "deny: is not a request as kubelets write it"
        # One byte of the name is a line feed or a zero byte, and a foreign address follows.
        hidden = [f"DER:30{len(name) + 8:02x}82{len(name):02x}{name.hex()}87040a00001e"
                  for name in (f"{WORKER}\nx".encode(), f"{WORKER}\0x".encode(), f"{WORKER}, DNS:{WORKER}".encode())]
        for expected, why, asked_by, names, more in [
            ("deny", f"deny: {OTHER} does not belong to {WORKER} (i-0w)", WORKER, [f"DNS:{WORKER}", f"DNS:{OTHER}"], {}),
            ("deny", f"deny: 10.0.0.30 does not belong to {WORKER} (i-0w)", WORKER, [f"DNS:{WORKER}", "IP:10.0.0.20", "IP:10.0.0.30"], {}),
            ("deny", f"deny: kubernetes does not belong to {WORKER} (i-0w)", WORKER, ["DNS:kubernetes", "IP:10.0.0.20"], {}),
            ("deny", no_kubelets, WORKER, ["IP:10.0.0.20", "email:root@example.com"], {}),
            ("deny", no_kubelets, WORKER, ["IP:10.0.0.20", "URI:spiffe://x"], {}),
            ("deny", no_kubelets, WORKER, ["IP:10.0.0.20", "IP:fe80::1"], {}),
            ("deny", no_kubelets, WORKER, ["IP:10.0.0.20", "DNS:*"], {}),
            *[("deny", no_kubelets, WORKER, name, {}) for name in hidden],
            ("deny", f"deny: asks for no name and no address of {WORKER}", WORKER, (), {}),
            ("deny", f'deny: is asked by "system:node:{OTHER}" for {WORKER}', OTHER, [f"DNS:{WORKER}"], {}),
            ("deny", "deny: asks for the usages digital signature,client auth", WORKER, [f"DNS:{WORKER}"],
             {"usages": ["digital signature", "client auth"]}),
        ]:
            with self.subTest(why, names=names):
                self.expect(expected, why, self.node(asked_by), self.request(names=names), signer=SERVING, **more)
        self.expect(None, 'is asked by "kubelet-bootstrap", which is neither a bootstrap identity nor a node: left to the administrator',
                    POOL, self.request(names=["IP:10.0.0.20"]), signer=SERVING)
        lost = f"ip-10-0-0-99.{DOMAIN}"
        self.expect(None, f"waits: EC2 knows no machine {lost} of this cluster", self.node(lost),
                    self.request(f"/O=system:nodes/CN=system:node:{lost}", ["IP:10.0.0.99"]), signer=SERVING)

    def test_renewals_and_other_signers_are_not_its_business(self):
        self.add("renewal", self.node(WORKER), self.request())
        self.state["requests"]["of-a-user"] = {**self.state["requests"]["renewal"], "signer": "kubernetes.io/kube-apiserver-client"}
        self.add("given-up", POOL, self.request(), created=moment(-21))
        self.assertEqual(self.decide(), ({}, ""))
        self.assertEqual(self.aws.calls, [])

    def test_the_node_of_a_machine_that_is_gone_does_not_keep_its_successor_out(self):
        gone = "aws:///us-west-2b/i-0gone"
        for node, expected, why in [
            ([gone, "Unknown"], "approve", f"approve: first certificate of {WORKER} (i-0w, pool-cpu)"),
            ([gone, "True"], None, f"waits: Node {WORKER} of another machine ({gone}) is still there"),
            (["", "False"], None, f"waits: Node {WORKER} of another machine (unknown) is still there"),
            (["aws:///us-west-2b/i-0w", "Unknown"], None,
             f"waits: i-0w is Node {WORKER} already; if it has lost its certificate, terminate the machine"),
        ]:
            with self.subTest(why):
                self.state["nodes"][WORKER] = node
                self.expect(expected, why, POOL, self.request())

    def test_a_machine_gets_one_first_certificate(self):
        self.add("csr-first", POOL, self.request(), created=moment(-2), status=["Approved", "Issued"])
        self.add("csr-second", POOL, self.request())
        decisions, words = self.decide()
        self.assertEqual(decisions, {})
        self.assertIn("csr-second waits: i-0w has had its first certificate (request csr-first)", words)
        # One of the machine that had the address before does not count, and neither does one that was never signed.
        for created, status in [(-4, ["Approved", "Issued"]), (-2, ["Approved"])]:
            self.add("csr-first", POOL, self.request(), created=moment(created), status=status)
            self.add("csr-second", POOL, self.request())
            self.assertEqual(self.decide()[0], {"csr-second": "approve"})
            self.state["decisions"] = []
        # Of two at once, one.
        self.state["requests"] = {}
        for name in "csr-a", "csr-b":
            self.add(name, POOL, self.request())
        self.assertEqual(list(self.decide(rounds=2)[0].values()), ["approve"])

    def test_a_network_with_a_domain_of_its_own(self):
        self.write("run/infra/node.env", "NODE_NAME=ip-10-0-0-10.corp.example\n")
        name = "ip-10-0-0-20.corp.example"
        self.expect("approve", f"approve: first certificate of {name} (i-0w, pool-cpu)", POOL,
                    self.request(f"/O=system:nodes/CN=system:node:{name}"))
        self.expect("approve", f"approve: serving certificate of {name} (i-0w) for {name} 10.0.0.20", self.node(name),
                    self.request(f"/O=system:nodes/CN=system:node:{name}", [f"DNS:{name}", "IP:10.0.0.20"]), signer=SERVING)

    def test_what_waits_is_said_once_and_tried_again(self):
        machine = self.aws.instances.pop(1)
        self.add("csr-1", POOL, self.request())
        decisions, words = self.decide(rounds=3)
        self.assertEqual((decisions, words.count("waits")), ({}, 1))
        self.aws.instances.append(machine)
        self.assertEqual(self.decide()[0], {"csr-1": "approve"})

    def test_trouble_is_said_on_the_console_and_passes(self):
        self.add("csr-1", POOL, self.request())
        self.aws.script("ec2:DescribeInstances", "denied", "denied")
        self.assertEqual(self.decide(rounds=3)[0], {"csr-1": "approve"})
        [line] = self.console_lines()
        self.assertRegex(line, "^infra: approve-nodes: ec2:DescribeInstances: UnauthorizedOperation: ")
        self.state["down"] = True
        self.decide(rounds=2)
        self.assertEqual(self.console_lines()[1:], ["infra: approve-nodes: the API server: The connection to the server 127.0.0.1:6443 was "
                                                    "refused - did you specify the right host or port?"])

    def test_a_hundred_machines_at_once(self):
        for number in range(100):
            address = f"10.0.2.{number}"
            self.aws.instances.append(Instance(f"i-{number:03}", address, launched=moment(-3)))
            name = f"ip-{address.replace('.', '-')}.{DOMAIN}"
            self.add(f"csr-{number:03}", POOL, self.request(f"/O=system:nodes/CN=system:node:{name}"))
        began = time.monotonic()
        decisions, _ = self.decide()
        print(f"\na hundred requests: {time.monotonic() - began:.1f} s", file=sys.stderr)
        self.assertEqual(list(decisions.values()), ["approve"] * 100)
        self.assertEqual(self.aws.count("ec2:DescribeInstances"), 1)
        self.assertEqual(len([call for call in self.arguments_of("kubectl") if "approve" in call]), 1)

    def test_a_flood_of_one_identity_does_not_stop_the_others(self):
        nobody = self.request(f"/O=system:nodes/CN=system:node:ip-10-0-9-9.{DOMAIN}")
        for number in range(400):
            self.add(f"a-{number:03}", POOL, nobody)
        self.add("b-controller", CONTROLLERS, self.request(f"/O=system:nodes/CN=system:node:{CONTROLLER}"))
        self.add("c-serving", self.node(WORKER), self.request(names=["IP:10.0.0.20"]), signer=SERVING)
        self.add("d-worker", POOL, self.request())
        decisions, words = self.decide()
        self.assertEqual({name: decisions.get(name) for name in ("b-controller", "c-serving")},
                         {"b-controller": "approve", "c-serving": "approve"})
        self.assertLessEqual(words.count("\n"), 102)
        # A quarter of the flood in each round; the machine in it has its turn.
        for _ in range(40):
            if "d-worker" in decisions:
                break
            decisions, _ = self.decide()
        self.assertEqual(decisions["d-worker"], "approve")
