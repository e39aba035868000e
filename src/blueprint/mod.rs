//! A [`Cluster`] into every decided fact about it: names and identities.
//!
//! In: a validated cluster. Out: plain data that the later layers only write down. No I/O, no clock, no AWS.

mod identities;
mod names;

pub use identities::{Authority, Identities, LeafCertificate, Secret, SigningKey, Usage};
pub use names::Names;

use crate::config::Cluster;

/// Everything that follows from a cluster description.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The description itself.
    pub cluster: Cluster,
    /// Every name that is built from the cluster's.
    pub names: Names,
    /// Keys and certificates that must exist.
    pub identities: Identities,
}

impl Blueprint {
    /// Decides everything about a cluster.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        let names = Names::new(&cluster);
        let identities = Identities::new(&cluster, &names);
        Self { cluster, names, identities }
    }
}
