//! Names that are built from the cluster's.

use crate::config::Cluster;

/// The names of a cluster's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The private hosted zone.
    pub internal_domain: String,
    /// The API server inside the VPC.
    pub internal_api: String,
}

impl Names {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let internal_domain = format!("{}.infra.internal", cluster.name);
        Self { internal_api: format!("api.{internal_domain}"), internal_domain }
    }

    /// An etcd member inside the VPC.
    #[must_use]
    pub fn etcd_member(&self, member: u32) -> String {
        format!("etcd-{member}.{}", self.internal_domain)
    }
}
