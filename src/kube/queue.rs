//! Queues of Kueue, an optional part of a cluster.

use serde_json::Value;

use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

const GROUP: &str = "kueue.x-k8s.io";

/// What a cluster has of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePresence {
    /// Kueue is not installed.
    NoKueue,
    /// There is no such queue in the namespace.
    Missing,
    /// The queue exists.
    Found,
}

impl ApiServer {
    /// Whether a namespace has a queue, in whatever version Kueue offers it.
    pub(crate) async fn find_queue(&self, namespace: &str, name: &str) -> Result<QueuePresence, KubeError> {
        let Some(version) = self.kueue_version().await? else { return Ok(QueuePresence::NoKueue) };
        let path = format!(
            "/apis/{version}/namespaces/{}/localqueues/{}",
            encode_path_segment(namespace),
            encode_path_segment(name)
        );
        let found = self.get_json(&path).await?.is_some();
        Ok(if found { QueuePresence::Found } else { QueuePresence::Missing })
    }

    /// Why Kueue has not admitted a JobSet, in its own words, if it says so.
    pub(crate) async fn why_queued(
        &self,
        namespace: &str,
        job_set: &str,
    ) -> Result<Option<String>, KubeError> {
        let Some(version) = self.kueue_version().await? else { return Ok(None) };
        let path = format!("/apis/{version}/namespaces/{}/workloads", encode_path_segment(namespace));
        let list = self.get_json(&path).await?.unwrap_or_default();
        Ok(list["items"].as_array().into_iter().flatten().find_map(|workload| reason_of(workload, job_set)))
    }

    async fn kueue_version(&self) -> Result<Option<String>, KubeError> {
        let group = self.get_json(&format!("/apis/{GROUP}")).await?.unwrap_or_default();
        Ok(group.pointer("/preferredVersion/groupVersion").and_then(Value::as_str).map(str::to_owned))
    }
}

/// What a Workload says about its quota, if it belongs to the JobSet and has none.
fn reason_of(workload: &Value, job_set: &str) -> Option<String> {
    let owners = workload["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["kind"] == "JobSet" && owner["name"] == job_set)?;
    let conditions = workload["status"]["conditions"].as_array()?;
    let condition = conditions
        .iter()
        .find(|condition| condition["type"] == "QuotaReserved" && condition["status"] == "False")?;
    condition["message"].as_str().filter(|message| !message.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::reason_of;

    #[test]
    fn a_workload_without_quota_says_why() {
        let message = "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor cpu, 400m more needed";
        let workload = |kind: &str, status: &str| {
            json!({"metadata": {"ownerReferences": [{"kind": kind, "name": "train"}]},
                   "status": {"conditions": [{"type": "QuotaReserved", "status": status, "message": message}]}})
        };
        assert_eq!(reason_of(&workload("JobSet", "False"), "train").as_deref(), Some(message));
        assert_eq!(reason_of(&workload("JobSet", "True"), "train"), None);
        assert_eq!(reason_of(&workload("JobSet", "False"), "other"), None);
        assert_eq!(reason_of(&workload("Job", "False"), "train"), None);
        assert_eq!(reason_of(&json!({}), "train"), None);
    }
}
