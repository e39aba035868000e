//! One replica of a job: the newest of the pods that had its number.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::job::names::{ROLE_LABEL, RUN_LABEL};
use crate::kube::{Job, JobEnd, Pod, PodPhase};

/// One process of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaReport {
    /// The role of the replica.
    pub role: String,
    /// The index of the replica.
    pub index: u32,
    /// The newest pod of the replica; null if there is none.
    pub pod: Option<String>,
    /// The node of the pod; null before it has one.
    pub node: Option<String>,
    /// The phase of that pod, or why there is none.
    pub phase: ReplicaPhase,
    /// How often the replica was restarted, usually with its whole group.
    pub restarts: u32,
    /// GPUs that the pod holds.
    pub gpus: u32,
    /// What the pod is waiting for, or how it ended.
    pub detail: Option<String>,
    /// When the pod ended, as the API writes it.
    #[serde(skip)]
    pub ended: Option<String>,
    /// What the pod ended with.
    #[serde(skip)]
    pub exit_code: Option<i64>,
    /// Why Kubernetes terminated the pod, if it was not its own doing.
    #[serde(skip)]
    pub disruption: Option<String>,
}

impl ReplicaReport {
    /// The name of the replica, as in front of its lines and of its directory of logs: `worker-2`.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.role, self.index)
    }
}

/// The phase of a replica: that of its newest pod, in Kubernetes' words, or why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum ReplicaPhase {
    /// The pod is waiting for a node, an image or a volume.
    Pending,
    /// The pod is running.
    Running,
    /// The pod succeeded.
    Succeeded,
    /// The pod failed.
    Failed,
    /// The node of the pod does not answer.
    Unknown,
    /// The pod is terminating.
    Terminating,
    /// The Job is suspended, and has no pods.
    Held,
    /// The job ended, and the pod was terminated before it succeeded.
    Removed,
}

impl fmt::Display for ReplicaPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
            Self::Terminating => "Terminating",
            Self::Held => "Held",
            Self::Removed => "Removed",
        })
    }
}

/// A line for each of a Job's numbers.
pub(super) fn replicas_of(role: &str, job: &Job, pods: &[Pod]) -> Vec<ReplicaReport> {
    let own: Vec<&Pod> = pods.iter().filter(|pod| is_of(pod, role, job)).collect();
    (0..job.completions)
        .map(|index| {
            let of_index = own.iter().copied().filter(|pod| pod.index == Some(index)).collect();
            replica_line(role, index, of_index, job, || phase_without_pod(job, index))
        })
        .collect()
}

/// The line of an import, which has no index. It has ended when its Job has: a failed pod is retried.
pub(super) fn import_of(role: &str, job: &Job, pods: &[Pod]) -> ReplicaReport {
    let own = pods.iter().filter(|pod| is_of(pod, role, job)).collect();
    let mut line = replica_line(role, 0, own, job, || ReplicaPhase::Pending);
    line.phase = match job.end {
        Some(JobEnd::Complete) => ReplicaPhase::Succeeded,
        Some(JobEnd::Failed { .. }) => ReplicaPhase::Failed,
        None if line.phase == ReplicaPhase::Running => ReplicaPhase::Running,
        None => ReplicaPhase::Pending,
    };
    line
}

/// Whether a pod is of this Job and not of an earlier one of the same name.
pub(super) fn is_of(pod: &Pod, role: &str, job: &Job) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    label(ROLE_LABEL) == Some(role) && label(RUN_LABEL) == job.labels.get(RUN_LABEL).map(String::as_str)
}

fn replica_line(
    role: &str,
    index: u32,
    mut own: Vec<&Pod>,
    job: &Job,
    phase_without: impl Fn() -> ReplicaPhase,
) -> ReplicaReport {
    own.sort_by(|one, other| (&one.created, &one.name).cmp(&(&other.created, &other.name)));
    let newest = own.last();
    ReplicaReport {
        role: role.to_owned(),
        index,
        pod: newest.map(|pod| pod.name.clone()),
        node: newest.and_then(|pod| pod.node.clone()),
        phase: newest.map_or_else(phase_without, |pod| replica_phase(pod)),
        restarts: u32::try_from(own.len().saturating_sub(1)).unwrap_or(u32::MAX),
        gpus: newest.map_or(0, |pod| pod.gpus),
        detail: newest.map_or_else(|| job.detail.clone(), |pod| pod.detail.clone()),
        ended: newest.and_then(|pod| pod.ended.clone()),
        exit_code: newest.and_then(|pod| pod.exit_code),
        disruption: newest.and_then(|pod| pod.disruption.clone()),
    }
}

fn replica_phase(pod: &Pod) -> ReplicaPhase {
    match pod.phase {
        PodPhase::Pending => ReplicaPhase::Pending,
        // A pod on a lost machine stays like this until it is deleted by hand.
        PodPhase::Running if pod.leaving => ReplicaPhase::Terminating,
        PodPhase::Running => ReplicaPhase::Running,
        PodPhase::Succeeded => ReplicaPhase::Succeeded,
        PodPhase::Failed => ReplicaPhase::Failed,
        PodPhase::Unknown => ReplicaPhase::Unknown,
    }
}

/// Pods of a Job that failed are removed with it, and those of a lost machine some time after.
fn phase_without_pod(job: &Job, index: u32) -> ReplicaPhase {
    match &job.end {
        _ if job.has_completed(index) => ReplicaPhase::Succeeded,
        Some(JobEnd::Complete) => ReplicaPhase::Succeeded,
        Some(JobEnd::Failed { .. }) => ReplicaPhase::Removed,
        None if job.suspended => ReplicaPhase::Held,
        None => ReplicaPhase::Pending,
    }
}
