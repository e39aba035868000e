//! Names and labels of a job's objects.

use super::framework::Framework;
use super::training::Scale;
pub(super) use crate::well_known::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, FRAMEWORK_LABEL, JOB_LABEL, JOB_ROLE_LABEL as ROLE_LABEL, MANAGER,
    MANAGER_LABEL, PATH_ANNOTATION, POOL_LABEL, RESUMED_ANNOTATION, RUN_LABEL, RUNS_LABEL, TENSORBOARD_ROLE,
};
use crate::well_known::{GPU_COUNT_LABEL, SCRATCH_LABEL};

/// The role of parameter servers.
pub(super) const SERVER_ROLE: &str = "ps";
/// The Kueue queue a job waits in.
pub(super) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";

/// Where pods find our scripts.
pub(super) const SCRIPT_DIRECTORY: &str = "/opt/infra";

/// Where pods find what they have of their machine's own drives.
pub(super) const SCRATCH_DIRECTORY: &str = "/mnt/scratch";

/// The ConfigMap with a job's scripts.
pub(super) fn scripts_name(job: &str) -> String {
    format!("{job}-scripts")
}

/// The Job that imports data.
pub(super) fn data_job_name(job: &str) -> String {
    format!("{job}-data")
}

/// Where a TensorBoard listens.
pub(crate) const TENSORBOARD_PORT: u16 = 6006;

/// The TensorBoard and its Service.
pub(super) fn tensorboard_name(job: &str) -> String {
    format!("{job}-tensorboard")
}

/// The roles of a job and how many pods each has; the role that trains comes last.
pub(super) fn roles_of_scale(framework: Framework, scale: &Scale) -> Vec<(&'static str, u32)> {
    match scale {
        Scale::Replicas(count) => vec![(framework.replica_role(), *count)],
        Scale::Servers { servers, workers, .. } => vec![(SERVER_ROLE, *servers), ("worker", *workers)],
    }
}

/// The Kubernetes Job that JobSet creates for a role.
pub(super) fn role_job_name(job: &str, role: &str) -> String {
    format!("{job}-{role}-0")
}

/// The host name of a pod, below the name of its job. It is the same in every attempt.
pub(super) fn pod_host_name(job: &str, role: &str, index: u32) -> String {
    format!("{}-{index}", role_job_name(job, role))
}

/// The name that resolves to the addresses of all pods of a job that have one.
pub(super) fn group_host_name(job: &str, namespace: &str) -> String {
    format!("{job}.{namespace}.svc.cluster.local")
}

/// For pods that help a job and need no GPU: anywhere but on a GPU machine, unless there is nothing else.
pub(super) fn helper_affinity() -> serde_json::Value {
    serde_json::json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "preference": {"matchExpressions": [{"key": GPU_COUNT_LABEL, "operator": "DoesNotExist"}]},
    }]}})
}

/// For pods that have scratch: on machines that have put their own drives together, wherever else there is as much space.
pub(super) fn require_scratch(affinity: &mut serde_json::Value) {
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = serde_json::json!({
        "nodeSelectorTerms": [{"matchExpressions": [{"key": SCRATCH_LABEL, "operator": "Exists"}]}],
    });
}
