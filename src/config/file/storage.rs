//! The storage section of cluster.yaml.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::At;

/// Shared storage.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StorageFile {
    /// An EFS file system that every node mounts.
    pub efs: At<EfsFile>,
}

/// An EFS file system, created or adopted.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct EfsFile {
    /// How nodes mount the file system.
    pub driver: At<EfsDriver>,
    /// The throughput mode of the file system.
    pub throughput_mode: At<ThroughputMode>,
    /// Where nodes mount the file system.
    pub mount_path: At<String>,
    /// After how many days without access a file moves to cheaper storage.
    pub lifecycle: At<Lifecycle>,
    /// Whether AWS Backup copies the file system every day.
    pub backup: At<bool>,
    /// An existing file system, which is adopted and never deleted.
    pub file_system_id: Option<At<String>>,
    /// Whether the adopted file system gets mount targets where it has none.
    pub create_mount_targets: At<bool>,
}

/// How nodes reach the file system.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EfsDriver {
    /// Plain NFS 4.1.
    Nfs,
    /// AWS's CSI driver; known, and refused with the reason.
    Csi,
}

/// How throughput is paid for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThroughputMode {
    /// By what is read and written.
    Elastic,
    /// By the size of what is stored.
    Bursting,
}

impl ThroughputMode {
    /// The mode as cluster.yaml and AWS name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elastic => "elastic",
            Self::Bursting => "bursting",
        }
    }
}

impl std::fmt::Display for ThroughputMode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// After how many days without access a file moves to cheaper storage.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub enum Lifecycle {
    /// Never.
    #[serde(rename = "never")]
    Never,
    /// A week.
    #[serde(rename = "7d")]
    Days7,
    /// Two weeks.
    #[serde(rename = "14d")]
    Days14,
    /// About a month.
    #[serde(rename = "30d")]
    Days30,
    /// About two months.
    #[serde(rename = "60d")]
    Days60,
    /// About three months.
    #[serde(rename = "90d")]
    Days90,
}
