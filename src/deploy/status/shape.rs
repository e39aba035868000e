//! What `infra status` prints, as data: the same for people and programs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;

use super::schedule::ScheduleState;
use crate::aws::StackStatus;
use crate::blueprint::CostSummary;
use crate::deploy::event::PoolBlock;

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
    /// What will be wrong, or could not be read, in human-readable sentences. A cluster with warnings is healthy.
    pub warnings: Vec<String>,
    /// The stacks of the cluster.
    pub stacks: Vec<StackState>,
    /// The API server.
    pub api: ApiState,
    /// The public name.
    pub dns: DnsState,
    /// The etcd members. Fewer than there should be are a problem.
    pub etcd: EtcdState,
    /// Nodes: the controllers first, then each pool.
    pub nodes: Vec<NodesState>,
    /// The images that machines are started from, usually one. One that is gone is a problem.
    pub images: Vec<ImageState>,
    /// The snapshots of etcd in the bucket; older than three hours they are a problem. Null if they could not be read.
    pub snapshot: Option<SnapshotState>,
    /// The shared file system, if there is one.
    pub file_system: Option<FileSystemState>,
    /// What runs now costs, by the prices in infra.lock. Null if there are none.
    pub cost: Option<CostSummary>,
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

/// The etcd members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EtcdState {
    /// How many members have a machine in service.
    pub in_service: usize,
    /// How many members there should be.
    pub wanted: usize,
    /// Every member.
    pub members: Vec<EtcdMemberState>,
}

/// An etcd member.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EtcdMemberState {
    /// The name of the member, as `etcd-0`.
    pub name: String,
    /// Whether the member has a machine in service.
    pub in_service: bool,
    /// The instance id of the machine; null if there is none.
    pub machine: Option<String>,
    /// The state of the machine in its Auto Scaling group, in AWS's words; null if there is none.
    pub state: Option<String>,
    /// The last launch of a machine for the member, if it failed and the member is not in service.
    pub failed_launch: Option<FailedLaunch>,
}

/// A launch that failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedLaunch {
    /// When the launch began (RFC 3339); null if AWS does not say.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schemars(with = "Option<String>")]
    pub at: Option<OffsetDateTime>,
    /// Why the launch failed, in AWS's words.
    pub reason: String,
}

/// An image that machines are started from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageState {
    /// The id of the image.
    pub id: String,
    /// The name of the image; null if it is gone.
    pub name: Option<String>,
    /// The stacks whose machines are started from it.
    pub stacks: Vec<String>,
    /// `available`, another word of EC2, or `gone`.
    pub state: String,
    /// The day on which the image was created.
    pub created: Option<String>,
    /// How many days ago that was.
    pub age_days: Option<i64>,
    /// The day from which AWS calls the image deprecated.
    pub deprecated: Option<String>,
    /// The day about which its publisher deletes the image: nine months after its creation, if it is Flatcar's own.
    pub deleted_about: Option<String>,
}

/// The snapshots of etcd in the bucket.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotState {
    /// The S3 URI that all snapshots are below.
    pub address: String,
    /// The newest snapshot; null if there is none.
    pub newest: Option<NewestSnapshot>,
}

/// The newest snapshot of etcd.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewestSnapshot {
    /// The key of the object.
    pub key: String,
    /// When the snapshot was uploaded (RFC 3339).
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub uploaded: OffsetDateTime,
    /// How many minutes ago that was.
    pub age_minutes: i64,
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
    /// What the clock does to the pool; null for controllers and for a pool without schedule and end.
    pub schedule: Option<ScheduleState>,
    /// The capacity block that the pool follows; null if there is none.
    pub block: Option<PoolBlock>,
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
    fn text_and_json_use_the_same_words() {
        for answer in [ApiAnswer::Ready, ApiAnswer::NotReady, ApiAnswer::Unreachable, ApiAnswer::Absent] {
            assert_eq!(json!(answer), answer.to_string());
        }
        let owners = [RecordOwner::Ours, RecordOwner::Foreign, RecordOwner::Missing, RecordOwner::Unmanaged];
        for owner in owners {
            assert_eq!(json!(owner), owner.to_string());
        }
    }
}
