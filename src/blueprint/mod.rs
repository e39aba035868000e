//! A [`Cluster`] into every decided fact about it: names, identities, components, and what each kind of machine is.
//!
//! In: a validated cluster. Out: plain data that the later layers only write down. No I/O, no clock, no AWS.

mod components;
mod identities;
mod names;
mod nodes;
#[cfg(test)]
mod test_cluster;

pub use components::{Components, ImageReferences, NvidiaRuntime};
pub use identities::{Authority, Identities, LeafCertificate, Secret, SigningKey, Usage};
pub use names::Names;
pub use nodes::{NodeTaint, PoolNodes, Role};

use crate::config::Cluster;
use crate::document::Fault;

/// Everything that follows from a cluster description.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The description itself.
    pub cluster: Cluster,
    /// Every name that is built from the cluster's.
    pub names: Names,
    /// Keys and certificates that must exist.
    pub identities: Identities,
    /// Images and files that nodes fetch.
    pub components: Components,
    /// Every kind of machine, in the order they come up.
    pub roles: Vec<Role>,
    /// What distinguishes each pool's nodes.
    pub pools: Vec<PoolNodes>,
}

impl Blueprint {
    /// Decides everything about a cluster.
    pub fn new(cluster: Cluster) -> Result<Self, Fault> {
        let names = Names::new(&cluster);
        Ok(Self {
            identities: Identities::new(&cluster, &names),
            components: Components::new(&cluster)?,
            roles: nodes::roles(&cluster),
            pools: cluster.pools.iter().map(PoolNodes::new).collect(),
            names,
            cluster,
        })
    }
}
