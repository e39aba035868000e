//! Whether the nodes that exist have room for a job.

use super::precondition::Precondition;
use crate::config::Pool;
use crate::config::values::PoolName;
use crate::job::ClusterFacts;
use crate::job::machine::{Machine, Needs};
use crate::job::names::JOB_LABEL;
use crate::job::workload::{RolePlan, Workload};
use crate::kube::{Node, Pod};
use crate::plural::count_of;

/// Checks the machines for every role: first all of their GPUs, then those that are free.
pub(super) fn machines(
    nodes: &[Node],
    pods: &[Pod],
    workload: &Workload,
    facts: ClusterFacts<'_>,
) -> Vec<Precondition> {
    let judge = |role| machines_for(role, nodes, pods, workload, facts);
    workload.roles.iter().flat_map(judge).collect()
}

fn machines_for(
    role: &RolePlan,
    nodes: &[Node],
    pods: &[Pod],
    workload: &Workload,
    facts: ClusterFacts<'_>,
) -> Vec<Precondition> {
    let pool = workload.pool.as_ref();
    let needs = needs_of(role, workload);
    let candidates = || {
        let in_pool = move |node: &&Node| {
            pool.is_none_or(|pool| node.pool.as_deref().is_some_and(|own| own == pool.as_str()))
        };
        nodes.iter().filter(|node| !node.is_controller).filter(in_pool)
    };
    let usable: Vec<&Node> = candidates().filter(|node| why_not(node, &needs).is_none()).collect();
    let room_on = |node: &&Node| Machine::of_node(node).room_for(&needs);
    // A node that does not say what it has may have room.
    let room = usable.iter().map(room_on).try_fold(0_u32, |sum, pods| Some(sum.saturating_add(pods?)));
    let place = pool.map_or_else(|| "the cluster".to_owned(), |pool| format!("pool {pool}"));
    let (gpus, replicas) = (role.gpus, role.replicas);
    let short = room.filter(|room| *room < replicas);
    if gpus == 0 {
        let besides = reasons(candidates(), &needs);
        let text = if usable.is_empty() {
            format!("{place} has no node that can run {}{besides}", describe_pod(role))
        } else if let Some(room) = short {
            format!(
                "{} {} more memory or CPUs than {place} has now: {}{besides}",
                pods_of(role),
                if replicas == 1 { "needs" } else { "need" },
                room_on_nodes(room, usable.len())
            )
        } else {
            return Vec::new();
        };
        return vec![unmet_or_started(text, &needs, pool, facts)];
    }
    if let Some(room) = short {
        let text = format!(
            "{} with {} each {} more than {place} has now: {}{}",
            count_of(replicas, "replica"),
            count_of(gpus, "GPU"),
            if replicas == 1 { "needs" } else { "need" },
            room_on_nodes(room, usable.len()),
            reasons(candidates().filter(|node| node.gpus >= gpus), &needs)
        );
        return vec![unmet_or_started(text, &needs, pool, facts)];
    }
    let free_on = |node: &&Node| {
        let free = node.gpus.saturating_sub(used_by_pods(node, pods, workload)) / gpus;
        room_on(node).map_or(free, |room| room.min(free))
    };
    let free: u32 = usable.iter().map(free_on).sum();
    if free < replicas {
        return vec![Precondition::Remark(format!(
            "other pods hold GPUs: there is room for {free} of {} now, the others wait",
            count_of(replicas, "replica")
        ))];
    }
    Vec::new()
}

fn needs_of<'a>(role: &'a RolePlan, workload: &Workload) -> Needs<'a> {
    Needs {
        gpus: role.gpus,
        processors: workload.processors.thousandths(),
        memory: workload.requested_memory.bytes(),
        tolerations: &role.tolerations,
    }
}

/// One pod of a role without GPUs, in words.
fn describe_pod(role: &RolePlan) -> &'static str {
    if role.role == "ps" { "a parameter server" } else { "a replica" }
}

/// All pods of a role without GPUs, in words.
fn pods_of(role: &RolePlan) -> String {
    count_of(role.replicas, if role.role == "ps" { "parameter server" } else { "replica" })
}

fn room_on_nodes(room: u32, nodes: usize) -> String {
    match (room, nodes) {
        (_, 0) => "no node is usable".to_owned(),
        (0, 1) => "the only usable node has no room".to_owned(),
        (0, nodes) => format!("none of {nodes} usable nodes has room"),
        (room, nodes) => {
            let noun = if nodes == 1 { "node" } else { "nodes" };
            format!("there is room for {room} on {nodes} usable {noun}")
        }
    }
}

/// GPUs of a node that others hold.
fn used_by_pods(node: &Node, pods: &[Pod], workload: &Workload) -> u32 {
    let is_own =
        |pod: &Pod| pod.namespace == workload.namespace && pod.labels.get(JOB_LABEL) == Some(&workload.name);
    pods.iter()
        .filter(|pod| pod.node.as_ref() == Some(&node.name) && !is_own(pod))
        .filter(|pod| !pod.phase.is_over())
        .map(|pod| pod.gpus)
        .sum()
}

/// Why no pod of the job would be placed on a node.
fn why_not(node: &Node, needs: &Needs<'_>) -> Option<String> {
    if !node.ready {
        return Some("not Ready".to_owned());
    }
    if !node.schedulable {
        return Some("cordoned".to_owned());
    }
    Machine::of_node(node).keeps_away(needs.tolerations).map(|taint| format!("tainted with {}", taint.key))
}

/// What is wrong with the nodes that cannot be used, each reason once.
fn reasons<'a>(nodes: impl Iterator<Item = &'a Node>, needs: &Needs<'_>) -> String {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for reason in nodes.filter_map(|node| why_not(node, needs)) {
        *counts.entry(reason).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if parts.is_empty() { String::new() } else { format!(" (not usable: {})", parts.join(", ")) }
}

/// The autoscaler starts machines for pods that wait, if it may.
fn unmet_or_started(
    text: String,
    needs: &Needs<'_>,
    pool: Option<&PoolName>,
    facts: ClusterFacts<'_>,
) -> Precondition {
    let fits = |candidate: &&Pool| {
        let machine = Machine::of_pool(candidate);
        pool.is_none_or(|name| candidate.name == *name)
            && machine.keeps_away(needs.tolerations).is_none()
            && machine.shortage(needs).is_none()
    };
    if let ClusterFacts::Nodes(_) = facts {
        // Whether a pool may grow is not seen from its nodes.
        return Precondition::Remark(format!("{text}; it waits until there are more machines"));
    }
    let may_grow = facts.blueprint().is_some_and(|blueprint| {
        let cluster = &blueprint.cluster;
        cluster.addons.cluster_autoscaler
            && cluster.pools.iter().filter(fits).any(|pool| pool.max_count > pool.min_count)
    });
    if may_grow {
        Precondition::Remark(format!("{text}; the autoscaler will start more"))
    } else {
        Precondition::Unmet(text)
    }
}
