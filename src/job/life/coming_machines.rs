//! When there are machines for pods that the nodes have no room for: the autoscaler, a schedule or a capacity block starts them.

use crate::blueprint::{BlockAction, ScheduledAction};
use crate::config::values::PoolName;
use crate::config::{Cluster, Pool};
use crate::job::machine::{Machine, Needs};
use crate::kube::Node;

/// Pods that the nodes have no room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lack<'a> {
    /// How many.
    pub(super) pods: u32,
    /// What each of them needs.
    pub(super) needs: Needs<'a>,
    /// The pool that the job names.
    pub(super) pool: Option<&'a PoolName>,
    /// The nodes that exist.
    pub(super) nodes: &'a [Node],
}

/// What a pool waits for before it may have more machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Block,
    Schedule,
}

impl Lack<'_> {
    /// When there are machines for the pods, in words; nothing if no pool will have enough.
    pub(super) fn when_machines_come(&self, cluster: &Cluster) -> Option<String> {
        let has_autoscaler = cluster.addons.cluster_autoscaler;
        let grows = |pool: &Pool| has_autoscaler && pool.max_count > pool.min_count;
        let (mut first, mut gated, mut at_once, mut starting) = (None, 0_u32, 0_u32, 0_u32);
        let mut held = None;
        for pool in cluster.pools.iter().filter(|pool| self.fits(pool)) {
            match self.gate(pool, grows(pool)) {
                None if grows(pool) => {
                    at_once = at_once.saturating_add(self.room_on(pool, self.machines_left(pool)));
                    starting = starting.saturating_add(self.room_on(pool, self.starting_nodes_of(pool)));
                    held = held.or_else(|| self.may_be_held(pool).then_some(&pool.name));
                }
                None => {}
                Some(gate) => {
                    let to_come = self.room_to_come(pool, has_autoscaler);
                    gated = gated.saturating_add(to_come);
                    first = first.or_else(|| (to_come > 0).then(|| describe_gate(gate, pool, grows(pool))));
                }
            }
        }
        if at_once >= self.pods {
            let unless =
                held.map(|name| format!(", unless pool {name} has ended or its schedule holds it at none"));
            return Some(format!("the autoscaler will start more{}", unless.unwrap_or_default()));
        }
        if starting > 0 && at_once.saturating_add(starting) >= self.pods {
            return Some("the job waits until machines that exist are Ready".to_owned());
        }
        first.filter(|_| gated.saturating_add(at_once) >= self.pods)
    }

    fn fits(&self, pool: &Pool) -> bool {
        let machine = Machine::of_pool(pool);
        self.pool.is_none_or(|name| pool.name == *name)
            && machine.keeps_away(self.needs.tolerations).is_none()
            && machine.shortage(&self.needs).is_none()
    }

    fn own_nodes<'b>(&'b self, pool: &'b Pool) -> impl Iterator<Item = &'b Node> {
        self.nodes.iter().filter(|node| node.pool.as_deref() == Some(pool.name.as_str()))
    }

    fn nodes_of(&self, pool: &Pool) -> u32 {
        u32::try_from(self.own_nodes(pool).count()).unwrap_or(u32::MAX)
    }

    /// Nodes that are not Ready: they start, or come back.
    fn starting_nodes_of(&self, pool: &Pool) -> u32 {
        let starting = self.own_nodes(pool).filter(|node| !node.ready && node.schedulable);
        u32::try_from(starting.count()).unwrap_or(u32::MAX)
    }

    /// How many more machines the autoscaler may start in a pool.
    fn machines_left(&self, pool: &Pool) -> u32 {
        pool.max_count.saturating_sub(self.nodes_of(pool))
    }

    /// What a pool waits for, if it waits.
    fn gate(&self, pool: &Pool, grows: bool) -> Option<Gate> {
        let nodes = self.nodes_of(pool);
        let entries = &pool.schedule.entries;
        if entries.is_empty() {
            // There are machines only while a block is open.
            return (pool.may_have_block() && nodes == 0).then_some(Gate::Block);
        }
        let starts = entries.iter().any(|entry| entry.count > 0);
        (starts && (self.may_be_held(pool) || !grows)).then_some(Gate::Schedule)
    }

    /// Whether a schedule may hold a pool below its minimum or at none, as it does from its end on: nobody starts machines there then.
    fn may_be_held(&self, pool: &Pool) -> bool {
        let is_held_at_times =
            ScheduledAction::of_pool(pool).iter().any(|action| action.size.most < pool.max_count);
        is_held_at_times && self.nodes_of(pool) < pool.min_count.max(1)
    }

    /// How many such pods have room on the machines that a schedule or a block will start.
    fn room_to_come(&self, pool: &Pool, has_autoscaler: bool) -> u32 {
        let of_block = BlockAction::of_pool(pool).into_iter().map(|action| action.size);
        let of_schedule = ScheduledAction::of_pool(pool).into_iter().map(|action| action.size);
        let sizes = of_block.chain(of_schedule);
        let machines = sizes.map(|size| if has_autoscaler { size.most } else { size.desired }).max();
        self.room_on(pool, machines.unwrap_or(0).saturating_sub(self.nodes_of(pool)))
    }

    /// How many such pods that many machines of a pool have room for. What is not known does not decide.
    fn room_on(&self, pool: &Pool, machines: u32) -> u32 {
        machines.saturating_mul(Machine::of_pool(pool).room_for(&self.needs).unwrap_or(u32::MAX))
    }
}

/// When a pool has more machines. Without a minimum it may have none at a time when it could have some.
fn describe_gate(gate: Gate, pool: &Pool, grows: bool) -> String {
    let name = &pool.name;
    match (gate, grows && pool.min_count == 0) {
        (Gate::Block, false) => format!("the job waits until the capacity block of pool {name} is open"),
        (Gate::Block, true) => {
            format!("the autoscaler will start more while the capacity block of pool {name} is open")
        }
        (Gate::Schedule, false) => format!("the job waits until the schedule of pool {name} starts machines"),
        (Gate::Schedule, true) => {
            format!("the autoscaler will start more when the schedule of pool {name} allows it")
        }
    }
}
