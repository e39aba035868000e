//! Whether the machines that are there now have room for a job.

use super::precondition::Precondition;
use crate::blueprint::Blueprint;
use crate::config::Pool;
use crate::config::values::PoolName;
use crate::job::machine::{Machine, Needs};
use crate::job::names::JOB_LABEL;
use crate::job::workload::{RolePlan, Workload};
use crate::kube::{Node, Pod};

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
            format!("{place} has no node that can run {}{besides}", what_it_is(role))
        } else if let Some(room) = short {
            format!(
                "{replicas} {} need more memory or processors than {place} has now: room for {room} on {} nodes{besides}",
                role.role,
                usable.len()
            )
        } else {
            return Vec::new();
        };
        return vec![unmet_or_started(text, &needs, pool, blueprint)];
    }
    if let Some(room) = short {
        let text = format!(
            "{replicas} replicas with {gpus} {} each need more than {place} has now: room for {room} on {} nodes{}",
            if gpus == 1 { "GPU" } else { "GPUs" },
            usable.len(),
            reasons(candidates().filter(|node| node.gpus >= gpus), &needs)
        );
        return vec![unmet_or_started(text, &needs, pool, blueprint)];
    }
    let free_on = |node: &&Node| {
        let free = node.gpus.saturating_sub(used(node, pods, workload)) / gpus;
        room_on(node).map_or(free, |room| room.min(free))
    };
    let free: u32 = usable.iter().map(free_on).sum();
    if free < replicas {
        return vec![Precondition::Remark(format!(
            "others hold GPUs: there is room for {free} of {replicas} replicas now, the rest waits"
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

/// What a role without GPUs is called.
fn what_it_is(role: &RolePlan) -> &'static str {
    if role.role == "ps" { "a parameter server" } else { "it" }
}

/// GPUs of a node that others hold.
fn used(node: &Node, pods: &[Pod], workload: &Workload) -> u32 {
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
        return Some("closed for new pods".to_owned());
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
    if parts.is_empty() { String::new() } else { format!(" (besides {})", parts.join(", ")) }
}

/// The autoscaler starts machines for pods that wait, if it may.
fn unmet_or_started(
    text: String,
    needs: &Needs<'_>,
    pool: Option<&PoolName>,
    blueprint: Option<&Blueprint>,
) -> Precondition {
    let fits = |candidate: &&Pool| {
        let machine = Machine::of_pool(candidate);
        pool.is_none_or(|name| candidate.name == *name)
            && machine.keeps_away(needs.tolerations).is_none()
            && machine.shortage(needs).is_none()
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
