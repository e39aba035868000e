//! Names that are derived from the cluster's name.

use std::net::Ipv4Addr;

use crate::config::Cluster;
use crate::well_known::internal_domain;

/// The names of a cluster's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNames {
    /// The domain of the private hosted zone.
    pub internal_domain: String,
    /// The name of the API server inside the VPC.
    pub internal_api: String,
    /// The Service address of the cluster's DNS: by convention the tenth of the range.
    pub cluster_dns: Ipv4Addr,
    /// The name of the shared file system inside the VPC.
    pub file_system: String,
    etcd_count: u32,
}

impl ClusterNames {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let internal_domain = internal_domain(&cluster.name);
        Self {
            internal_api: format!("api.{internal_domain}"),
            cluster_dns: Ipv4Addr::from(u32::from(cluster.kubernetes.service_range.network()) + 10),
            file_system: format!("efs.{internal_domain}"),
            etcd_count: cluster.etcd.count,
            internal_domain,
        }
    }

    /// The name of an etcd member inside the VPC.
    #[must_use]
    pub fn etcd_member(&self, member: u32) -> String {
        format!("etcd-{member}.{}", self.internal_domain)
    }

    /// The addresses of all etcd members, for the API server.
    #[must_use]
    pub fn etcd_endpoints(&self) -> Vec<String> {
        (0..self.etcd_count).map(|member| format!("https://{}:2379", self.etcd_member(member))).collect()
    }

    /// Every member with its address for peers, in the format of etcd's `--initial-cluster`.
    #[must_use]
    pub fn etcd_initial_cluster(&self) -> String {
        let members = (0..self.etcd_count)
            .map(|member| format!("etcd-{member}=https://{}:2380", self.etcd_member(member)));
        members.collect::<Vec<_>>().join(",")
    }
}
