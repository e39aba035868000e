//! cluster.yaml into a validated [`Cluster`].
//!
//! In: one file. Out: a cluster in which every value is good and every default filled in, with warnings; or every problem
//! at once, each with its place and help. No other file, no AWS and no clock: what depends on today is the caller's.

pub mod address_plan;
pub mod gpu;
pub mod kubernetes_release;
pub mod values;

mod cluster;
mod defaults;
mod file;
mod kube_aws;
mod rules;

use std::path::Path;

pub use cluster::{
    AdoptedSubnet, Api, Cluster, Controllers, Dns, Etcd, FileSystem, FileSystemSource, Kubernetes, Network,
    NetworkLayout, Pool, Taint,
};
pub use file::{
    AddonsFile, Channel, Lifecycle, Nat, Rollout, ServiceAccountKey, TaintEffect, ThroughputMode,
};
pub use kubernetes_release::Images;

use crate::document::{Problems, ReadError, parse, read_text};

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file was read, and something in it is wrong.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

/// A good cluster and what its author should know about it all the same.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The cluster.
    pub cluster: Cluster,
    /// Warnings; never errors.
    pub warnings: Problems,
}

/// Reads and validates the file at `path`.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    Ok(validate(path, &read_text(path)?)?)
}

/// Validates the text of a cluster.yaml; `path` is only used to name it.
pub fn validate(path: &Path, text: &str) -> Result<Loaded, Problems> {
    let file: file::ClusterFile = parse(path, text)?;
    let mut problems = Problems::new(path);
    match rules::build_cluster(&file, &mut problems) {
        Some(cluster) if problems.allow_use() => Ok(Loaded { cluster, warnings: problems }),
        _ => Err(problems),
    }
}

/// The JSON Schema of cluster.yaml.
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(file::ClusterFile)
}
