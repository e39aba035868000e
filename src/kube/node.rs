//! The cluster's nodes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::list::{Condition, ConditionStatus, Object};
use super::path::encode_path_segment;
use super::{ApiServer, KubeError, Taint};
use crate::well_known::{
    CONTROLLER_LABEL, EFA_LABEL, EFA_RESOURCE, GPU_COUNT_LABEL, GPU_RESOURCE, INSTANCE_TYPE_LABEL,
    POOL_LABEL, SCRATCH_LABEL, STORAGE_RESOURCE,
};

const NODES: &str = "/api/v1/nodes";
const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Controllers remove these some seconds after the node is Ready; until then no pod is placed on it.
const UNUSABLE_TAINTS: [&str; 3] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
];
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A machine that joined the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The name of the node.
    pub name: String,
    /// The pool it belongs to.
    pub pool: Option<String>,
    /// Whether it is a controller.
    pub is_controller: bool,
    /// Whether it can run pods.
    pub ready: bool,
    /// What keeps it from running pods.
    pub why_not_ready: Option<String>,
    /// Whether new pods may be placed on it.
    pub schedulable: bool,
    /// The EC2 instance.
    pub instance_id: Option<String>,
    /// The type of the EC2 instance.
    pub instance_type: Option<String>,
    /// How many GPUs pods can have.
    pub gpus: u32,
    /// How many GPUs the machine has by its label, if it has that.
    pub labelled_gpus: Option<u32>,
    /// How many EFA adapters the machine has, by its label.
    pub efa: u32,
    /// How many EFA adapters pods can have.
    pub given_efa: u32,
    /// Thousandths of processors that pods can have, if it says so.
    pub processors: Option<u64>,
    /// Bytes of memory that pods can have, if it says so.
    pub memory: Option<u64>,
    /// Bytes of its own drives that pods can have, if it says so.
    pub scratch: Option<u64>,
    /// What keeps pods away that do not tolerate it.
    pub taints: Vec<Taint>,
    /// The version of its kubelet, such as `v1.34.1`.
    pub kubelet_version: String,
}

type NodeDocument = Object<Spec, Status>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
    taints: Vec<Taint>,
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<Condition>,
    allocatable: BTreeMap<String, String>,
    node_info: NodeInfo,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo {
    kubelet_version: String,
}

/// An amount of processors as kubelets write it: `8` or `7910m`.
fn parse_thousandths(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse().ok(),
        None => text.parse::<u64>().ok()?.checked_mul(1000),
    }
}

/// An amount of memory as kubelets write it: `31412884Ki` or a number of bytes.
fn parse_bytes(text: &str) -> Option<u64> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("", 1)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))?;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

