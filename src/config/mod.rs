//! cluster.yaml into a validated [`Cluster`].
//!
//! In: one file. Out: a cluster in which every value is valid and every default filled in, with warnings; or every problem
//! at once, each with its position and help. No other file, no AWS and no clock: the caller checks what depends on today's date.

pub mod address_plan;
pub mod gpu;
pub mod instance_store;
pub mod kubernetes_release;
pub(crate) mod machine_size;
pub mod values;

mod cluster;
mod defaults;
mod driver_limits;
mod file;
mod kube_aws;
mod rules;

use std::path::Path;

pub use cluster::{
    Addons, AdoptedSubnet, Api, Cluster, Controllers, Dns, Etcd, FileSystem, FileSystemSource, Kubernetes,
    Monitoring, Network, NetworkLayout, Pool, PoolSchedule, Restore, ScheduleEntry, Taint,
};
pub use file::{Channel, Lifecycle, Nat, PoolImage, Rollout, ServiceAccountKey, TaintEffect, ThroughputMode};
pub use rules::GpuInstanceType;

use crate::document::{self, LoadError, Loaded, Problems};

/// Reads and validates the cluster.yaml at `path`.
pub fn load(path: &Path) -> Result<Loaded<Cluster>, LoadError> {
    document::load(path, rules::build_cluster)
}

/// Validates the text of a cluster.yaml; `path` is only used to name it.
pub fn validate(path: &Path, text: &str) -> Result<Loaded<Cluster>, Problems> {
    document::validate(path, text, rules::build_cluster)
}

/// The JSON Schema of cluster.yaml.
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(file::ClusterFile)
}
