//! A [`Cluster`] into every decided fact about it: names, identities, components, roles of machines, network, and allowed connections.
//!
//! In: a validated cluster. Out: plain data that the later layers only write down. No I/O, no clock, no AWS.

mod billing;
mod components;
mod cost;
mod cost_summary;
mod etcd_space;
mod fixed_facts;
mod identities;
mod monitoring;
mod names;
mod network;
mod nodes;
mod prices;
mod schedule;
mod security;
mod stacks;
#[cfg(test)]
mod test_cluster;

pub use billing::{BilledItem, BlockIds, pool_charge};
pub use components::{Components, NvidiaRuntime};
pub use cost::{Charge, Cost, HOURS_A_MONTH, MachineCharge};
pub use cost_summary::CostSummary;
pub use fixed_facts::fixed_facts;
pub use identities::{Authority, Identities, LeafCertificate, Secret, SigningKey, Usage};
pub use monitoring::{MONITORING_NAMESPACE, PROMETHEUS_DIRECTORY, PROMETHEUS_PORT, PROMETHEUS_SELECTOR};
pub use names::ClusterNames;
pub use network::{NetworkPlan, Subnet, SubnetSource};
pub use nodes::{NodeTaint, PoolNodes, Role};
pub use prices::{Currency, DAYS_OF_A_PRICE, Period, Prices, UnitPrice};
pub use schedule::{
    BLOCK_BEGINS_AT, BLOCK_ENDS_AT, BlockAction, GroupSize, ScheduledAction, follows_block, is_end_of_pool,
};
pub use security::{ETCD_METRICS_PORT, Protocol, Rule, SecurityGroup, Source};
pub use stacks::StackPart;

use crate::config::values::PoolName;
use crate::config::{Cluster, FileSystemSource};
use crate::document::Fault;

/// The size of disks that hold only the operating system and the images of a few components.
pub const CONTROL_PLANE_DISK_GIB: u32 = 30;

/// Everything that follows from a cluster description.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The description itself.
    pub cluster: Cluster,
    /// Every name that is derived from the cluster's name.
    pub names: ClusterNames,
    /// Keys and certificates that must exist.
    pub identities: Identities,
    /// Images and files that nodes fetch.
    pub components: Components,
    /// Every role, in the order in which their machines start.
    pub roles: Vec<Role>,
    /// What distinguishes each pool's nodes.
    pub pools: Vec<PoolNodes>,
    /// Subnets and gateways.
    pub network: NetworkPlan,
    /// Security groups.
    pub security_groups: Vec<SecurityGroup>,
    /// Every connection that is allowed.
    pub rules: Vec<Rule>,
    /// Whether infra creates the mount targets of the file system.
    pub makes_mount_targets: bool,
    /// How large etcd's data may grow.
    pub etcd_quota_bytes: u64,
}

impl Blueprint {
    /// Decides everything about a cluster.
    pub fn new(cluster: Cluster) -> Result<Self, Fault> {
        let names = ClusterNames::new(&cluster);
        let makes_mount_targets =
            cluster.file_system.as_ref().is_some_and(|file_system| match &file_system.source {
                FileSystemSource::Created { .. } => true,
                FileSystemSource::Adopted { create_mount_targets, .. } => *create_mount_targets,
            });
        let security_groups = security::security_groups(&cluster, makes_mount_targets);
        Ok(Self {
            identities: Identities::new(&cluster, &names),
            components: Components::new(&cluster)?,
            roles: nodes::machine_roles(&cluster),
            pools: cluster.pools.iter().map(PoolNodes::new).collect(),
            network: NetworkPlan::new(&cluster),
            rules: security::security_rules(&cluster, &security_groups),
            security_groups,
            makes_mount_targets,
            etcd_quota_bytes: etcd_space::quota_bytes(cluster.etcd.volume_gib),
            names,
            cluster,
        })
    }

    /// What distinguishes a pool's nodes.
    #[must_use]
    pub fn pool_nodes(&self, pool: &PoolName) -> Option<&PoolNodes> {
        self.pools.iter().find(|nodes| nodes.name == *pool)
    }

    /// The reference by which nodes pull an image: at the mirror of its registry, if there is one.
    #[must_use]
    pub fn mirrored_image(&self, reference: &str) -> String {
        components::mirror_image(reference, &self.cluster)
    }
}
