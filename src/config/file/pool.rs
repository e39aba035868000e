//! The pools section of cluster.yaml.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entries::Entries;
use crate::config::values::MachineCount;
use crate::document::At;

/// A pool of worker machines.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PoolFile {
    /// The name of the pool, part of its stack's name and the value of the node label `infra.internal/pool`.
    #[schemars(regex(pattern = r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$"))]
    pub name: At<String>,
    /// The instance type of the machines.
    pub instance_type: At<String>,
    /// More types to choose from, of the same architecture and GPU.
    #[serde(default)]
    pub instance_types: Vec<At<String>>,
    /// The number of machines.
    #[serde(default = "crate::config::defaults::pool_count")]
    #[schemars(range(min = 0, max = MachineCount::MOST))]
    pub count: At<u32>,
    /// The least that the autoscaler keeps; `count` if not given.
    #[serde(default)]
    #[schemars(range(min = 0, max = MachineCount::MOST))]
    pub min_count: Option<At<u32>>,
    /// The most that the autoscaler may start; `count` if not given.
    #[serde(default)]
    #[schemars(range(min = 0, max = MachineCount::MOST))]
    pub max_count: Option<At<u32>>,
    /// Whether machines are spot machines: cheaper, and interrupted at two minutes' notice.
    #[serde(default)]
    pub spot: At<bool>,
    /// The availability zones of this pool; all of the cluster's if not given. Training is faster in one.
    #[serde(default)]
    pub availability_zones: Option<At<Vec<At<String>>>>,
    /// How machines of a changed pool are replaced; `manual` for GPU pools and `rolling` for others if not given.
    #[serde(default)]
    pub rollout: Option<Rollout>,
    /// The size of each machine's root disk, which images and pods are on unless the machine has drives of its own.
    #[serde(default = "crate::config::defaults::root_volume_gib", rename = "rootVolumeGiB")]
    #[schemars(range(min = 20, max = 16384))]
    pub root_volume_gib: At<u32>,
    /// Whether machines are close together for a fast network; needs one availability zone. The default is true with `efa` and without a capacity reservation.
    #[serde(default)]
    pub placement_group: At<bool>,
    /// The capacity reservation that the machines start in; excludes spot. With the image `deep-learning` it may be a capacity block: the pool has machines while the block is open.
    #[serde(default)]
    pub capacity_reservation_id: Option<At<String>>,
    /// Managed IAM policies for the IAM role of the machines.
    #[serde(default)]
    pub managed_policy_arns: At<Vec<At<String>>>,
    /// The hop limit of instance metadata; 2 lets pods use the IAM role of the machine.
    #[serde(default = "crate::config::defaults::metadata_hop_limit")]
    #[schemars(range(min = 1, max = 64))]
    pub metadata_hop_limit: At<u32>,
    /// The NVIDIA driver of a GPU pool, as in `570-open`; one that suits the GPU if not given.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[1-9][0-9]{2}(-open)?$"))]
    pub nvidia_driver: Option<At<String>>,
    /// The image of the machines; only GPU pools can have another than Flatcar.
    #[serde(default)]
    pub image: At<PoolImage>,
    /// Whether machines talk to each other over Elastic Fabric Adapter; needs the image `deep-learning`, private topology and one availability zone.
    #[serde(default)]
    pub efa: At<bool>,
    /// When the pool has how many machines. AWS enforces it, whether or not anyone is there.
    #[serde(default)]
    pub schedule: At<Vec<At<ScheduleEntryFile>>>,
    /// The time zone of the schedule, by its name in the IANA database, as in `Europe/Berlin`; UTC if not given.
    #[serde(default)]
    pub time_zone: Option<At<String>>,
    /// When the pool ends, in UTC and within a year, as in `2027-06-01T18:00:00Z`: AWS sets it to no machines then.
    #[serde(default)]
    pub expires: Option<At<String>>,
    /// Labels of the pool's nodes.
    #[serde(default)]
    pub labels: Entries,
    /// Taints of the pool's nodes.
    #[serde(default)]
    pub taints: Vec<At<TaintFile>>,
}

/// The image that a pool's machines boot from.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolImage {
    /// Flatcar Container Linux, as the control plane has it.
    #[default]
    Flatcar,
    /// AWS's Deep Learning Base image with Ubuntu, NVIDIA's driver and fabric manager, and EFA.
    DeepLearning,
}

impl PoolImage {
    /// The image as cluster.yaml names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flatcar => "flatcar",
            Self::DeepLearning => "deep-learning",
        }
    }
}

impl std::fmt::Display for PoolImage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How a changed pool gets new machines.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rollout {
    /// One after the other, by `up`.
    Rolling,
    /// When you say so: `up --pool NAME --replace-nodes`.
    Manual,
}

/// How many machines a pool has from a recurring moment on.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ScheduleEntryFile {
    /// The moment, in the five fields of cron, as in `0 20 * * MON-FRI`.
    pub at: At<String>,
    /// The number of machines. None, or fewer than `minCount`, hold the pool there; any other sets `minCount` and `maxCount` again.
    #[schemars(range(min = 0, max = MachineCount::MOST))]
    pub count: At<u32>,
}

/// A taint of a pool's nodes.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TaintFile {
    /// The taint's key.
    pub key: At<String>,
    /// The taint's value.
    #[serde(default)]
    pub value: Option<At<String>>,
    /// The effect on pods that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub enum TaintEffect {
    /// The pods are not started here.
    NoSchedule,
    /// The pods are started here only if there is no other place.
    PreferNoSchedule,
    /// The pods are not started here, and running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The effect as Kubernetes names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl std::fmt::Display for TaintEffect {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}
