//! How often what a job runs was restarted, and whether that counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replica::is_of;
use crate::job::objects::IMPORT_RETRIES;
use crate::kube::{Job, JobSet, Pod};
use crate::plural::count_of;

/// How often a group or an import was restarted, and why.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restarts {
    /// Restarts because a process failed; these count.
    pub failures: u32,
    /// Restarts because a machine was lost, a pod was evicted or a node was drained; these do not count.
    pub lost_machines: u32,
    /// How many failures it may have: its retries.
    pub allowed: u32,
}

impl Restarts {
    /// The restarts of a group.
    pub(super) fn of(set: &JobSet) -> Self {
        Self {
            failures: set.counted_restarts,
            lost_machines: set.restarts.saturating_sub(set.counted_restarts),
            allowed: set.allowed_restarts,
        }
    }

    /// The restarts of an import: each of its pods but the newest was replaced.
    pub(super) fn of_import(role: &str, job: &Job, pods: &[Pod]) -> Self {
        let mut own: Vec<&Pod> = pods.iter().filter(|pod| is_of(pod, role, job)).collect();
        own.sort_by_key(|pod| (&pod.created, &pod.name));
        own.pop();
        let lost = own.iter().filter(|pod| pod.disruption.is_some()).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { failures: count(own.len() - lost), lost_machines: count(lost), allowed: IMPORT_RETRIES }
    }

    /// The attempt that the group is in, counted from 0.
    #[must_use]
    pub(crate) fn attempt(&self) -> u32 {
        self.failures.saturating_add(self.lost_machines)
    }

    /// The restarts in words; nothing if there were none.
    #[must_use]
    pub(crate) fn in_words(&self) -> Option<String> {
        let failures = (self.failures > 0)
            .then(|| format!("{} of {}", count_of(self.failures, "failure"), self.allowed));
        let lost = (self.lost_machines > 0).then(|| count_of(self.lost_machines, "lost machine"));
        let parts: Vec<String> = failures.into_iter().chain(lost).collect();
        (!parts.is_empty()).then(|| format!("restarted after {}", parts.join(" and ")))
    }
}
