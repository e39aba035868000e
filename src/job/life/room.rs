//! Whether the nodes that exist have room for a job.

use super::coming_machines::Lack;
use super::precondition::Precondition;
use crate::job::ClusterFacts;
use crate::job::machine::{Machine, Needs};
use crate::job::names::JOB_LABEL;
use crate::job::workload::{RolePlan, Workload};
use crate::kube::{Node, Pod};
use crate::plural::count_of;

/// What can be seen of a cluster's machines and of who uses them.
#[derive(Debug)]
pub(super) struct Sight {
    /// The nodes.
    pub(super) nodes: Vec<Node>,
    /// The pods.
    pub(super) pods: Vec<Pod>,
    /// Whether the pods of all namespaces could be read.
    pub(super) is_complete: bool,
}

/// How many pods of a role the nodes have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// On all usable nodes, whoever uses them now; nothing if a node does not say what it has.
    total: Option<u32>,
    /// Beside the pods that can be seen; of pods without GPUs, only machines are known.
    pub(super) free: Option<u32>,
}

/// The room for every role, in their order.
pub(super) fn rooms_of_roles(sight: &Sight, workload: &Workload) -> Vec<Room> {
    workload.roles.iter().map(|role| room_for(role, sight, workload)).collect()
}

/// Nodes that a role's pods may be placed on, as far as the pool decides.
fn candidate_nodes<'a>(sight: &'a Sight, workload: &'a Workload) -> impl Iterator<Item = &'a Node> {
    let pool = workload.pool.as_ref();
    let in_pool = move |node: &&Node| {
        pool.is_none_or(|pool| node.pool.as_deref().is_some_and(|own| own == pool.as_str()))
    };
    sight.nodes.iter().filter(|node| !node.is_controller).filter(in_pool)
}

fn room_for(role: &RolePlan, sight: &Sight, workload: &Workload) -> Room {
    let needs = needs_of(role, workload);
    let usable: Vec<&Node> =
        candidate_nodes(sight, workload).filter(|node| why_not(node, &needs).is_none()).collect();
    let room_on = |node: &&Node| Machine::of_node(node).room_for(&needs);
    // A node that does not say what it has may have room.
    let total = usable.iter().map(room_on).try_fold(0_u32, |sum, pods| Some(sum.saturating_add(pods?)));
    if role.gpus == 0 {
        return Room { total, free: total };
    }
    let free_on = |node: &&Node| {
        let free = node.gpus.saturating_sub(used_by_pods(node, &sight.pods, workload)) / role.gpus;
        room_on(node).map_or(free, |room| room.min(free))
    };
    Room { total, free: Some(usable.iter().map(free_on).sum()) }
}

/// Checks the machines for every role: first all of their GPUs, then those that are free.
pub(super) fn check_machines_of_roles(
    sight: &Sight,
    rooms: &[Room],
    workload: &Workload,
    facts: ClusterFacts<'_>,
) -> Vec<Precondition> {
    let judge = |(role, room): (&RolePlan, &Room)| machines_for(role, *room, sight, workload, facts);
    workload.roles.iter().zip(rooms).flat_map(judge).collect()
}

fn machines_for(
    role: &RolePlan,
    room: Room,
    sight: &Sight,
    workload: &Workload,
    facts: ClusterFacts<'_>,
) -> Vec<Precondition> {
    let pool = workload.pool.as_ref();
    let needs = needs_of(role, workload);
    let candidates = || candidate_nodes(sight, workload);
    let usable = candidates().filter(|node| why_not(node, &needs).is_none()).count();
    let place = pool.map_or_else(|| "the cluster".to_owned(), |pool| format!("pool {pool}"));
    let (gpus, replicas) = (role.gpus, role.replicas);
    let short = room.total.filter(|room| *room < replicas);
    let lack =
        Lack { pods: replicas.saturating_sub(room.total.unwrap_or(0)), needs, pool, nodes: &sight.nodes };
    if gpus == 0 {
        let besides = reasons_against_nodes(candidates(), &needs);
        let text = if usable == 0 {
            format!("{place} has no node that can run {}{besides}", describe_pod(role))
        } else if let Some(room) = short {
            format!(
                "{} {} more {} than {place} has now: {}{besides}",
                pods_of(role),
                if replicas == 1 { "needs" } else { "need" },
                if needs.scratch > 0 { "memory, CPUs or scratch" } else { "memory or CPUs" },
                room_on_nodes(room, usable)
            )
        } else {
            return Vec::new();
        };
        return vec![unmet_or_coming(text, &lack, facts)];
    }
    if let Some(room) = short {
        let text = format!(
            "{} with {} each {} more than {place} has now: {}{}",
            count_of(replicas, "replica"),
            count_of(gpus, "GPU"),
            if replicas == 1 { "needs" } else { "need" },
            room_on_nodes(room, usable),
            reasons_against_nodes(candidates().filter(|node| node.gpus >= gpus), &needs)
        );
        return vec![unmet_or_coming(text, &lack, facts)];
    }
    let Some(free) = room.free.filter(|free| *free < replicas) else { return Vec::new() };
    // Pods of namespaces that cannot be seen may hold more.
    let at_most = if sight.is_complete { "" } else { "at most " };
    vec![Precondition::Remark(format!(
        "other pods hold GPUs: there is room for {at_most}{free} of {} now, the others wait",
        count_of(replicas, "replica")
    ))]
}

fn needs_of<'a>(role: &'a RolePlan, workload: &Workload) -> Needs<'a> {
    Needs {
        gpus: role.gpus,
        processors: workload.processors.thousandths(),
        memory: workload.requested_memory.bytes(),
        scratch: u64::from(role.scratch_gib.unwrap_or(0)) << 30,
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
    let machine = Machine::of_node(node);
    if needs.scratch > 0 && machine.has_no_scratch() {
        return Some("without scratch".to_owned());
    }
    machine.keeps_away(needs.tolerations).map(|taint| format!("tainted with {}", taint.key))
}

/// What is wrong with the nodes that cannot be used, each reason once.
fn reasons_against_nodes<'a>(nodes: impl Iterator<Item = &'a Node>, needs: &Needs<'_>) -> String {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for reason in nodes.filter_map(|node| why_not(node, needs)) {
        *counts.entry(reason).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if parts.is_empty() { String::new() } else { format!(" (not usable: {})", parts.join(", ")) }
}

/// A job that lacks machines may wait for them, if some will come.
fn unmet_or_coming(text: String, lack: &Lack<'_>, facts: ClusterFacts<'_>) -> Precondition {
    if let ClusterFacts::Nodes(_) = facts {
        // Whether a pool may grow is not seen from its nodes.
        return Precondition::Remark(format!("{text}; it waits until there are more machines"));
    }
    match facts.blueprint().and_then(|blueprint| lack.when_machines_come(&blueprint.cluster)) {
        Some(when) => Precondition::Remark(format!("{text}; {when}")),
        None => Precondition::Unmet(text),
    }
}
