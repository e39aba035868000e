//! Tags that stacks put on Auto Scaling groups, machines, disks and interfaces. Tags of the stack itself do not reach the machines' disks.

use serde_json::{Value, json};

use super::json::Json;
use crate::blueprint::{Blueprint, PoolNodes, Role};
use crate::config::gpu::EfaCards;
use crate::config::instance_store::InstanceStore;
use crate::config::{Cluster, Pool};
use crate::well_known::{
    AUTOSCALER_LABEL_PREFIX, AUTOSCALER_RESOURCE_PREFIX, AUTOSCALER_TAG_PREFIX, AUTOSCALER_TAINT_PREFIX,
    CLUSTER_TAG, COUNT_TAG, EFA_RESOURCE, GPU_RESOURCE, HUGE_PAGES_RESOURCE, LIMITS_TAG, ROLE_TAG,
    STORAGE_RESOURCE, kubernetes_cluster_tag,
};

/// The tags of a machine, its disks and its interfaces.
fn machine_tags(cluster: &Cluster, role: &str) -> Vec<(String, String)> {
    let own = [
        ("Name".to_owned(), format!("{}-{role}", cluster.name)),
        (CLUSTER_TAG.to_owned(), cluster.name.to_string()),
        (ROLE_TAG.to_owned(), role.to_owned()),
    ];
    let of_team = cluster.tags.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    own.into_iter().chain(of_team).collect()
}

fn as_list(tags: &[(String, String)]) -> Value {
    tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

/// A launch template's tags for a machine, its disks and its interfaces.
pub(super) fn tag_specifications(blueprint: &Blueprint, role: &str, own_interface: bool) -> Json {
    let tags = as_list(&machine_tags(&blueprint.cluster, role));
    // A launch cannot tag an interface that exists already.
    let kinds: &[&str] =
        if own_interface { &["instance", "volume"] } else { &["instance", "volume", "network-interface"] };
    let specifications: Value =
        kinds.iter().map(|kind| json!({"ResourceType": kind, "Tags": tags})).collect();
    specifications.into()
}

/// The tags of an Auto Scaling group whose machines are Kubernetes nodes, or not.
pub(super) fn group_tags(blueprint: &Blueprint, role: &str, is_node: bool) -> Json {
    Value::Array(base_group_tags(blueprint, role, is_node)).into()
}

/// The tags of a pool's Auto Scaling group, with what the autoscaler must know about a pool that has no node.
pub(super) fn pool_group_tags(blueprint: &Blueprint, nodes: &PoolNodes, pool: &Pool) -> Json {
    let cluster = &blueprint.cluster.name;
    let mut tags = base_group_tags(blueprint, &Role::Pool(nodes.name.clone()).name(), true);
    let mut add =
        |key: String, value: &str| tags.push(json!({"Key": key, "Value": value, "PropagateAtLaunch": false}));
    // What cluster.yaml asked for: compared with the live tag it distinguishes a new count from one that the autoscaler has changed since.
    add(COUNT_TAG.to_owned(), &pool.count.to_string());
    if !pool.schedule.is_empty() || pool.may_have_block() {
        // The Auto Scaling group's own may be those of its schedule, or none outside of its capacity block.
        add(LIMITS_TAG.to_owned(), &format!("{}-{}", pool.min_count, pool.max_count));
    }
    add(format!("{AUTOSCALER_TAG_PREFIX}enabled"), "true");
    add(format!("{AUTOSCALER_TAG_PREFIX}{cluster}"), "owned");
    for (key, value) in &nodes.labels {
        add(format!("{AUTOSCALER_LABEL_PREFIX}{key}"), value);
    }
    for taint in &nodes.taints {
        let key = format!("{AUTOSCALER_TAINT_PREFIX}{}", taint.key);
        add(key, &format!("{}:{}", taint.value, taint.effect));
    }
    if let Some(gpus) = &pool.gpus {
        add(format!("{AUTOSCALER_RESOURCE_PREFIX}{GPU_RESOURCE}"), &gpus.count.to_string());
    }
    if let Some(cards) = pool.efa {
        add(format!("{AUTOSCALER_RESOURCE_PREFIX}{EFA_RESOURCE}"), &cards.count.to_string());
        let mebibytes = EfaCards::HUGE_PAGES * 2;
        add(format!("{AUTOSCALER_RESOURCE_PREFIX}{HUGE_PAGES_RESOURCE}"), &format!("{mebibytes}Mi"));
    }
    if let Some(scratch) = nodes.instance_store.and_then(InstanceStore::scratch) {
        add(format!("{AUTOSCALER_RESOURCE_PREFIX}{STORAGE_RESOURCE}"), &format!("{}Gi", scratch.pods_gib));
    }
    Value::Array(tags).into()
}

fn base_group_tags(blueprint: &Blueprint, role: &str, is_node: bool) -> Vec<Value> {
    let cluster = &blueprint.cluster.name;
    let mut tags = vec![
        json!({"Key": "Name", "Value": format!("{cluster}-{role}"), "PropagateAtLaunch": true}),
        json!({"Key": ROLE_TAG, "Value": role, "PropagateAtLaunch": true}),
    ];
    if is_node {
        let key = kubernetes_cluster_tag(cluster);
        tags.push(json!({"Key": key, "Value": "owned", "PropagateAtLaunch": true}));
    }
    tags
}
