//! Names and labels of a job's objects.

use super::framework::Framework;
use super::training::{Scale, TrainingJob};
use crate::well_known::GPU_COUNT_LABEL;
pub(super) use crate::well_known::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, FRAMEWORK_LABEL, JOB_LABEL, JOB_ROLE_LABEL as ROLE_LABEL,
    PATH_ANNOTATION, POOL_LABEL, RUN_LABEL,
};

/// The role of what shows results.
pub(super) const TENSORBOARD_ROLE: &str = "tensorboard";
/// The Kueue queue a Job waits in.
pub(super) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Which tool created an object.
pub(super) const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// This program, as the manager of an object.
pub(super) const MANAGER: &str = "infra";

/// Where pods find our scripts.
pub(super) const SCRIPT_DIRECTORY: &str = "/opt/infra";

/// The ConfigMap with a job's scripts.
pub(super) fn scripts_name(job: &str) -> String {
    format!("{job}-scripts")
}

/// The Job that imports data.
pub(super) fn data_job_name(job: &str) -> String {
    format!("{job}-data")
}

/// The TensorBoard and its Service.
pub(super) fn tensorboard_name(job: &str) -> String {
    format!("{job}-tensorboard")
}

/// The Kubernetes Jobs of a training job: role, name and how many pods.
pub(super) fn role_jobs(job: &TrainingJob) -> Vec<(&'static str, String, u32)> {
    role_jobs_of(job.name.as_str(), job.framework, &job.scale)
}

pub(super) fn role_jobs_of(
    name: &str,
    framework: Framework,
    scale: &Scale,
) -> Vec<(&'static str, String, u32)> {
    match scale {
        Scale::Replicas(count) => vec![(framework.replica_role(), name.to_owned(), *count)],
        Scale::Servers { servers, workers, .. } => {
            vec![("ps", format!("{name}-ps"), *servers), ("worker", format!("{name}-worker"), *workers)]
        }
    }
}

/// For pods that help a job and need no GPU: anywhere but on a GPU machine, unless there is nothing else.
pub(super) fn helper_affinity() -> serde_json::Value {
    serde_json::json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "preference": {"matchExpressions": [{"key": GPU_COUNT_LABEL, "operator": "DoesNotExist"}]},
    }]}})
}
