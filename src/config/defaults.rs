//! Every default of cluster.yaml, and the reason for it.

use super::file::{
    AddonsFile, ApiFile, Channel, ControllersFile, Distribution, DnsFile, EfsDriver, EfsFile, EtcdFile,
    KubernetesFile, Lifecycle, MonitoringFile, Nat, NetworkFile, OsFile, ServiceAccountKey, ThroughputMode,
    Topology,
};
use crate::document::At;

impl Default for KubernetesFile {
    fn default() -> Self {
        Self {
            // The newest version whose binaries have known hashes.
            version: At::implied("v1.36.3"),
            // 256 nodes of a /24 each; beside the VPC's default range, not in it.
            pod_cidr: At::implied("10.2.0.0/16"),
            // 253 Services, as kube-aws had it.
            service_cidr: At::implied("10.3.0.0/24"),
            // Small and fast; RSA matters only to those who publish OIDC discovery.
            service_account_key: ServiceAccountKey::Ecdsa,
        }
    }
}

impl Default for OsFile {
    fn default() -> Self {
        Self {
            // The maintained successor of CoreOS Container Linux, and the one with its own NVIDIA drivers.
            distribution: At::implied(Distribution::Flatcar),
            channel: Channel::Stable,
            // Flatcar's own account.
            image_owner: None,
        }
    }
}

impl Default for NetworkFile {
    fn default() -> Self {
        Self {
            // The largest range a VPC may have, so that availability zones and pools can be added.
            vpc_cidr: At::implied("10.0.0.0/16"),
            // No NAT gateway to pay for; security groups keep machines closed.
            topology: At::implied(Topology::Public),
            // A user who chooses private topology wants to survive the loss of an availability zone.
            nat: At::implied(Nat::PerZone),
            existing: None,
        }
    }
}

impl Default for ApiFile {
    fn default() -> Self {
        Self {
            // kubectl works from anywhere; the API asks for a client certificate.
            public: true,
            allowed_cidrs: At::implied([At::implied("0.0.0.0/0")]),
            additional_names: Vec::new(),
        }
    }
}

impl Default for DnsFile {
    fn default() -> Self {
        // A cluster whose name does not resolve is of no use.
        Self { manage: true, hosted_zone_id: None }
    }
}

impl Default for EtcdFile {
    fn default() -> Self {
        Self {
            // The fewest that survive the loss of one.
            count: At::implied(3_u32),
            // 4 GiB of memory hold etcd's whole data set at its default limit.
            instance_type: At::implied("t3.medium"),
            // The 8 GiB limit of the data set, its log and a few snapshots.
            volume_gib: At::implied(20_u32),
            restore: None,
        }
    }
}

impl Default for ControllersFile {
    fn default() -> Self {
        Self {
            // The fewest that survive the loss of one.
            count: At::implied(2_u32),
            instance_type: At::implied("t3.medium"),
        }
    }
}

impl Default for EfsFile {
    fn default() -> Self {
        Self {
            // Needs nothing but the kernel.
            driver: At::implied(EfsDriver::Nfs),
            // Training reads for longer than bursting credits last.
            throughput_mode: At::implied(ThroughputMode::Elastic),
            mount_path: At::implied("/mnt/efs"),
            // Old checkpoints and data sets are most of what is stored.
            lifecycle: At::implied(Lifecycle::Days30),
            // A copy is a decision with a price.
            backup: At::implied(false),
            file_system_id: None,
            // What exists is left as it is.
            create_mount_targets: At::implied(false),
        }
    }
}

impl Default for AddonsFile {
    fn default() -> Self {
        Self {
            cluster_autoscaler: true,
            metrics_server: true,
            job_set: true,
            // Takes memory on controllers and opens a port of etcd members.
            monitoring: At::implied(MonitoringFile::Wanted(false)),
        }
    }
}

/// A pool that is named has at least one machine.
pub(super) fn pool_count() -> At<u32> {
    At::implied(1_u32)
}

/// Room for a few GPU images of 10 GiB and more.
pub(super) fn root_volume_gib() -> At<u32> {
    At::implied(100_u32)
}

/// Pods do not get the machine's role.
pub(super) fn metadata_hop_limit() -> At<u32> {
    At::implied(1_u32)
}
