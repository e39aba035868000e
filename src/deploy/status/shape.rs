//! What `infra status` prints, as data: the same for people and programs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::aws::StackStatus;

/// What `infra status --output json` prints: a report, or that there is no such cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StatusDocument {
    /// Something of the cluster exists.
    Report(Box<StatusReport>),
    /// Nothing of the cluster exists.
    Absent(AbsentCluster),
}

/// A cluster of which something exists. The exit code is 0 if `healthy` is true, 3 otherwise.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReport {
    /// `clusterName` of cluster.yaml.
    pub cluster: String,
    /// Whether everything works: `problems` is empty.
    pub healthy: bool,
    /// What is wrong, in human-readable sentences.
    pub problems: Vec<String>,
    /// The stacks of the cluster.
    pub stacks: Vec<StackState>,
    /// The API server.
    pub api: ApiState,
    /// The public name.
    pub dns: DnsState,
    /// Nodes: the controllers first, then each pool.
    pub nodes: Vec<NodesState>,
    /// The shared file system, if there is one.
    pub file_system: Option<FileSystemState>,
    /// The certificate on disk that expires first; below 30 days it is a problem. Null if there is none.
    pub certificates: Option<CertificateState>,
}

/// A cluster of which nothing exists. The exit code is 3.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AbsentCluster {
    /// `clusterName` of cluster.yaml.
    pub cluster: String,
    /// Always false.
    pub healthy: bool,
    /// One sentence: there is no such cluster.
    pub problems: Vec<String>,
    /// Always empty.
    pub stacks: Vec<StackState>,
}

impl AbsentCluster {
    /// The document for a cluster that does not exist.
    #[must_use]
    pub(crate) fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            healthy: false,
            problems: vec!["there is no such cluster".to_owned()],
            stacks: Vec::new(),
        }
    }
}

/// A stack.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StackState {
    /// The name of the stack.
    pub name: String,
    /// CloudFormation's status of the stack.
    pub status: StackStatus,
    /// Whether the stack can be used and updated in this status.
    pub good: bool,
}

/// The API server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiState {
    /// The URL of the API server.
    pub endpoint: String,
    /// The load balancer behind that name; null before it is created.
    pub load_balancer: Option<String>,
    /// Whether the API server answers.
    pub state: ApiAnswer,
    /// Why the API server is not ready.
    pub reason: Option<String>,
}

/// Whether the API answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ApiAnswer {
    /// The API server answers and is ready.
    Ready,
    /// The API server answers, and is not ready.
    NotReady,
    /// The API server cannot be reached from here.
    Unreachable,
    /// The API server is not created yet.
    Absent,
}

impl fmt::Display for ApiAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ready => "ready",
            Self::NotReady => "not-ready",
            Self::Unreachable => "unreachable",
            Self::Absent => "absent",
        })
    }
}

/// The public name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DnsState {
    /// `externalDNSName` of cluster.yaml.
    pub name: String,
    /// The addresses that the name resolves to from here.
    pub resolves_to: Vec<String>,
    /// What the record of the name points at.
    pub record: RecordOwner,
}

/// What the record of the public name points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecordOwner {
    /// The record points at this cluster.
    Ours,
    /// The record points elsewhere.
    Foreign,
    /// There is no record.
    Missing,
    /// infra does not manage the record: there is no hosted zone for it, or `dns.manage` is false.
    Unmanaged,
}

impl fmt::Display for RecordOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ours => "ours",
            Self::Foreign => "foreign",
            Self::Missing => "missing",
            Self::Unmanaged => "unmanaged",
        })
    }
}

/// The nodes of a pool, or the controllers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodesState {
    /// The name of the pool, or `controllers`.
    pub pool: String,
    /// How many nodes are Ready.
    pub ready: usize,
    /// How many nodes there should be.
    pub wanted: usize,
    /// How many GPUs of Ready nodes pods can use.
    pub gpus: u32,
    /// How many machines are outdated, until `infra up --pool NAME --replace-nodes`.
    pub outdated: usize,
    /// Nodes that are not Ready, with the reason.
    pub not_ready: Vec<String>,
}

/// The shared file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileSystemState {
    /// The id of the file system.
    pub id: String,
    /// `available`, another word of EFS, or `gone`.
    pub state: String,
    /// How many mount targets are available.
    pub mount_targets: usize,
    /// Whether pods can use it: the phase of the claim `efs` in `default`; null if the API could not be reached.
    pub claim: Option<String>,
}

/// The certificate that expires first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateState {
    /// The name of the certificate's file.
    pub name: String,
    /// Days until the certificate expires.
    pub days_left: i64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ApiAnswer, RecordOwner};

    #[test]
    fn people_and_programs_read_the_same_words() {
        for answer in [ApiAnswer::Ready, ApiAnswer::NotReady, ApiAnswer::Unreachable, ApiAnswer::Absent] {
            assert_eq!(json!(answer), answer.to_string());
        }
        let owners = [RecordOwner::Ours, RecordOwner::Foreign, RecordOwner::Missing, RecordOwner::Unmanaged];
        for owner in owners {
            assert_eq!(json!(owner), owner.to_string());
        }
    }
}
