"""A Prometheus that is asked over HTTP: through `infra dashboard` as the operator asks it, or where it listens."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import tempfile
import urllib.parse

import authority
from container import inside, run

PORT = 9090


class Prometheus:
    """At a port of 127.0.0.1 in a network namespace."""

    def __init__(self, namespace, port=PORT):
        self.namespace, self.port = namespace, port

    def ask(self, path, **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.sock = inside(self.namespace, lambda: socket.create_connection(("127.0.0.1", self.port), timeout=30))
        with contextlib.closing(connection):
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        if answer["status"] != "success":
            raise AssertionError(f"{path} {parameters}: {answer['error']}")
        return answer["data"]

    def query(self, expression, at=None):
        """Each series with its value."""
        found = self.ask("query", query=expression, **({"time": at} if at else {}))["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def targets(self):
        return self.ask("targets", state="active")["activeTargets"]

    def rules(self):
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def firing(self):
        return [alert["labels"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"]

    def selectors(self, expression):
        """Every series that an expression names, as it names them."""
        found = []

        def walk(node):
            if isinstance(node, dict):
                if node.get("type") in ("vectorSelector", "matrixSelector"):
                    matchers = node["matchers"]
                    found.append("{" + ",".join(f"{each['name']}{each['type']}{json.dumps(each['value'])}" for each in matchers) + "}")
                for value in node.values():
                    walk(value)
            elif isinstance(node, list):
                for value in node:
                    walk(value)

        walk(self.ask("parse_query", query=expression))
        return found


@contextlib.contextmanager
def dashboard(cluster, *words):
    """The Prometheus that `infra dashboard` forwards to, as long as the block lasts."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            cluster.operators_command(cluster.binary, "dashboard", *words), cwd=cluster.directory, env=cluster.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            # The command itself gives up when there is none; then there is no line.
            address = urllib.parse.urlsplit(process.stdout.readline().strip())
            if not address.port:
                errors.seek(0)
                raise AssertionError(f"infra dashboard: exit {process.wait()}\n{errors.read()}")
            yield Prometheus(cluster.network.operator, address.port)
            process.send_signal(signal.SIGINT)
            code = process.wait(30)
            errors.seek(0)
            assert code == 130, f"infra dashboard: exit {code}\n{errors.read()}"
        finally:
            process.kill()
            process.wait()


class Receiver:
    """A Prometheus of its own that takes what others send, with a certificate for its name, at port 443 of an address."""

    def __init__(self, program, scratch, namespace, address, name):
        self.program, self.directory = program, scratch / "receiver"
        self.namespace, self.address, self.name = namespace, address, name

    def __enter__(self):
        self.directory.mkdir()
        certificate, key = authority.issue(self.directory, self.name)
        # JSON is YAML as well.
        web, config = self.directory / "web.yaml", self.directory / "prometheus.yaml"
        web.write_text(json.dumps({"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}))
        config.write_text("{}\n")
        words = [self.program, f"--config.file={config}", f"--storage.tsdb.path={self.directory / 'data'}", "--web.enable-remote-write-receiver",
                 f"--web.listen-address={self.address}:443", f"--web.config.file={web}"]
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "nsenter", f"--net=/run/netns/{self.namespace}", *words],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def query(self, expression):
        """The labels of each series."""
        url = f"https://{self.name}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        answer = run("nsenter", f"--net=/run/netns/{self.namespace}", "curl", "--silent", "--show-error", "--fail", "--max-time", "10",
                     "--cacert", authority.certificate(), "--resolve", f"{self.name}:443:{self.address}", url)
        return [series["metric"] for series in json.loads(answer)["data"]["result"]]
