//! Pods: their node, their phase, their log.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::connection::REQUEST_LIMIT;
use super::list::{Condition, ConditionStatus, Object};
use super::message::one_line;
use super::path::encode_path_segment;
use super::{ApiServer, Body, KubeError};
use crate::well_known::GPU_RESOURCE;

/// A pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "PodDocument")]
pub(crate) struct Pod {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// The uid, which distinguishes the pod from others of the same name.
    pub uid: String,
    /// The labels of the pod.
    pub labels: BTreeMap<String, String>,
    /// When it was created, as the API writes it: later is greater.
    pub created: String,
    /// The completion index, if the pod belongs to an indexed Job.
    pub index: Option<u32>,
    /// The node it is on.
    pub node: Option<String>,
    /// The address of the pod, once it has one.
    pub address: Option<String>,
    /// The phase of the pod's life.
    pub phase: PodPhase,
    /// Whether its containers say that they do their work.
    pub is_ready: bool,
    /// The number of GPUs it requests.
    pub gpus: u32,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// What it waits for or how it ended.
    pub detail: Option<String>,
    /// When its container ended, as the API writes it: later is greater.
    pub ended: Option<String>,
    /// What its container ended with.
    pub exit_code: Option<i64>,
    /// Why Kubernetes terminated it, if it was not its own doing: drained, evicted, its machine lost.
    pub disruption: Option<String>,
}

/// The phase of a pod's life.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum PodPhase {
    /// The pod is waiting for a node, an image or a volume.
    Pending,
    /// The pod runs.
    Running,
    /// All containers of the pod succeeded.
    Succeeded,
    /// A container of the pod failed.
    Failed,
    /// The node of the pod does not answer.
    #[default]
    #[serde(other)]
    Unknown,
}

impl PodPhase {
    /// Whether the pod has ended, and holds nothing any more.
    #[must_use]
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Which part of a pod's log is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogPart {
    /// Whether to follow what the pod prints from now on.
    pub follow: bool,
    /// Only this many of the last lines.
    pub tail: Option<u32>,
    /// Only what was printed in the last seconds.
    pub since_seconds: Option<u64>,
}

type PodDocument = Object<Spec, Status>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    resources: Resources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    limits: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: PodPhase,
    reason: Option<String>,
    message: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    conditions: Vec<Condition>,
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i64,
    reason: String,
    message: Option<String>,
    finished_at: Option<String>,
}

const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";

impl From<PodDocument> for Pod {
    fn from(document: PodDocument) -> Self {
        let PodDocument { metadata, spec, status } = document;
        let limits =
            spec.containers.iter().filter_map(|container| container.resources.limits.get(GPU_RESOURCE));
        let ended =
            status.container_statuses.iter().find_map(|container| container.state.terminated.as_ref());
        Self {
            index: metadata.annotations.get(INDEX_ANNOTATION).and_then(|index| index.parse().ok()),
            gpus: limits.filter_map(|count| count.parse::<u32>().ok()).sum(),
            leaving: metadata.deletion_timestamp.is_some(),
            detail: status.detail().map(|detail| one_line(&detail)),
            ended: ended.and_then(|ended| ended.finished_at.clone()),
            exit_code: ended.map(|ended| ended.exit_code),
            disruption: status.disruption().map(|why| one_line(&why)),
            is_ready: status.condition("Ready").is_some(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            created: metadata.creation_timestamp,
            address: status.pod_ip,
            node: spec.node_name.filter(|node| !node.is_empty()),
            phase: status.phase,
        }
    }
}

impl Status {
    /// A condition that is true.
    fn condition(&self, kind: &str) -> Option<&Condition> {
        let is_true =
            |condition: &&Condition| condition.kind == kind && condition.status == ConditionStatus::True;
        self.conditions.iter().find(is_true)
    }

    fn disruption(&self) -> Option<String> {
        let condition = self.condition("DisruptionTarget")?;
        Some(with_reason(&condition.reason, Some(&condition.message)))
    }

    /// The most telling reason that is known.
    fn detail(&self) -> Option<String> {
        let containers = || self.init_container_statuses.iter().chain(&self.container_statuses);
        for container in containers() {
            let usual = ["ContainerCreating", "PodInitializing"];
            if let Some(waiting) = container.state.waiting.as_ref()
                && !usual.contains(&waiting.reason.as_str())
                && !waiting.reason.is_empty()
            {
                return Some(with_reason(&waiting.reason, waiting.message.as_deref()));
            }
        }
        for container in containers() {
            if let Some(ended) = container.state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
                let reason = match (ended.reason.as_str(), ended.message.as_deref()) {
                    ("" | "Error", _) => String::new(),
                    // A program that could not be started has printed nothing.
                    ("StartError" | "ContainerCannotRun", Some(message)) => {
                        format!(" ({}: {message})", ended.reason)
                    }
                    (reason, _) => format!(" ({reason})"),
                };
                return Some(format!("{} ended with {}{reason}", container.name, ended.exit_code));
            }
        }
        if let Some(reason) = &self.reason {
            return Some(with_reason(reason, self.message.as_deref()));
        }
        let unplaced = self
            .conditions
            .iter()
            .find(|condition| condition.kind == "PodScheduled" && condition.status == ConditionStatus::False);
        unplaced.map(|condition| condition.message.clone()).filter(|message| !message.is_empty())
    }
}

fn with_reason(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}

impl ApiServer {
    /// The pods that a label selector chooses, in one namespace or in all.
    pub(crate) async fn pods(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Pod>, KubeError> {
        let path = match namespace {
            Some(namespace) => format!("/api/v1/namespaces/{}/pods", encode_path_segment(namespace)),
            None => "/api/v1/pods".to_owned(),
        };
        self.list(&path, Some(&format!("labelSelector={}", encode_path_segment(selector)))).await
    }

    /// The log of a pod; if it is followed, also what it prints from now on.
    pub(crate) async fn pod_log(&self, namespace: &str, pod: &str, part: LogPart) -> Result<Body, KubeError> {
        let (namespace, pod) = (encode_path_segment(namespace), encode_path_segment(pod));
        let mut path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?follow={}", part.follow);
        if let Some(tail) = part.tail {
            path = format!("{path}&tailLines={tail}");
        }
        if let Some(seconds) = part.since_seconds {
            path = format!("{path}&sinceSeconds={seconds}");
        }
        // What is followed begins with its first line, whenever that comes.
        if part.follow { self.open(&path).await } else { self.open_within(&path, REQUEST_LIMIT).await }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Pod;

    #[test]
    fn the_most_specific_reason_is_kept() -> Result<(), serde_json::Error> {
        let table = [
            (
                json!({"phase": "Pending", "containerStatuses": [{"name": "worker", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}),
                Some("ImagePullBackOff: no such image"),
            ),
            (
                json!({"phase": "Pending", "containerStatuses": [{"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
                None,
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}),
                Some("0/3 nodes are available"),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"name": "worker", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
                Some("worker ended with 137 (OOMKilled)"),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"name": "worker", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}),
                Some("worker ended with 3"),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"name": "worker", "state": {"terminated":
                    {"exitCode": 128, "reason": "StartError", "message": "no such program"}}}]}),
                Some("worker ended with 128 (StartError: no such program)"),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
                Some("Evicted: low on memory"),
            ),
            (json!({"phase": "Running"}), None),
        ];
        for (status, expected) in table {
            let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status}))?;
            assert_eq!(pod.detail.as_deref(), expected);
        }
        Ok(())
    }
}
