//! One state for a whole job, and the reason for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::replica::{ReplicaPhase, ReplicaReport};
use crate::job::names::QUEUE_LABEL;
use crate::kube::{Job, JobEnd};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobState {
    /// The data is being imported; no GPU is held.
    Importing,
    /// Training is held back: until the data is imported, or by the queue.
    Held,
    /// Pods are waiting for machines, images or each other.
    Starting,
    /// All pods are running.
    Running,
    /// All pods are done.
    Complete,
    /// The job failed.
    Failed,
}

impl JobState {
    /// Whether nothing more will happen.
    #[must_use]
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    /// The name of the state.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Importing => "importing",
            Self::Held => "held",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

/// The state of a job that an earlier version of infra submitted, or that has no training objects yet, from its Jobs and how their pods
/// are.
pub(super) fn state_of_jobs(
    training: &[&Job],
    import: Option<(&Job, &ReplicaReport)>,
    replicas: &[ReplicaReport],
) -> (JobState, Option<String>) {
    // The other role fails because of the first, and says nothing about why.
    let failures = training.iter().filter_map(|job| match &job.end {
        Some(JobEnd::Failed { reason, at }) => Some((at, reason)),
        _ => None,
    });
    if let Some((_, reason)) = failures.min_by_key(|(at, _)| *at) {
        return (JobState::Failed, Some(reason.clone()));
    }
    if !training.is_empty() && training.iter().all(|job| job.end == Some(JobEnd::Complete)) {
        return (JobState::Complete, None);
    }
    let is_held = training.is_empty() || training.iter().any(|job| job.suspended);
    match import.map(|(job, line)| (&job.end, line)) {
        Some((Some(JobEnd::Failed { reason, .. }), _)) => {
            return (JobState::Failed, Some(format!("its data: {reason}")));
        }
        Some((None, line)) if is_held => {
            return (JobState::Importing, line.detail.as_ref().map(|detail| format!("its data: {detail}")));
        }
        _ => {}
    }
    if is_held {
        let held = training.iter().find(|job| job.suspended);
        return (JobState::Held, Some(explain_hold(held.map_or(&BTreeMap::new(), |job| &job.labels))));
    }
    state_of_pods(replicas)
}

/// The state of a job whose pods exist or are awaited.
pub(super) fn state_of_pods(replicas: &[ReplicaReport]) -> (JobState, Option<String>) {
    let waiting = replicas
        .iter()
        .find(|replica| !matches!(replica.phase, ReplicaPhase::Running | ReplicaPhase::Succeeded));
    match waiting {
        Some(replica) => {
            let detail = replica.detail.clone().unwrap_or_else(|| replica.phase.to_string());
            (JobState::Starting, Some(format!("{} {}: {detail}", replica.role, replica.index)))
        }
        None => (JobState::Running, None),
    }
}

/// What a job with these labels is held back by.
pub(super) fn explain_hold(labels: &BTreeMap<String, String>) -> String {
    match labels.get(QUEUE_LABEL) {
        Some(queue) => format!("queue {queue} has not admitted it yet"),
        None => "its data is imported; `infra job submit` starts training".to_owned(),
    }
}
