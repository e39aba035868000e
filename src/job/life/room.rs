//! Whether the machines that are there now have room for a job.

use super::preconditions::Precondition;
use crate::blueprint::Blueprint;
use crate::config::Pool;
use crate::job::names::JOB_LABEL;
use crate::job::workload::{RolePlan, Workload};
use crate::kube::{Node, Pod, Taint};

/// Judges the machines for every role; all of the GPUs first, then those that nobody uses.
pub(super) fn machines(
    nodes: &[Node],
    pods: &[Pod],
    workload: &Workload,
    blueprint: Option<&Blueprint>,
) -> Vec<Precondition> {
    let judge = |role| machines_for(role, nodes, pods, workload, blueprint);
    workload.roles.iter().flat_map(judge).collect()
}

fn machines_for(
    role: &RolePlan,
    nodes: &[Node],
    pods: &[Pod],
    workload: &Workload,
    blueprint: Option<&Blueprint>,
) -> Vec<Precondition> {
    let pool = workload.node_selector.values().next();
    let candidates = || {
        let in_pool = move |node: &&Node| pool.is_none() || node.pool.as_ref() == pool;
        nodes.iter().filter(|node| !node.is_controller).filter(in_pool)
    };
    let usable: Vec<&Node> = candidates().filter(|node| why_not(node, role).is_none()).collect();
    let place = pool.map_or_else(|| "the cluster".to_owned(), |pool| format!("pool {pool}"));
    let (gpus, replicas) = (role.gpus, role.replicas);
    if gpus == 0 {
        let besides = reasons(candidates(), role);
        let text = if usable.is_empty() {
            format!("{place} has no node that can run {}{besides}", what_it_is(role))
        } else {
            let room = usable
                .iter()
                .map(|node| pods_on(node, workload))
                .try_fold(0, |sum: u32, pods| pods.map(|pods| sum.saturating_add(pods)));
            match room {
                Some(room) if room < replicas => format!(
                    "{replicas} {} need more memory or processors than {place} has now: room for {room} on {} nodes{besides}",
                    role.role,
                    usable.len()
                ),
                _ => return Vec::new(),
            }
        };
        return vec![unmet_or_started(text, gpus, pool, blueprint)];
    }
    let room: u32 = usable.iter().map(|node| node.gpus / gpus).sum();
    if room < replicas {
        let text = format!(
            "{replicas} replicas with {gpus} {} each need more than {place} has now: room for {room} on {} nodes{}",
            if gpus == 1 { "GPU" } else { "GPUs" },
            usable.len(),
            reasons(candidates().filter(|node| node.gpus >= gpus), role)
        );
        return vec![unmet_or_started(text, gpus, pool, blueprint)];
    }
    let free: u32 =
        usable.iter().map(|node| node.gpus.saturating_sub(used(node, pods, workload)) / gpus).sum();
    if free < replicas {
        return vec![Precondition::Remark(format!(
            "others hold GPUs: there is room for {free} of {replicas} replicas now, the rest waits"
        ))];
    }
    Vec::new()
}

/// What a role without GPUs is called.
fn what_it_is(role: &RolePlan) -> &'static str {
    if role.role == "ps" { "a parameter server" } else { "it" }
}

/// How many pods of a job a node has memory and processors for if it is empty; nothing if it does not say what it has.
fn pods_on(node: &Node, workload: &Workload) -> Option<u32> {
    let by_memory = node.memory? / workload.requested_memory.bytes().max(1);
    let by_processors = node.processors? / workload.processors.thousandths().max(1);
    u32::try_from(by_memory.min(by_processors)).ok()
}

/// GPUs of a node that others hold.
fn used(node: &Node, pods: &[Pod], workload: &Workload) -> u32 {
    let is_own =
        |pod: &Pod| pod.namespace == workload.namespace && pod.labels.get(JOB_LABEL) == Some(&workload.name);
    pods.iter()
        .filter(|pod| pod.node.as_ref() == Some(&node.name) && !is_own(pod))
        .filter(|pod| !matches!(pod.phase.as_str(), "Succeeded" | "Failed"))
        .map(|pod| pod.gpus)
        .sum()
}

/// Why no pod of the job would be placed on a node.
fn why_not(node: &Node, role: &RolePlan) -> Option<String> {
    if !node.ready {
        return Some("not Ready".to_owned());
    }
    if !node.schedulable {
        return Some("closed for new pods".to_owned());
    }
    let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule" && !stands(role, taint);
    node.taints.iter().find(keeps_away).map(|taint| format!("tainted with {}", taint.key))
}

/// As the scheduler matches them: an empty key or effect of a toleration stands everything.
fn stands(role: &RolePlan, taint: &Taint) -> bool {
    role.tolerations.iter().any(|toleration| {
        let text = |key: &str| toleration[key].as_str().unwrap_or_default();
        let is_effect = text("effect").is_empty() || text("effect") == taint.effect;
        let is_value = text("operator") == "Exists" || text("value") == taint.value;
        is_effect && is_value && (text("key").is_empty() || text("key") == taint.key)
    })
}

/// What is wrong with the nodes that cannot be used, each reason once.
fn reasons<'a>(nodes: impl Iterator<Item = &'a Node>, role: &RolePlan) -> String {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for reason in nodes.filter_map(|node| why_not(node, role)) {
        *counts.entry(reason).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if parts.is_empty() { String::new() } else { format!(" (besides {})", parts.join(", ")) }
}

/// The autoscaler starts machines for pods that wait, if it may.
fn unmet_or_started(
    text: String,
    gpus: u32,
    pool: Option<&String>,
    blueprint: Option<&Blueprint>,
) -> Precondition {
    let fits = |candidate: &&Pool| {
        let has = candidate.gpus.as_ref().map_or(0, |gpus| gpus.count);
        // Machines with GPUs keep pods away that have none, unless their pool is named.
        let lets_in = gpus > 0 || pool.is_some() || candidate.gpus.is_none();
        has >= gpus && lets_in && pool.is_none_or(|name| candidate.name.as_str() == name)
    };
    let may_grow = blueprint.is_some_and(|blueprint| {
        let cluster = &blueprint.cluster;
        cluster.addons.cluster_autoscaler
            && cluster.pools.iter().filter(fits).any(|pool| pool.max_count > pool.min_count)
    });
    if may_grow {
        Precondition::Remark(format!("{text}; the autoscaler starts more"))
    } else {
        Precondition::Unmet(text)
    }
}
