//! The JobSet of a job: one replicated Job a role, restarted as one group.

use serde_json::{Value, json};

use super::job::{LostMachine, with_failure_policy};
use super::metadata::{metadata, pod_metadata};
use super::training::pod_spec;
use crate::job::names::{CLAIM_ANNOTATION, DIGEST_ANNOTATION, PATH_ANNOTATION, QUEUE_LABEL, RUN_LABEL};
use crate::job::run::Run;
use crate::job::workload::RolePlan;

/// The version of JobSet's API that objects are written in.
const API_VERSION: &str = "jobset.x-k8s.io/v1alpha2";
/// The JobSet and its last pods are kept for a week after it is done.
const SECONDS_KEPT: u32 = 604_800;
/// What Kubernetes says of a Job that failed because a script exited with 64.
const SAID_OF_MISCONFIGURED: &str = "failed with exit code 64 matching FailJob rule";
/// What Kubernetes says of a Job that failed because a machine was lost.
const SAID_OF_LOST_MACHINE: &str = "has condition DisruptionTarget matching FailJob rule";
/// What Kubernetes says of a Job that failed because a machine was without power for a moment.
const SAID_OF_POWER_CUT: &str = "failed with exit code 255 matching FailJob rule";

/// The JobSet of a run. Its defaults are written out, since they are the webhook's, and there may be none.
pub(super) fn job_set(run: &Run) -> Value {
    let workload = &run.workload;
    let mut metadata = metadata(workload, &workload.name, None);
    metadata["labels"][RUN_LABEL] = json!(run.name);
    metadata["annotations"] = json!({
        DIGEST_ANNOTATION: run.digest,
        CLAIM_ANNOTATION: workload.claim,
        PATH_ANNOTATION: workload.path,
    });
    let jobs: Vec<Value> = workload.roles.iter().map(|role| replicated_job(run, role)).collect();
    let mut spec = json!({
        "network": {
            "enableDNSHostnames": true,
            // Pods wait for each other before they are ready.
            "publishNotReadyAddresses": true,
            "subdomain": workload.name,
        },
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "successPolicy": {
            "operator": "All",
            "targetReplicatedJobs": workload.training_role().map(|role| [role.role]),
        },
        "failurePolicy": failure_policy(workload.retries),
        "ttlSecondsAfterFinished": SECONDS_KEPT,
        "replicatedJobs": jobs,
    });
    if let Some(queue) = &workload.queue {
        // Kueue starts it when the quota allows.
        metadata["labels"][QUEUE_LABEL] = json!(queue);
        spec["suspend"] = json!(true);
    }
    json!({"apiVersion": API_VERSION, "kind": "JobSet", "metadata": metadata, "spec": spec})
}

/// What a failed Job means for the group: the first rule that matches decides.
fn failure_policy(retries: u32) -> Value {
    json!({
        "maxRestarts": retries,
        // All pods of an attempt are gone before the next one begins.
        "restartStrategy": "BlockingRecreate",
        "rules": [
            {
                "name": "cannotSucceed",
                "action": "FailJobSet",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": [SAID_OF_MISCONFIGURED],
            },
            {
                "name": "machineLost",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": [SAID_OF_LOST_MACHINE, SAID_OF_POWER_CUT],
            },
            {
                "name": "deadlinePassed",
                "action": "FailJobSet",
                "onJobFailureReasons": ["DeadlineExceeded"],
            },
            {"name": "failed", "action": "RestartJobSet"},
        ],
    })
}

fn replicated_job(run: &Run, role: &RolePlan) -> Value {
    let workload = &run.workload;
    let mut labels = metadata(workload, "", Some(role.role))["labels"].clone();
    let mut pod_metadata = pod_metadata(workload, role.role);
    labels[RUN_LABEL] = json!(run.name);
    pod_metadata["labels"][RUN_LABEL] = json!(run.name);
    let mut spec = json!({
        "completionMode": "Indexed",
        "parallelism": role.replicas,
        "completions": role.replicas,
        // Every failure is the group's.
        "backoffLimit": 0,
        "template": {"metadata": pod_metadata, "spec": pod_spec(run, role)},
    });
    if let Some(seconds) = workload.deadline_seconds {
        // Of one attempt; launchers end with the deadline of the whole job.
        spec["activeDeadlineSeconds"] = json!(seconds);
    }
    let trains = workload.training_role().is_some_and(|training| training.role == role.role);
    if trains && workload.framework.is_complete_with_first() && role.replicas > 1 {
        spec["successPolicy"] = json!({"rules": [{"succeededIndexes": "0"}]});
    }
    let lost = LostMachine::Fail { has_launcher: !workload.scripts.is_empty() };
    json!({
        "name": role.role,
        "groupName": "default",
        "replicas": 1,
        "template": {"metadata": {"labels": labels}, "spec": with_failure_policy(spec, lost)},
    })
}
