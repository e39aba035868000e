"""The instance metadata service, version 2, at the address that every machine knows. It is outside of the machines.

A machine is known by the address that it asks from. The answer to a request for a token travels as many hops as the machine's
launch template allows: that is what keeps pods away from it.
"""

import http.server
import json
import secrets
import socket
import threading

ADDRESS = "169.254.169.254"


class MetadataService:
    """Made in the network namespace of the machines (see container.inside)."""

    def __init__(self, credentials_of):
        """`credentials_of` gives a machine's credentials as the service shows them."""
        self.credentials_of = credentials_of
        self.machines = {}
        self.tokens = {}
        # The ids of machines that are taken back, with the notice that they get.
        self.spot_notices = {}
        self.server = Server((ADDRESS, 80), handler_for(self))

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def value(self, machine, path):
        role = machine["profile"].rpartition("/")[2]
        interface = f"network/interfaces/macs/{machine['mac']}"
        facts = {
            "instance-id": machine["id"], "instance-type": machine["type"], "local-ipv4": machine["address"],
            "local-hostname": machine["name"], "hostname": machine["name"], "mac": machine["mac"],
            "placement/availability-zone": machine["zone"], "placement/region": machine["zone"].rstrip("abcdef"),
            f"{interface}/vpc-id": machine["network"], f"{interface}/subnet-id": machine["subnet"],
            f"{interface}/local-ipv4s": machine["address"], "network/interfaces/macs/": f"{machine['mac']}/",
            "iam/security-credentials/": role, "autoscaling/target-lifecycle-state": "InService",
        }
        if path == f"meta-data/iam/security-credentials/{role}":
            return json.dumps(self.credentials_of(machine))
        if path == "meta-data/spot/instance-action":
            return self.spot_notices.get(machine["id"])
        if path == "user-data":
            return machine["decodedUserData"]
        if path == "dynamic/instance-identity/document":
            return json.dumps({
                "region": facts["placement/region"], "availabilityZone": machine["zone"], "instanceId": machine["id"],
                "instanceType": machine["type"], "privateIp": machine["address"], "accountId": machine["account"]})
        return facts.get(path.removeprefix("meta-data/")) if path.startswith("meta-data/") else None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A machine whose power was cut."""


def handler_for(service):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_PUT(self):
            machine = service.machines.get(self.client_address[0])
            if not machine or self.path != "/latest/api/token" or not self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
                self.answer(400, "")
                return
            token = secrets.token_urlsafe(32)
            service.tokens[token] = machine["id"]
            self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, machine["hopLimit"])
            self.answer(200, token)

        def do_GET(self):
            machine = service.machines.get(self.client_address[0])
            if not machine or service.tokens.get(self.headers.get("X-aws-ec2-metadata-token")) != machine["id"]:
                self.answer(401, "")
                return
            # The version comes first: latest, or a date.
            value = service.value(machine, self.path.lstrip("/").partition("/")[2])
            self.answer(404, "") if value is None else self.answer(200, value)

        def answer(self, status, text):
            content = text.encode() if isinstance(text, str) else text
            self.send_response(status)
            self.send_header("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler
