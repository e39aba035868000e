//! What `infra list` prints, as data.

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;

use crate::blueprint::CostSummary;
use crate::deploy::status::shape::{ImageState, StackState};

/// What `infra list --output json` prints. The exit code is 0 if `healthy` is true, 3 otherwise; 1 if a region failed to answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterList {
    /// Whether every cluster in the list is healthy; true if there is none.
    pub healthy: bool,
    /// The clusters, by region and name.
    pub clusters: Vec<ListedCluster>,
    /// The regions that were read.
    pub regions: Vec<String>,
    /// The regions that could not be read; clusters may be there. Always empty without `--all-regions`.
    pub unread_regions: Vec<UnreadRegion>,
    /// What could not be read in the other regions, in human-readable sentences.
    pub warnings: Vec<String>,
}

/// A region that could not be read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnreadRegion {
    /// The region.
    pub region: String,
    /// Why the region could not be read.
    pub reason: String,
}

/// A cluster, by what AWS knows of it. The Kubernetes API is not called.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedCluster {
    /// The name of the cluster.
    pub cluster: String,
    /// The region that the cluster is in.
    pub region: String,
    /// Whether everything that AWS knows of works: `problems` is empty.
    pub healthy: bool,
    /// What is wrong, in human-readable sentences.
    pub problems: Vec<String>,
    /// What will be wrong, in human-readable sentences. A cluster with warnings is healthy.
    pub warnings: Vec<String>,
    /// The version of Kubernetes; null if the control plane's stack does not name one.
    pub kubernetes: Option<String>,
    /// The stacks of the cluster.
    pub stacks: Vec<StackState>,
    /// The machines that are nodes: the controllers first, then each pool. Null if they could not be read.
    pub nodes: Option<Vec<MachinesState>>,
    /// The machines of etcd members. Null if they could not be read.
    pub etcd: Option<MachinesState>,
    /// The images that machines are started from, usually one. Empty if they could not be read.
    pub images: Vec<ImageState>,
    /// What the machines cost that run now, without their disks and addresses, by the prices in infra.lock. Null if there are none for the region.
    pub machines_cost: Option<CostSummary>,
    /// The certificate on the machines that expires first; null if the control plane's stack does not say when.
    pub certificates: Option<FirstExpiry>,
}

/// Machines of an Auto Scaling group, or of all etcd members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MachinesState {
    /// The name of the pool, `controllers` or `etcd`.
    pub name: String,
    /// How many machines are in service.
    pub in_service: usize,
    /// How many machines there should be.
    pub wanted: usize,
}

/// When the first certificate expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstExpiry {
    /// When the certificate expires (RFC 3339).
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub expires: OffsetDateTime,
    /// Days until the certificate expires; negative once it has.
    pub days_left: i64,
}
