"""Machines that are pretended: Node objects, and for every pod what a kubelet would report about it.

A pod that the real scheduler has placed runs at once. One that is deleted ends a second later, as if it had got SIGTERM, with 143.
`finish` ends one as its program would. Nothing is run, no image is pulled, and no machine shuts down.
"""

import contextlib
import datetime
import time

from chapters import InBackground
from api_calls import STRATEGIC_MERGE, Refused

PODS = "/api/v1/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LOOK_SECONDS = 0.2
# Between SIGTERM and the end of a program.
GRACE_SECONDS = 1.0
RENEW_SECONDS = 5.0
RESOURCES = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def now(pattern="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.now(datetime.timezone.utc).strftime(pattern)


def path_of(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


class PretendMachines(InBackground):
    def __init__(self, api, names):
        super().__init__(pause=LOOK_SECONDS)
        self.api, self.names = api, names
        self.terminating, self.renewed, self.lost = {}, 0.0, set()

    def __enter__(self):
        for name in self.names:
            self.add(name)
        return super().__enter__()

    def add(self, name):
        """A machine joins, and is Ready at once."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "infra.internal/pool": "cpu"}
        self.api.call("POST", "/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}})
        if not self.api.find(f"{LEASES}/{name}"):
            self.api.call("POST", LEASES, {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": name},
                                           "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": RESOURCES, "allocatable": RESOURCES, "conditions": [ready]}})

    @contextlib.contextmanager
    def without(self, name):
        """A machine loses its power and its Node is deleted, as a cloud provider deletes it; at the end there is one again."""
        self.lost.add(name)
        self.api.call("DELETE", f"/api/v1/nodes/{name}")
        try:
            yield
        finally:
            self.add(name)
            self.lost.discard(name)

    def ask(self):
        if time.monotonic() - self.renewed > RENEW_SECONDS:
            for name in set(self.names) - self.lost:
                self.api.patch(f"{LEASES}/{name}", {"spec": {"renewTime": now("%Y-%m-%dT%H:%M:%S.%fZ")}})
            self.renewed = time.monotonic()
        for pod in self.api.get(PODS)["items"]:
            if pod["spec"].get("nodeName") in set(self.names) - self.lost:
                try:
                    self.look_after(pod)
                except Refused as refused:
                    # It has changed meanwhile, or is gone.
                    if refused.status not in (404, 409):
                        raise

    def look_after(self, pod):
        phase = pod["status"].get("phase")
        is_over = phase in ("Succeeded", "Failed")
        if "deletionTimestamp" in pod["metadata"]:
            uid = pod["metadata"]["uid"]
            if is_over:
                self.api.call("DELETE", path_of(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
            elif time.monotonic() - self.terminating.setdefault(uid, time.monotonic()) >= GRACE_SECONDS:
                self.finish(pod, 143)
        elif phase == "Pending":
            self.report(pod, "Running", "True", {"running": {"startedAt": now()}})

    def finish(self, pod, code, condition=None):
        """The program of a pod ends with this code; `condition` is one that the kubelet adds."""
        reason = "Error" if code else "Completed"
        state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now(), "finishedAt": now()}}
        self.report(pod, "Failed" if code else "Succeeded", "False", state, condition)

    def shut_down(self, pod):
        """The machine of a pod shuts down in good order: its kubelet ends the pod."""
        self.finish(pod, 143, {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
                               "message": "Pod was terminated in response to imminent node shutdown.", "lastTransitionTime": now()})

    def report(self, pod, phase, ready, state, condition=None):
        conditions = [{"type": name, "status": value, "lastTransitionTime": now()}
                      for name, value in (("Initialized", "True"), ("ContainersReady", ready), ("Ready", ready))]
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
        self.api.patch(f"{path_of(pod)}/status", {"status": {
            "phase": phase, "startTime": now(), "podIP": "10.2.0.2", "conditions": conditions + ([condition] if condition else []),
            "initContainerStatuses": [status_of(container, done, "False") for container in pod["spec"].get("initContainers", [])],
            "containerStatuses": [status_of(container, state, ready) for container in pod["spec"]["containers"]],
        }}, STRATEGIC_MERGE)


def status_of(container, state, ready):
    return {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0, "ready": ready == "True",
            "started": ready == "True", "state": state}
