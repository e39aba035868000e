"""The cluster's API server, as far as a rehearsal goes: every machine that runs in the stand-in for AWS is a Ready node.

It shows the cluster's own certificate and wants one from whoever asks, so both sides of the credentials are rehearsed as well.
"""

import http.server
import json
import ssl
import threading
import urllib.parse

from cluster_file import gpu_sizes

VERSION = "v1.36.3"


class KubernetesApi:
    """On a free port of 127.0.0.1, until it is closed."""

    def __init__(self, credentials, account, cluster):
        self.account, self.cluster = account, cluster
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(credentials / "apiserver.pem", credentials / "apiserver-key.pem")
        context.load_verify_locations(credentials / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = Server(("127.0.0.1", 0), handler_for(self))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def nodes(self):
        ec2 = self.account.client("ec2")
        pages = ec2.get_paginator("describe_instances").paginate()
        instances = [instance for page in pages for group in page["Reservations"] for instance in group["Instances"]]
        # Read once: with many machines it would be most of the time.
        facts = self.cluster.facts
        return [node for instance in instances if (node := self._node(instance, facts))]

    def _node(self, instance, facts):
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        role = tags.get("infra:role", "")
        mine = tags.get("infra:cluster") == facts["clusterName"]
        if instance["State"]["Name"] != "running" or not mine or not (role == "controller" or role.startswith("pool-")):
            return None
        kind, zone = instance["InstanceType"], instance["Placement"]["AvailabilityZone"]
        labels = {
            "kubernetes.io/hostname": instance["PrivateDnsName"],
            "node.kubernetes.io/instance-type": kind,
            "topology.kubernetes.io/region": self.account.region,
            "topology.kubernetes.io/zone": zone,
        }
        resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        if role == "controller":
            labels["node-role.kubernetes.io/control-plane"] = ""
        else:
            labels["infra.internal/pool"] = role.removeprefix("pool-")
        if size := gpu_sizes().get(kind):
            count = str(size["gpus"])
            labels |= {"infra.internal/gpu-count": count, "infra.internal/gpu-model": size["model"]}
            # What the system keeps of a machine is little.
            resources |= {"nvidia.com/gpu": count, "cpu": f"{size['vcpus'] * 1000 - 100}m", "memory": f"{size['memoryGiB'] - 1}Gi"}
        version = (facts.get("kubernetes") or {}).get("version", VERSION)
        return {
            "kind": "Node", "apiVersion": "v1",
            "metadata": {"name": instance["PrivateDnsName"], "uid": instance["InstanceId"], "labels": labels},
            "spec": {"providerID": f"aws:///{zone}/{instance['InstanceId']}"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": instance["PrivateIpAddress"]}],
                "allocatable": resources, "capacity": resources,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": {"kubeletVersion": version},
            },
        }

    def answer(self, path):
        """The status and the body of what is asked for by GET; pods and Services there are none."""
        match [part for part in path.split("/") if part]:
            case ["readyz"]:
                return 200, "ok"
            case ["version"]:
                return 200, {"major": "1", "minor": "36", "gitVersion": VERSION}
            case ["api", "v1", "nodes"]:
                return 200, listed("Node", self.nodes())
            case ["api", "v1", "pods"] | ["api", "v1", "namespaces", _, "pods"]:
                return 200, listed("Pod", [])
            case ["api", "v1", "services"]:
                return 200, listed("Service", [])
            case ["api", "v1", "namespaces", namespace, "persistentvolumeclaims", "efs"]:
                return 200, {
                    "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "efs", "namespace": namespace},
                    "spec": {"accessModes": ["ReadWriteMany"], "volumeName": "efs"}, "status": {"phase": "Bound"}}
        return failure(404, "NotFound", "the server could not find the requested resource")


def listed(kind, items):
    return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


def failure(code, reason, message):
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                  "reason": reason, "details": {}, "code": code}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, _request, _client_address):
        """A client without the right certificate, or one that went away."""


def handler_for(api):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            try:
                status, content = api.answer(urllib.parse.urlsplit(self.path).path)
            except Exception as error:
                status, content = failure(500, "InternalError", str(error))
            self.reply(status, content)

        def do_other(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.reply(*failure(405, "MethodNotAllowed", "a rehearsal changes nothing in Kubernetes"))

        do_POST = do_PUT = do_PATCH = do_DELETE = do_other

        def reply(self, status, content):
            is_text = isinstance(content, str)
            body = (content if is_text else json.dumps(content)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if is_text else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Standard error is the rehearsal's own."""

    return Handler
