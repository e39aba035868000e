"""A JobSet as users write it, and JobSets that are refused."""

import copy
import json

from images import JOB_IMAGE

# Its first attempt fails, and its second succeeds: the attempt is a label that JobSet sets.
ATTEMPT = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}}
CONTAINER = {"name": "main", "image": JOB_IMAGE, "command": ["sh", "-c", "test $ATTEMPT = 1"], "env": [ATTEMPT]}
POD = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [CONTAINER]}}
WORKER = {"name": "worker", "replicas": 1, "groupName": "default", "template": {"spec": {
    "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0, "template": POD}}}
PAIR = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "pair", "namespace": "default"},
    "spec": {
        "suspend": True,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": "pair"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["worker"]},
        "failurePolicy": {"maxRestarts": 1, "restartStrategy": "BlockingRecreate", "rules": [{"name": "failed", "action": "RestartJobSet"}]},
        "replicatedJobs": [WORKER],
    },
}
RULE = {"name": "lost", "action": "RestartJobSetAndIgnoreMaxRestarts"}
OTHER = {**WORKER, "name": "other"}


def on_nodes(selector):
    """The worker of the pair, with a selector of nodes."""
    worker = copy.deepcopy(WORKER)
    worker["template"]["spec"]["template"]["spec"]["nodeSelector"] = selector
    return worker


def changed(changes):
    """The pair, not suspended, with other values by their paths, such as spec/network/subdomain."""
    body = copy.deepcopy(PAIR)
    del body["spec"]["suspend"]
    for path, value in changes.items():
        *way, last = path.split("/")
        part = body
        for key in way:
            part = part[int(key) if isinstance(part, list) else key]
        part[last] = copy.deepcopy(value)
    return json.dumps(body)


CLAIM = {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
# What is created, and words of the refusal; third, words of JobSet's own definition where that is the first to refuse.
REFUSED = [
    ({"metadata/name": "a" * 50}, f"and {'a' * 50}-worker-0-1-xxxxx has 67"),
    ({"metadata/name": "a.b"}, "the name of a JobSet begins with a lowercase letter"),
    ({"metadata/name": "1a"}, "the name of a JobSet begins with a lowercase letter"),
    ({"spec/replicatedJobs/0/name": "Worker", "spec/successPolicy": {"operator": "All"}}, "the names and groupNames of spec.replicatedJobs"),
    ({"spec/replicatedJobs/0/groupName": "1"}, "the names and groupNames of spec.replicatedJobs"),
    ({"spec/network/subdomain": "a.b"}, "spec.network.subdomain is the name of a Service"),
    ({"spec/replicatedJobs/0/replicas": 2147483647}, "replicas times parallelism"),
    ({"spec/successPolicy/targetReplicatedJobs": ["chief"]}, "spec.successPolicy.targetReplicatedJobs names a replicatedJob that does not exist"),
    ({"spec/failurePolicy/rules": [{**RULE, "targetReplicatedJobs": ["chief"]}]}, "a rule of spec.failurePolicy names a replicatedJob"),
    ({"spec/failurePolicy/rules": [{**RULE, "name": "my rule"}]}, "the name of a rule of spec.failurePolicy begins with a letter"),
    ({"spec/failurePolicy/rules": [RULE, RULE]}, "two rules of spec.failurePolicy have the same name"),
    ({"spec/failurePolicy/rules": [{**RULE, "onJobFailureReasons": ["BadLuck"]}]}, "onJobFailureReasons of spec.failurePolicy knows"),
    ({"spec/failurePolicy/rules": [{**RULE, "action": "RestartJob"}]}, "the action of a rule of spec.failurePolicy is FailJobSet"),
    ({"spec/failurePolicy/restartStrategy": "InPlaceRestart"}, "spec.failurePolicy.restartStrategy is Recreate"),
    ({"spec/replicatedJobs": [WORKER, {**OTHER, "dependsOn": [{"name": "third", "status": "Ready"}]}]}, "one that does not come before it"),
    ({"spec/replicatedJobs": [{**OTHER, "dependsOn": [{"name": "worker", "status": "Ready"}]}, WORKER]}, "one that does not come before it"),
    ({"spec/replicatedJobs": [WORKER, {**OTHER, "dependsOn": [{"name": "worker", "status": "Ready"}]}],
      "spec/startupPolicy/startupPolicyOrder": "InOrder"}, "InOrder and dependsOn exclude each other",
     "StartupPolicy and DependsOn APIs are mutually exclusive"),
    ({"spec/coordinator": {"replicatedJob": "worker", "podIndex": 2}}, "spec.coordinator is not a pod"),
    ({"spec/coordinator": {"replicatedJob": "worker"}, "spec/network/subdomain": "a" * 50}, "the address of spec.coordinator"),
    ({"spec/managedBy": "me"}, "spec.managedBy is a domain"),
    ({"spec/volumeClaimPolicies": [{"templates": [CLAIM]}]}, "spec.volumeClaimPolicies is not supported"),
    ({"metadata/annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}}, "exclusive placement"),
    ({"spec/replicatedJobs/0/template/metadata": {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}}}, "exclusive placement"),
]
# What has to be accepted, so that the words above are not those of a policy that refuses everything.
ACCEPTED = [
    {},
    {"metadata/name": "a" * 46},
    {"spec/replicatedJobs": [WORKER, {**OTHER, "dependsOn": [{"name": "worker", "status": "Ready"}]}]},
    {"spec/coordinator": {"replicatedJob": "worker", "podIndex": 1}},
    {"spec/managedBy": "kueue.x-k8s.io/multikueue"},
]
# The least that JobSet's webhooks would accept. Our definition sets the rest; with JobSet's own, nobody does, and it is refused.
SHORTEST = {"spec": {"replicatedJobs": [{"name": "worker", "template": {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}}]}}
WITHOUT_DEFAULTS = "the cluster has a definition of JobSets without defaults"
# Of the pair while it runs; as in REFUSED.
UNCHANGEABLE = [
    ({"network": {"subdomain": "other"}}, "network, successPolicy, startupPolicy and managedBy", "Value is immutable"),
    ({"successPolicy": {"operator": "Any"}}, "network, successPolicy, startupPolicy and managedBy", "Value is immutable"),
    ({"replicatedJobs": [WORKER, OTHER]}, "a JobSet keeps its replicatedJobs"),
    ({"replicatedJobs": [{**WORKER, "replicas": 2}]}, "a JobSet keeps its replicatedJobs"),
    ({"replicatedJobs": [{**WORKER, "groupName": "other"}]}, "can be changed only while the JobSet is suspended"),
]
