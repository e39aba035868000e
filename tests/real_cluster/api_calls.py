"""Calls of a Kubernetes API in a network namespace, with the administrator's certificate: JSON in, JSON out."""

import http.client
import json
import socket
import ssl
import threading

from container import inside

MERGE, STRATEGIC_MERGE = "application/merge-patch+json", "application/strategic-merge-patch+json"


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class KubernetesApi:
    """Each thread has a connection of its own."""

    def __init__(self, namespace, credentials):
        self.namespace = namespace
        self.context = ssl.create_default_context(cafile=credentials / "ca.pem")
        self.context.load_cert_chain(credentials / "admin.pem", credentials / "admin-key.pem")
        self.own = threading.local()
        self.watchers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for watcher in self.watchers:
            watcher.stop()

    def connect(self):
        connection = http.client.HTTPSConnection("127.0.0.1", 6443, context=self.context)
        plain = inside(self.namespace, lambda: socket.create_connection(("127.0.0.1", 6443), timeout=60))
        connection.sock = self.context.wrap_socket(plain, server_hostname="localhost")
        return connection

    def call(self, method, path, body=None, kind="application/json"):
        """What the API answers; raises what it refuses."""
        text = None if body is None else json.dumps(body)
        for is_last in (False, True):
            if getattr(self.own, "connection", None) is None:
                self.own.connection = self.connect()
            try:
                self.own.connection.request(method, path, text, {"Content-Type": kind, "Accept": "application/json"})
                answer = self.own.connection.getresponse()
                found = answer.read()
                break
            except (http.client.HTTPException, OSError):
                # A connection that was idle for long may be closed.
                self.own.connection.close()
                self.own.connection = None
                if is_last:
                    raise
        if answer.status >= 400:
            raise Refused(answer.status, json.loads(found).get("message", ""))
        return json.loads(found)

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """The object, or nothing."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def patch(self, path, body, kind=MERGE):
        return self.call("PATCH", path, body, kind)

    def watch(self, path):
        """Starts to collect whatever happens to the objects of a path; see `Watcher`."""
        watcher = Watcher(self.connect(), path, self.get(path)["metadata"]["resourceVersion"])
        self.watchers.append(watcher)
        return watcher


class Watcher:
    """`states` has every state that an object was seen in, by its name. Objects that live for a moment are seen too."""

    def __init__(self, connection, path, version):
        self.connection, self.states = connection, {}
        connection.sock.settimeout(None)
        connection.request("GET", f"{path}?watch=true&resourceVersion={version}", headers={"Accept": "application/json"})
        self.answer = connection.getresponse()
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        try:
            for line in self.answer:
                found = json.loads(line)["object"]
                self.states.setdefault(found["metadata"]["name"], []).append(found)
        except (OSError, ValueError, http.client.HTTPException):
            # It was stopped.
            return

    def stop(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()
