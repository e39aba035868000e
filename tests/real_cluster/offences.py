"""Pods with power over machines, which a user of a team tries to create in every way there is."""

import dataclasses
import json

import yaml

from chapters import say
from images import JOB_IMAGE

TEAM = "vision"
SIMPLE_JOB = f"""
name: %(name)s
%(namespace)sframework: program
image: {JOB_IMAGE}
replicas: 1
cpu: 10m
memory: 128Mi
sharedMemory: 64Mi
retries: 0
deadline: 1h
command: [sleep, "3600"]
"""


@dataclasses.dataclass(frozen=True)
class Offence:
    """What no pod of a team may have: where it is in the pod's specification, and what is said."""

    name: str
    spec: dict
    reason: str
    # Of the container.
    container: dict = dataclasses.field(default_factory=dict)

    def applied_to(self, spec):
        """A pod's specification with the offence, in its last container."""
        spec = spec | {key: spec.get(key, []) + value if isinstance(value, list) else value for key, value in self.spec.items()}
        *others, last = spec["containers"]
        return spec | {"containers": [*others, last | self.container]}


OFFENCES = [
    Offence("privileged", {}, "violates PodSecurity", {"securityContext": {"privileged": True}}),
    Offence("host-path", {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, "violates PodSecurity"),
    Offence("host-network", {"hostNetwork": True}, "violates PodSecurity"),
    Offence("host-process-ids", {"hostPID": True}, "violates PodSecurity"),
    Offence("own-nfs", {"volumes": [{"name": "files", "nfs": {"server": "10.0.0.9", "path": "/"}}]},
            "pods of a team may mount claims, and volumes of configMap"),
    Offence("control-plane", {"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]},
            "pods of a team may not tolerate taints of the control plane"),
    Offence("every-taint", {"tolerations": [{"operator": "Exists"}]}, "pods of a team may not tolerate taints of the control plane, nor all taints"),
    Offence("node-by-name", {"nodeName": "a-controller"}, "pods of a team may not name their node"),
]


class OffenceChecks:
    """For a class of chapters whose `user` is a team's."""

    def check_offences(self):
        """As pods, and as those of Jobs, Deployments and JobSets, which never come to be."""
        simple = {"restartPolicy": "Never", "containers": [{"name": "main", "image": JOB_IMAGE, "command": ["sleep", "3600"]}]}
        for offence in OFFENCES:
            spec, labels = offence.applied_to(simple), {"offence": offence.name}
            with self.subTest(offence=offence.name, kind="Pod"):
                done = self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": offence.name, "labels": labels}, "spec": spec})
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(offence.reason, done.stderr)
            template = {"metadata": {"labels": labels}, "spec": spec}
            running = template | {"spec": spec | {"restartPolicy": "Always"}}
            for kind in (
                {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}},
                {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"matchLabels": labels}, "template": running}},
            ):
                self.assertEqual(self.create(kind | {"metadata": {"name": f"offence-{offence.name}"}}).returncode, 0)
            self.submit_jobset(offence)
        for offence in OFFENCES:
            for kind in ("Job", "ReplicaSet"):
                with self.subTest(offence=offence.name, kind=kind):
                    self.wait_for("the refusal", lambda: self.reasons(kind, f"offence-{offence.name}"), 60)
                    self.assertIn(offence.reason, self.reasons(kind, f"offence-{offence.name}"))
            with self.subTest(offence=offence.name, kind="JobSet"):
                self.check_jobset(offence)
        names = [pod["metadata"]["name"] for pod in self.get("pods", f"--namespace={TEAM}")["items"]]
        self.assertEqual([name for name in names if name.startswith(("offence-", "set-"))], [])
        self.assertEqual(self.get("pods", f"--namespace={TEAM}", "--selector=offence")["items"], [])
        self.user.kubectl("delete", "jobs,deployments", *(f"offence-{offence.name}" for offence in OFFENCES), "--wait=false")

    def create(self, *objects):
        return self.user.kubectl("create", "--filename=-", input="\n---\n".join(map(json.dumps, objects)))

    def submit_jobset(self, offence):
        """A job that infra knows, with the offence in the pods that train."""
        name = f"set-{offence.name}"
        self.user.write("job.yaml", SIMPLE_JOB % {"name": name, "namespace": ""})
        rendered = list(yaml.safe_load_all(self.user.infra("job", "render", verbose=False).stdout))
        for thing in rendered:
            thing["metadata"]["namespace"] = TEAM
            if thing["kind"] == "JobSet":
                for job in thing["spec"]["replicatedJobs"]:
                    pod = job["template"]["spec"]["template"]
                    pod["spec"] = offence.applied_to(pod["spec"])
        wanted = [thing for thing in rendered if thing["kind"] in ("ConfigMap", "JobSet", "Service")]
        done = self.create(*wanted)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check_jobset(self, offence):
        name = f"set-{offence.name}"
        self.wait_for("status says why", lambda: offence.reason in self.user.infra("job", "status", name, verbose=False).stdout, 60)
        status = self.user.infra("job", "status", name, verbose=False).stdout
        self.assertIn("no pod can be created", status)
        why = self.user.infra("job", "why", name, verbose=False)
        self.assertIn(offence.reason, why.stdout)
        say(f"  {offence.name}: {[line for line in why.stdout.splitlines() if offence.reason in line][0].strip()[:230]}")
        self.user.infra("job", "delete", name, "--yes")

    def reasons(self, kind, name):
        """Why pods of these were not created, in the words of events."""
        events = self.get("events", f"--namespace={TEAM}", f"--field-selector=reason=FailedCreate,involvedObject.kind={kind}")["items"]
        return " ".join(event["message"] for event in events if event["involvedObject"]["name"].startswith(name))