impl From<NodeDocument> for Node {
    fn from(document: NodeDocument) -> Self {
        let NodeDocument { mut metadata, spec, status } = document;
        let condition = status.conditions.iter().find(|condition| condition.kind == "Ready");
        let ready = condition.is_some_and(|condition| condition.status == ConditionStatus::True);
        // Until then it has neither an address nor an availability zone, and nearly no pod is placed on it.
        let initialized = !spec.taints.iter().any(|taint| taint.key == UNINITIALIZED_TAINT);
        let unusable = spec.taints.iter().find(|taint| UNUSABLE_TAINTS.contains(&taint.key.as_str()));
        let why_not_ready = match condition {
            Some(_) if ready && !initialized => {
                Some("the cloud controller manager has not initialized it".to_owned())
            }
            Some(_) if ready => unusable.map(|taint| format!("it still has the taint {}", taint.key)),
            Some(condition) => Some(condition.in_words()),
            None => Some("its kubelet has not reported yet".to_owned()),
        };
        let has_scratch = metadata.labels.contains_key(SCRATCH_LABEL);
        let count = |resource: &str| {
            status.allocatable.get(resource).and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        Self {
            pool: metadata.labels.remove(POOL_LABEL),
            is_controller: metadata.labels.contains_key(CONTROLLER_LABEL),
            labelled_gpus: metadata.labels.get(GPU_COUNT_LABEL).and_then(|count| count.parse().ok()),
            instance_type: metadata.labels.remove(INSTANCE_TYPE_LABEL),
            efa: metadata.labels.get(EFA_LABEL).and_then(|count| count.parse().ok()).unwrap_or(0),
            name: metadata.name,
            ready: why_not_ready.is_none(),
            why_not_ready,
            schedulable: !spec.unschedulable,
            instance_id: spec.provider_id.as_deref().and_then(last_part),
            gpus: count(GPU_RESOURCE),
            given_efa: count(EFA_RESOURCE),
            processors: status.allocatable.get("cpu").and_then(|text| parse_thousandths(text)),
            memory: status.allocatable.get("memory").and_then(|text| parse_bytes(text)),
            // Without the label it is the root disk that pods write to.
            scratch: if has_scratch {
                status.allocatable.get(STORAGE_RESOURCE).and_then(|text| parse_bytes(text))
            } else {
                Some(0)
            },
            taints: spec.taints,
            kubelet_version: status.node_info.kubelet_version,
        }
    }
}

impl Condition {
    fn in_words(&self) -> String {
        match (self.reason.as_str(), self.message.as_str()) {
            ("", "") => format!("its condition is {}", self.status),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// `aws:///us-west-2a/i-0123` names the instance last.
fn last_part(provider_id: &str) -> Option<String> {
    provider_id.rsplit('/').next().filter(|part| !part.is_empty()).map(str::to_owned)
}

impl ApiServer {
    /// Every node.
    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, KubeError> {
        let documents: Vec<NodeDocument> = self.list(NODES, None).await?;
        Ok(documents.into_iter().map(Node::from).collect())
    }

    /// Cordons or uncordons a node; its pods continue.
    pub(crate) async fn set_schedulable(&self, node: &str, schedulable: bool) -> Result<(), KubeError> {
        let patch = json!({"spec": {"unschedulable": !schedulable}});
        self.patch_json(&format!("{NODES}/{}", encode_path_segment(node)), MERGE_PATCH, &patch).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};
    use super::super::{Taint, TaintEffect};
    use super::{Node, NodeDocument};

    const WORKER: &str = r#"{
        "metadata": {"name": "ip-10-0-1-5.us-west-2.compute.internal", "uid": "u",
            "labels": {"infra.internal/pool": "gpu", "infra.internal/gpu-count": "8", "infra.internal/efa": "32", "node.kubernetes.io/instance-type": "p5.48xlarge",
                "kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.2.1.0/24", "providerID": "aws:///us-west-2a/i-0123456789abcdef0", "unschedulable": true,
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "95500m", "memory": "2048Ki", "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "31"},
            "conditions": [{"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}],
            "nodeInfo": {"kubeletVersion": "v1.34.1", "osImage": "Flatcar"}}}"#;

    fn parse(text: &str) -> Result<Node, serde_json::Error> {
        serde_json::from_str::<NodeDocument>(text).map(Node::from)
    }

    #[test]
    fn a_worker_is_read() -> Result<(), Box<dyn Error>> {
        let expected = Node {
            processors: Some(95_500),
            memory: Some(2 << 20),
            scratch: Some(0),
            name: "ip-10-0-1-5.us-west-2.compute.internal".to_owned(),
            pool: Some("gpu".to_owned()),
            is_controller: false,
            ready: true,
            why_not_ready: None,
            schedulable: false,
            instance_id: Some("i-0123456789abcdef0".to_owned()),
            instance_type: Some("p5.48xlarge".to_owned()),
            gpus: 8,
            labelled_gpus: Some(8),
            efa: 32,
            given_efa: 31,
            taints: vec![Taint {
                key: "nvidia.com/gpu".to_owned(),
                effect: TaintEffect::NoSchedule,
                ..Taint::default()
            }],
            kubelet_version: "v1.34.1".to_owned(),
        };
        assert_eq!(parse(WORKER)?, expected);
        Ok(())
    }

    #[test]
    fn scratch_is_what_a_labelled_node_offers() -> Result<(), Box<dyn Error>> {
        let label = r#""labels": {"infra.internal/scratch-gib": "178", "#;
        let offer = r#""allocatable": {"ephemeral-storage": "191126044672", "#;
        let offering = WORKER.replace(r#""allocatable": {"#, offer);
        assert_eq!(parse(&offering)?.scratch, Some(0), "a root disk is no scratch");
        let labelled = offering.replace(r#""labels": {"#, label);
        assert_eq!(parse(&labelled)?.scratch, Some(191_126_044_672));
        assert_eq!(parse(&WORKER.replace(r#""labels": {"#, label))?.scratch, None);
        Ok(())
    }

    #[test]
    fn a_controller_that_is_not_ready_says_why() -> Result<(), Box<dyn Error>> {
        let node = parse(
            r#"{"metadata": {"name": "c", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]}}"#,
        )?;
        assert!(node.is_controller && !node.ready && node.schedulable);
        assert_eq!(node.why_not_ready.as_deref(), Some("KubeletNotReady: no CNI"));
        assert_eq!((node.pool, node.instance_id, node.gpus), (None, None, 0));
        Ok(())
    }

    #[test]
    fn a_worker_cannot_call_itself_a_controller() -> Result<(), Box<dyn Error>> {
        let labels = r#""labels": {"node.kubernetes.io/controller": "true", "#;
        let node = parse(&WORKER.replace(r#""labels": {"#, labels))?;
        assert!(!node.is_controller, "a kubelet may set this label");
        Ok(())
    }

    #[test]
    fn a_node_that_the_cloud_controller_manager_has_not_initialized_is_not_ready()
    -> Result<(), Box<dyn Error>> {
        let node = parse(&WORKER.replace(
            r#"{"key": "nvidia.com/gpu", "effect": "NoSchedule"}"#,
            r#"{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}"#,
        ))?;
        assert!(!node.ready);
        assert_eq!(
            node.why_not_ready.as_deref(),
            Some("the cloud controller manager has not initialized it")
        );
        Ok(())
    }

    #[test]
    fn a_node_that_kubernetes_still_keeps_pods_away_from_is_not_ready() -> Result<(), Box<dyn Error>> {
        for taint in ["not-ready", "unreachable", "network-unavailable"] {
            let key = format!("node.kubernetes.io/{taint}");
            let node =
                parse(&WORKER.replace(r#""nvidia.com/gpu", "effect""#, &format!(r#""{key}", "effect""#)))?;
            assert_eq!(
                (node.ready, node.why_not_ready),
                (false, Some(format!("it still has the taint {key}")))
            );
        }
        Ok(())
    }

    #[test]
    fn a_node_that_just_registered_is_not_ready() -> Result<(), Box<dyn Error>> {
        let node = parse(r#"{"metadata": {"name": "new"}}"#)?;
        assert_eq!(node.why_not_ready.as_deref(), Some("its kubelet has not reported yet"));
        Ok(())
    }

    #[tokio::test]
    async fn nodes_are_listed_and_closed() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').next() {
            Some("GET") => json_answer("200 OK", &format!(r#"{{"items":[{WORKER}]}}"#)),
            _ => json_answer("200 OK", WORKER),
        })?;
        let client = server.client()?;
        assert_eq!(client.nodes().await?, [parse(WORKER)?]);
        assert!(server.requests.recv()?.starts_with("GET /api/v1/nodes?limit=500 "));
        client.set_schedulable("worker-1", false).await?;
        let request = server.requests.recv()?;
        assert!(request.starts_with("PATCH /api/v1/nodes/worker-1 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\ncontent-type: application/merge-patch+json\r\n"), "{request}");
        assert!(request.ends_with(r#"{"spec":{"unschedulable":true}}"#), "{request}");
        Ok(())
    }
}
