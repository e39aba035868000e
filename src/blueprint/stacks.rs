//! The stacks of a cluster, and which of them need which.

use std::fmt;

use crate::config::Cluster;
use crate::config::values::{ClusterName, PoolName};
use crate::well_known::POOL_PREFIX;

/// The part of a cluster that one stack holds, in the order of creation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StackPart {
    /// VPC, subnets, security groups, private hosted zone.
    Network,
    /// The shared file system.
    Storage,
    /// etcd, controllers, load balancers.
    ControlPlane,
    /// A pool of workers.
    Pool(PoolName),
}

impl StackPart {
    /// The parts of a cluster, in the order of creation.
    #[must_use]
    pub fn of_cluster(cluster: &Cluster) -> Vec<Self> {
        let storage = cluster.file_system.as_ref().map(|_| Self::Storage);
        let pools = cluster.pools.iter().map(|pool| Self::Pool(pool.name.clone()));
        std::iter::once(Self::Network).chain(storage).chain([Self::ControlPlane]).chain(pools).collect()
    }

    /// The name of the part in files; with the cluster's name before it, the name of the stack.
    #[must_use]
    pub fn file_name(&self) -> String {
        match self {
            Self::Network => "network".to_owned(),
            Self::Storage => "storage".to_owned(),
            Self::ControlPlane => "control-plane".to_owned(),
            Self::Pool(name) => format!("{POOL_PREFIX}{name}"),
        }
    }

    /// The stack's name in AWS.
    #[must_use]
    pub fn stack_name(&self, cluster: &ClusterName) -> String {
        format!("{cluster}-{}", self.file_name())
    }

    /// The part of a stack by its name; `None` if a cluster of this name cannot have such a stack.
    #[must_use]
    pub fn from_stack_name(cluster: &ClusterName, stack: &str) -> Option<Self> {
        match stack.strip_prefix(cluster.as_str())?.strip_prefix('-')? {
            "network" => Some(Self::Network),
            "storage" => Some(Self::Storage),
            "control-plane" => Some(Self::ControlPlane),
            other => other.strip_prefix(POOL_PREFIX)?.parse().ok().map(Self::Pool),
        }
    }

    /// Whether a cluster with a longer name can have a stack of the same name: the pool `network` of `x` and the network
    /// of `x-pool` are both `x-pool-network`.
    #[must_use]
    pub fn has_ambiguous_name(&self) -> bool {
        let Self::Pool(name) = self else { return false };
        let name = name.as_str();
        let is_or_ends_with = |part: &str| {
            name.strip_suffix(part).is_some_and(|before| before.is_empty() || before.ends_with('-'))
        };
        ["network", "storage", "control-plane"].into_iter().any(is_or_ends_with)
            || name.starts_with(POOL_PREFIX)
            || name.contains(&format!("-{POOL_PREFIX}"))
    }

    /// The parts that must exist before this one.
    #[must_use]
    pub fn needs(&self) -> &'static [Self] {
        match self {
            Self::Network => &[],
            Self::Storage | Self::ControlPlane => &[Self::Network],
            Self::Pool(_) => &[Self::Network, Self::Storage, Self::ControlPlane],
        }
    }

    /// Whether the stack holds data that cannot be created again, and has termination protection.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        matches!(self, Self::Storage | Self::ControlPlane)
    }
}

impl fmt::Display for StackPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => formatter.write_str("network"),
            Self::Storage => formatter.write_str("storage"),
            Self::ControlPlane => formatter.write_str("control plane"),
            Self::Pool(name) => write!(formatter, "pool {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::StackPart;

    #[test]
    fn a_stack_name_gives_its_part() -> Result<(), crate::document::Problems> {
        let cluster = cluster(", pools: [{name: storage, instanceType: m5.large}], storage: {efs: {}}")?;
        let parts = StackPart::of_cluster(&cluster);
        assert_eq!(parts.len(), 4);
        for part in parts {
            let name = part.stack_name(&cluster.name);
            assert_eq!(StackPart::from_stack_name(&cluster.name, &name), Some(part));
        }
        assert_eq!(StackPart::from_stack_name(&cluster.name, "paddle2-network"), None);
        assert_eq!(StackPart::from_stack_name(&cluster.name, "paddle-other"), None);
        assert_eq!(
            StackPart::from_stack_name(&cluster.name, "paddle-pool-GPU"),
            None,
            "no pool has this name"
        );
        Ok(())
    }

    #[test]
    fn a_pools_stack_may_have_the_name_of_another_clusters() -> Result<(), crate::document::Fault> {
        for name in ["network", "storage", "control-plane", "a-network", "pool-gpu", "a-pool-gpu"] {
            assert!(StackPart::Pool(name.parse()?).has_ambiguous_name(), "{name}");
        }
        for name in ["gpu", "networks", "mynetwork", "plane", "pool", "carpool-a"] {
            assert!(!StackPart::Pool(name.parse()?).has_ambiguous_name(), "{name}");
        }
        assert!(!StackPart::Network.has_ambiguous_name());
        Ok(())
    }
}
