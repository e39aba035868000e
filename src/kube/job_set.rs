//! JobSets: groups of Jobs that are restarted as one.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::list::{Condition, ConditionStatus, Object};
use super::message::one_line;
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

/// Where JobSets are found.
pub(super) const GROUP_PATH: &str = "apis/jobset.x-k8s.io/v1alpha2";

/// A JobSet.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "JobSetDocument")]
pub(crate) struct JobSet {
    /// The namespace of the JobSet.
    pub namespace: String,
    /// The uid, which distinguishes the JobSet from others of the same name.
    pub uid: String,
    /// When it was created, as the API writes it.
    pub created: String,
    /// The labels of the JobSet.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the JobSet.
    pub annotations: BTreeMap<String, String>,
    /// Whether its pods are held back.
    pub suspended: bool,
    /// The names of its replicated Jobs, each with the number of its pods.
    pub roles: Vec<(String, u32)>,
    /// How many restarts that count are allowed.
    pub allowed_restarts: u32,
    /// How often the group was restarted.
    pub restarts: u32,
    /// How many of these restarts count.
    pub counted_restarts: u32,
    /// The name of the rule that is restarting the group now.
    pub restarting: Option<String>,
    /// How it ended.
    pub end: Option<JobSetEnd>,
    /// When it ended, as the API writes it.
    pub ended: Option<String>,
}

/// How a JobSet ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobSetEnd {
    /// The Jobs that decide succeeded.
    Complete,
    /// The JobSet has failed.
    Failed {
        /// Whether no further restart was allowed.
        is_out_of_restarts: bool,
        /// Why, in JobSet's words.
        reason: String,
    },
}

type JobSetDocument = Object<Spec, Status>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    suspend: bool,
    failure_policy: FailurePolicy,
    replicated_jobs: Vec<ReplicatedJob>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FailurePolicy {
    max_restarts: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplicatedJob {
    name: String,
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: JobSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    completions: u32,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    restarts: u32,
    restarts_count_towards_max: u32,
    conditions: Vec<Condition>,
}

impl From<JobSetDocument> for JobSet {
    fn from(document: JobSetDocument) -> Self {
        let JobSetDocument { metadata, spec, status } = document;
        let is_true = |condition: &&Condition| condition.status == ConditionStatus::True;
        let end =
            status.conditions.iter().filter(is_true).find_map(|condition| match condition.kind.as_str() {
                "Completed" => Some(JobSetEnd::Complete),
                "Failed" => Some(JobSetEnd::Failed {
                    is_out_of_restarts: condition.reason == "ReachedMaxRestarts",
                    reason: one_line(&condition.message),
                }),
                _ => None,
            });
        let ended = status
            .conditions
            .iter()
            .filter(is_true)
            .find(|condition| matches!(condition.kind.as_str(), "Completed" | "Failed"))
            .and_then(|condition| condition.since.clone());
        let restarting =
            status.conditions.iter().filter(is_true).find(|condition| condition.kind == "RestartingJobSet");
        let rule = |reason: &str| reason.strip_prefix("FailurePolicy_").unwrap_or(reason).to_owned();
        Self {
            namespace: metadata.namespace,
            uid: metadata.uid,
            created: metadata.creation_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            suspended: spec.suspend,
            roles: spec
                .replicated_jobs
                .into_iter()
                .map(|job| (job.name, job.template.spec.completions))
                .collect(),
            allowed_restarts: spec.failure_policy.max_restarts,
            restarts: status.restarts,
            counted_restarts: status.restarts_count_towards_max,
            restarting: restarting.map(|condition| rule(&condition.reason)),
            end,
            ended,
        }
    }
}

impl ApiServer {
    /// The JobSets that a label selector chooses, in one namespace or in all; nothing if the cluster does not know JobSets.
    pub(crate) async fn job_sets(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Option<Vec<JobSet>>, KubeError> {
        let path = match namespace {
            Some(namespace) => format!("/{GROUP_PATH}/namespaces/{}/jobsets", encode_path_segment(namespace)),
            None => format!("/{GROUP_PATH}/jobsets"),
        };
        match self.list(&path, Some(&format!("labelSelector={}", encode_path_segment(selector)))).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::{JobSet, JobSetEnd};

    fn read(text: &str) -> Result<JobSet, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn restarts_and_the_end_are_read_from_the_status() -> Result<(), Box<dyn Error>> {
        let set = read(
            r#"{"metadata": {"namespace": "default"},
                "spec": {"failurePolicy": {"maxRestarts": 3},
                         "replicatedJobs": [{"name": "worker", "template": {"spec": {"completions": 4}}}]},
                "status": {"restarts": 5, "restartsCountTowardsMax": 3, "conditions": [
                    {"type": "RestartingJobSet", "status": "True", "reason": "FailurePolicy_machineLost"},
                    {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "no more"}]}}"#,
        )?;
        assert_eq!((set.restarts, set.counted_restarts, set.allowed_restarts), (5, 3, 3));
        assert_eq!(set.roles, [("worker".to_owned(), 4)]);
        assert_eq!(set.restarting.as_deref(), Some("machineLost"));
        let reason = "no more".to_owned();
        assert_eq!(set.end, Some(JobSetEnd::Failed { is_out_of_restarts: true, reason }));
        Ok(())
    }

    #[test]
    fn a_new_one_has_no_status() -> Result<(), Box<dyn Error>> {
        let set = read(r#"{"metadata": {}, "spec": {"suspend": true, "replicatedJobs": []}}"#)?;
        assert!(set.suspended && set.end.is_none() && set.restarting.is_none());
        assert_eq!(set.restarts, 0);
        Ok(())
    }
}
