//! Jobs: how many of their pods are done, and how it ended.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::list::{Condition, ConditionStatus, Object};
use super::message::one_line;
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

/// A Job.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "JobDocument")]
pub(crate) struct Job {
    /// The namespace of the Job.
    pub namespace: String,
    /// The uid, which distinguishes the Job from others of the same name.
    pub uid: String,
    /// When it was created, as the API writes it.
    pub created: String,
    /// The labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the Job.
    pub annotations: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// Whether the Job is suspended, so that it has no pods.
    pub suspended: bool,
    /// How many pods have to succeed.
    pub completions: u32,
    /// The number of pods that have succeeded.
    pub succeeded: u32,
    /// The completion indexes that have succeeded, as ranges with both ends.
    pub completed: Vec<(u32, u32)>,
    /// The number of pods that are pending or running.
    pub active: u32,
    /// How it ended.
    pub end: Option<JobEnd>,
    /// What keeps it from creating pods; only events say that.
    pub detail: Option<String>,
}

/// How a Job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    /// All its pods succeeded.
    Complete,
    /// The Job has failed.
    Failed {
        /// Why, in Kubernetes' words.
        reason: String,
        /// When, as the API writes it: later is greater.
        at: Option<String>,
    },
}

type JobDocument = Object<Spec, Status>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    suspend: bool,
    completions: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    active: u32,
    succeeded: u32,
    completed_indexes: String,
    conditions: Vec<Condition>,
}

impl From<JobDocument> for Job {
    fn from(document: JobDocument) -> Self {
        let JobDocument { metadata, spec, status } = document;
        let end =
            status.conditions.iter().filter(|condition| condition.status == ConditionStatus::True).find_map(
                |condition| match condition.kind.as_str() {
                    "Complete" => Some(JobEnd::Complete),
                    "Failed" => Some(JobEnd::Failed {
                        reason: one_line(&format!("{}: {}", condition.reason, condition.message)),
                        at: condition.since.clone(),
                    }),
                    _ => None,
                },
            );
        Self {
            namespace: metadata.namespace,
            uid: metadata.uid,
            created: metadata.creation_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            leaving: metadata.deletion_timestamp.is_some(),
            suspended: spec.suspend,
            completions: spec.completions.unwrap_or(1),
            succeeded: status.succeeded,
            completed: condition_rows(&status.completed_indexes),
            active: status.active,
            end,
            detail: None,
        }
    }
}

/// `0-2,5` as rows of numbers.
fn condition_rows(text: &str) -> Vec<(u32, u32)> {
    let row = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.split(',').filter_map(row).collect()
}

impl Job {
    /// A Job that its JobSet has not created yet.
    #[must_use]
    pub(crate) fn awaited(completions: u32, suspended: bool) -> Self {
        Self {
            namespace: String::new(),
            uid: String::new(),
            created: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            leaving: false,
            suspended,
            completions,
            succeeded: 0,
            completed: Vec::new(),
            active: 0,
            end: None,
            detail: None,
        }
    }

    /// Whether the pod with this index has succeeded, even if it was deleted since.
    #[must_use]
    pub(crate) fn has_completed(&self, index: u32) -> bool {
        self.completed.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }
}

impl ApiServer {
    /// The Jobs that a label selector chooses, in one namespace or in all.
    pub(crate) async fn jobs(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Job>, KubeError> {
        let path = match namespace {
            Some(namespace) => format!("/apis/batch/v1/namespaces/{}/jobs", encode_path_segment(namespace)),
            None => "/apis/batch/v1/jobs".to_owned(),
        };
        self.list(&path, Some(&format!("labelSelector={}", encode_path_segment(selector)))).await
    }
}

#[cfg(test)]
mod tests {
    use super::condition_rows;

    #[test]
    fn numbers_come_in_rows() {
        assert_eq!(condition_rows("0-2,5"), [(0, 2), (5, 5)]);
        assert_eq!(condition_rows(""), []);
    }
}
