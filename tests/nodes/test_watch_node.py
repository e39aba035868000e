"""A machine whose Node was deleted registers again: what watch-node does with what the API server answers to a real kubectl."""

import http.server
import json
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from golden import TOOLS  # noqa: E402
from node_case import Node  # noqa: E402

NAME = "ip-10-0-1-23.us-west-2.compute.internal"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
contexts: [{{name: c, context: {{cluster: c}}}}]
current-context: c
"""
DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        {"name": "nodes", "singularName": "node", "namespaced": False, "kind": "Node", "verbs": ["get"]}]},
}


def node(**spec):
    return 200, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NAME}, "spec": spec}


def failure(code, reason, message):
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "message": message,
                  "details": {"name": NAME, "kind": "nodes"}, "code": code}


FOUND, CORDONED = node(), node(unschedulable=True)
MISSING = failure(404, "NotFound", f'nodes "{NAME}" not found')
FORBIDDEN = failure(403, "Forbidden", f'nodes "{NAME}" is forbidden: User "system:node:{NAME}" cannot get resource "nodes"')
UNAUTHORIZED = failure(401, "Unauthorized", "Unauthorized")
UNAVAILABLE = failure(503, "ServiceUnavailable", "the server is currently unable to handle the request")
# Of a proxy or a load balancer that does not know the path.
NOT_OF_THE_API = 404, "<html>404 page not found</html>"


class Api:
    """Gives the next of `answers` to each question about the Node."""

    def __init__(self, answers):
        self.answers, self.asked = list(answers), []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                status, body = (200, DISCOVERY[path]) if path in DISCOVERY else owner.answer(path)
                content = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    def answer(self, path):
        self.asked.append(path)
        return self.answers[len(self.asked) - 1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class WatchNode(Node):
    def setUp(self):
        super().setUp()
        self.write("run/infra/node.env", f"NODE_NAME={NAME}\n")
        (self.root / "opt/bin").mkdir(parents=True)
        (self.root / "opt/bin/kubectl").symlink_to(TOOLS / "venv/bin/kubectl")
        self.aws.metadata["meta-data/autoscaling/target-lifecycle-state"] = "InService"
        self.stub("busctl", "echo 'b false'")
        self.kubelet_runs_for(600)

    def kubelet_runs_for(self, seconds, active="exit 0", restart="exit 0"):
        started = int((float(pathlib.Path("/proc/uptime").read_text().split()[0]) - seconds) * 1e6)
        (self.folder / "started").write_text(str(started))
        self.stub("systemctl", f"""\
            case $1 in
            is-active) {active} ;;
            show) cat {self.folder}/started ;;
            try-restart) {restart} ;;
            esac
            """)

    def watch(self, *answers):
        """Runs it for one round for each answer, and returns what it said."""
        api = Api(answers)
        self.addCleanup(api.close)
        self.write("var/lib/kubelet/kubeconfig", KUBECONFIG.format(url=api.url))
        said = self.rounds(len(answers))
        self.assertEqual(api.asked, [f"/api/v1/nodes/{NAME}"] * len(answers))
        return said

    def rounds(self, count):
        before = len(self.console_lines())
        self.run_script("watch-node", INFRA_ROUNDS=str(count), INFRA_POLL_SECONDS="0")
        return self.console_lines()[before:]

    def restarts(self):
        calls = [call for call in self.arguments_of("systemctl") if call[0] not in ("is-active", "show")]
        self.assertEqual(calls, [["try-restart", "kubelet.service"]] * len(calls))
        return len(calls)

    def assert_nothing_happens(self, *answers):
        self.assertEqual((self.watch(*answers), self.restarts()), ([], 0))

    def test_a_node_that_is_there_is_left_alone(self):
        self.assert_nothing_happens(FOUND, FOUND, CORDONED, FOUND)

    def test_a_node_that_is_missing_twice_registers_again(self):
        said = self.watch(FOUND, MISSING, MISSING, FOUND, FOUND)
        self.assertEqual(said, [f"infra: Node {NAME} was deleted; restarting the kubelet, which registers it again"])
        self.assertEqual(self.restarts(), 1)

    def test_once_is_not_enough(self):
        self.assert_nothing_happens(MISSING, FOUND, MISSING, FOUND, MISSING)

    def test_other_failures_say_nothing_about_the_node(self):
        for answer in (FORBIDDEN, UNAUTHORIZED, UNAVAILABLE, NOT_OF_THE_API):
            with self.subTest(answer):
                self.assert_nothing_happens(answer, answer, answer)
                self.assert_nothing_happens(MISSING, answer, MISSING)

    def test_an_api_server_that_cannot_be_reached_says_nothing_about_the_node(self):
        api = Api([])
        api.close()
        self.write("var/lib/kubelet/kubeconfig", KUBECONFIG.format(url=api.url))
        self.assertEqual((self.rounds(3), self.restarts()), ([], 0))

    def test_a_machine_that_has_not_joined_yet_is_left_alone(self):
        self.assertFalse((self.root / "var/lib/kubelet/kubeconfig").exists())
        self.assertEqual((self.rounds(3), self.restarts()), ([], 0))

    def test_a_kubelet_that_may_still_register_is_left_alone(self):
        self.kubelet_runs_for(120)
        self.assert_nothing_happens(*[MISSING] * 4)
        self.kubelet_runs_for(600, active="exit 3")
        self.assert_nothing_happens(*[MISSING] * 4)

    def test_a_kubelet_is_not_restarted_again_at_once(self):
        self.kubelet_runs_for(600, restart=f"cp {self.folder}/now {self.folder}/started")
        (self.folder / "now").write_text(str(time.monotonic_ns() // 1000))
        self.watch(*[MISSING] * 6)
        self.assertEqual(self.restarts(), 1)
        # Minutes later, and only after two more rounds.
        self.kubelet_runs_for(181)
        self.watch(*[MISSING] * 3)
        self.assertEqual(self.restarts(), 2)

    def test_a_machine_that_ends_does_not_register_again(self):
        self.stub("busctl", "echo 'b true'")
        missing = [MISSING] * 4
        held = f"infra: Node {NAME} was deleted, and the kubelet is not restarted: "
        self.assertEqual(self.watch(*missing), [held + "the machine shuts down"])
        self.stub("busctl", "exit 1")
        for target in ("Terminated", "Warmed:Terminated"):
            self.aws.metadata["meta-data/autoscaling/target-lifecycle-state"] = target
            self.assertEqual(self.watch(*missing), [held + "Auto Scaling terminates the machine"])
        self.aws.script("imds:meta-data/autoscaling/target-lifecycle-state", *["error"] * 3)
        self.assertEqual(self.watch(*missing), [
            held + "whether Auto Scaling terminates the machine is not known: the metadata service does not answer"])
        self.assertEqual(self.restarts(), 0)
        # Machines of no Auto Scaling group do not have it.
        del self.aws.metadata["meta-data/autoscaling/target-lifecycle-state"]
        self.watch(MISSING, MISSING)
        self.assertEqual(self.restarts(), 1)

    def test_a_node_that_was_cordoned_is_not_registered_again(self):
        self.assertEqual(self.watch(CORDONED, *[MISSING] * 4), [
            f"infra: Node {NAME} was deleted, and the kubelet is not restarted: it was cordoned before; "
            "to register it again: systemctl restart kubelet"])
        self.assertEqual(self.restarts(), 0)
        self.watch(CORDONED, FOUND, MISSING, MISSING)
        self.assertEqual(self.restarts(), 1)

    def test_a_restart_that_fails_is_said_and_tried_again(self):
        self.kubelet_runs_for(600, restart="exit 1")
        said = self.watch(*[MISSING] * 4)
        self.assertEqual(said[1::2], ["infra: watch-node: systemctl try-restart kubelet.service failed"] * 2)
        self.assertEqual(self.restarts(), 2)


if __name__ == "__main__":
    unittest.main()
