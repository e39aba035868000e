//! What `infra status` shows, as data: one shape for people and programs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::aws::StackStatus;

/// What `status` prints for programs: a report, or that there is no such cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StatusDocument {
    /// Something of the cluster is there.
    Report(Box<StatusReport>),
    /// Nothing is.
    Absent(AbsentCluster),
}

/// A cluster of which something is there. The exit code is 0 if `healthy` is true, 3 otherwise.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// `clusterName` of cluster.yaml.
    pub cluster: String,
    /// Whether all of it works: nothing is in `problems`.
    pub healthy: bool,
    /// What is wrong, for people.
    pub problems: Vec<String>,
    /// Its stacks.
    pub stacks: Vec<StackState>,
    /// The API server.
    pub api: ApiState,
    /// The public name.
    pub dns: DnsState,
    /// Nodes: the controllers first, then each pool.
    pub nodes: Vec<NodesState>,
    /// The shared file system, if there is one.
    pub file_system: Option<FileSystemState>,
    /// The certificate on disk that ends first; below 30 days it is a problem. Null if there is none.
    pub certificates: Option<CertificateState>,
}

/// A cluster of which nothing is there. The exit code is 3.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbsentCluster {
    /// `clusterName` of cluster.yaml.
    pub cluster: String,
    /// Always false.
    pub healthy: bool,
    /// That there is no such cluster.
    pub problems: Vec<String>,
    /// Always empty.
    pub stacks: Vec<StackState>,
}

impl AbsentCluster {
    /// Says so.
    #[must_use]
    pub fn new(cluster: &str) -> Self {
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
pub struct StackState {
    /// Its name.
    pub name: String,
    /// CloudFormation's status.
    pub status: StackStatus,
    /// Whether it can be used and changed in this status.
    pub good: bool,
}

/// The API server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiState {
    /// Where clients reach it.
    pub endpoint: String,
    /// The load balancer behind that name; null before it is made.
    pub load_balancer: Option<String>,
    /// Whether it answers.
    pub state: ApiAnswer,
    /// Why it is not ready.
    pub reason: Option<String>,
}

/// Whether the API answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApiAnswer {
    /// It answers and says that it is ready.
    Ready,
    /// It answers, and is not ready.
    NotReady,
    /// It cannot be asked from here.
    Unreachable,
    /// It is not made yet.
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
pub struct DnsState {
    /// `externalDNSName` of cluster.yaml.
    pub name: String,
    /// The addresses it has from here.
    pub resolves_to: Vec<String>,
    /// Whose its record is.
    pub record: RecordOwner,
}

/// Whose the record of the public name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordOwner {
    /// It leads to this cluster.
    Ours,
    /// It leads elsewhere.
    Foreign,
    /// There is none.
    Missing,
    /// Nobody looks after it: there is no zone for it, or `dns.manage` is false.
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
pub struct NodesState {
    /// The pool's name; `controllers` for those.
    pub pool: String,
    /// How many are Ready.
    pub ready: usize,
    /// How many there should be.
    pub wanted: usize,
    /// GPUs that can be given to pods now.
    pub gpus: u32,
    /// Machines that wait for `infra up --pool NAME --replace-nodes`.
    pub outdated: usize,
    /// Nodes that are not Ready, with the reason.
    pub not_ready: Vec<String>,
}

/// The shared file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSystemState {
    /// Its id.
    pub id: String,
    /// `available`, another word of EFS, or `gone`.
    pub state: String,
    /// How many mount targets are available.
    pub mount_targets: usize,
    /// Whether pods can use it: the phase of the claim `efs` in `default`; null if nobody could ask.
    pub claim: Option<String>,
}

/// The certificate that ends first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateState {
    /// Its file.
    pub name: String,
    /// Days until then.
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
