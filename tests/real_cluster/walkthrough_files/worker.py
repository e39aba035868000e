"""A program with the contract of the TensorFlow walkthrough, POD_NAME and CLUSTER_CONFIG, and without TensorFlow.

Each parameter server keeps a weight, and workers move all of them towards 3.
"""

import ast
import json
import os
import pathlib
import socket
import socketserver
import threading
import time

STEPS, PAUSE_SECONDS = 40, 0.25
role, number, _ = os.environ["POD_NAME"].split("-", 2)
cluster = ast.literal_eval(os.environ["CLUSTER_CONFIG"])
weight, lock = 0.0, threading.Lock()


class Updates(socketserver.StreamRequestHandler):
    def handle(self):
        global weight
        for line in self.rfile:
            with lock:
                weight += float(line)
                self.wfile.write(f"{weight}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def connect(address):
    """To a parameter server, which may start later."""
    host, port = address.rsplit(":", 1)
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=60).makefile("rw")
        except OSError:
            time.sleep(0.5)


def update(server, change):
    """Adds to the weight of a server; returns what it is now."""
    print(change, file=server, flush=True)
    return float(server.readline())


def train():
    images = sorted(path.name for path in pathlib.Path(os.environ["INFRA_DATA_DIR"]).rglob("*") if path.is_file())
    servers = [connect(address) for address in cluster["ps"]]
    weights = [update(server, 0.0) for server in servers]
    for step in range(STEPS):
        weights = [update(server, 0.1 * (3 - value)) for server, value in zip(servers, weights)]
        print(f"step {step}, loss {sum((3 - value) ** 2 for value in weights):.6f}", flush=True)
        time.sleep(PAUSE_SECONDS)
    result = {"weights": weights, "images": images, "cluster": cluster, "directory": os.getcwd()}
    pathlib.Path(os.environ["INFRA_OUTPUT_DIR"], f"worker-{number}.json").write_text(json.dumps(result))


print(f"{role} {number} of {json.dumps({name: len(addresses) for name, addresses in cluster.items()})}", flush=True)
if role == "ps":
    Server(("", int(cluster["ps"][int(number)].rsplit(":", 1)[1])), Updates).serve_forever()
else:
    train()
