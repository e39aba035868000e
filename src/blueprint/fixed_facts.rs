//! The keys of cluster.yaml whose values cannot change while the cluster exists.

use std::collections::BTreeMap;

use crate::config::{Cluster, NetworkLayout, ServiceAccountKey};

/// Each key whose value is fixed when the cluster is created, with that value.
#[must_use]
pub fn fixed_facts(cluster: &Cluster) -> BTreeMap<&'static str, String> {
    let zones: Vec<String> = cluster.availability_zones.iter().map(ToString::to_string).collect();
    let topology = match &cluster.network.layout {
        NetworkLayout::Public => "public".to_owned(),
        NetworkLayout::Private(_) => "private".to_owned(),
        NetworkLayout::Adopted { vpc, .. } => format!("the adopted {vpc}"),
    };
    let service_account_key = match cluster.kubernetes.service_account_key {
        ServiceAccountKey::Ecdsa => "ecdsa",
        ServiceAccountKey::Rsa => "rsa",
    };
    BTreeMap::from([
        ("clusterName", cluster.name.to_string()),
        ("externalDNSName", cluster.external_dns_name.to_string()),
        ("region", cluster.region.to_string()),
        // The order is fixed too: it decides the availability zone of each etcd member.
        ("availabilityZones", zones.join(", ")),
        ("kmsKeyArn", cluster.kms_key.to_string()),
        ("kubernetes.podCIDR", cluster.kubernetes.pod_range.to_string()),
        ("kubernetes.serviceCIDR", cluster.kubernetes.service_range.to_string()),
        ("kubernetes.serviceAccountKey", service_account_key.to_owned()),
        ("network.vpcCIDR", cluster.network.vpc_range.to_string()),
        ("network.topology", topology),
        ("etcd.count", cluster.etcd.count.to_string()),
    ])
}
