//! Names and labels of a job's objects.

use super::framework::Framework;
use super::training::{Scale, TrainingJob};

/// Which job an object belongs to.
pub(super) const JOB_LABEL: &str = "infra.internal/job";
/// What a pod does in it.
pub(super) const ROLE_LABEL: &str = "infra.internal/role";
/// The role of what shows results.
pub(super) const TENSORBOARD_ROLE: &str = "tensorboard";
/// Whose contract it follows.
pub(super) const FRAMEWORK_LABEL: &str = "infra.internal/framework";
/// Which run of the job it is.
pub(super) const RUN_LABEL: &str = "infra.internal/run";
/// What the job was rendered from: the same digest is the same job.
pub(super) const DIGEST_ANNOTATION: &str = "infra.internal/digest";
/// The claim a job writes to.
pub(super) const CLAIM_ANNOTATION: &str = "infra.internal/claim";
/// Its directory there.
pub(super) const PATH_ANNOTATION: &str = "infra.internal/path";
/// The pool a node belongs to.
pub(super) const POOL_LABEL: &str = "infra.internal/pool";
/// The Kueue queue a Job waits in.
pub(super) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Who makes and removes an object.
pub(super) const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// Us, as such a manager.
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

/// What machines with GPUs are labelled with.
const GPU_LABEL: &str = "infra.internal/gpu-count";

/// For pods that help a job and need no GPU: anywhere but on a GPU machine, unless there is nothing else.
pub(super) fn helper_affinity() -> serde_json::Value {
    serde_json::json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "preference": {"matchExpressions": [{"key": GPU_LABEL, "operator": "DoesNotExist"}]},
    }]}})
}
