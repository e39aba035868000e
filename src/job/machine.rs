//! What a machine offers to pods, and whether pods fit: one rule for the machines of a pool and for the nodes that exist.

use crate::config::gpu::EfaCards;
use crate::config::instance_store::InstanceStore;
use crate::config::machine_size::machine_size;
use crate::config::{self, Pool};
use crate::kube::{Node, Taint, TaintEffect, Toleration};
use crate::well_known::GPU_RESOURCE;

const GIBIBYTE: u64 = 1 << 30;
/// The bytes of a huge page.
pub(super) const HUGE_PAGE: u64 = 2 << 20;
/// What the system, the kubelet and the daemons of a node keep of its memory, at least.
const RESERVED_GIBIBYTES: u64 = 1;

/// What a machine offers to pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// GPUs of the machine.
    pub(super) gpus: u32,
    /// EFA adapters of the machine.
    pub(super) efa: u32,
    /// Thousandths of processors for pods, where that is known.
    processors: Option<u64>,
    /// Bytes of memory for pods, where that is known.
    memory: Option<u64>,
    /// Bytes of the machine's own drives for pods, where that is known.
    scratch: Option<u64>,
    taints: Vec<Taint>,
}

/// What a pod needs of its machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'a> {
    /// GPUs of the pod.
    pub(super) gpus: u32,
    /// Thousandths of processors.
    pub(super) processors: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
    /// Bytes of the machine's own drives.
    pub(super) scratch: u64,
    /// Taints that do not keep the pod away.
    pub(super) tolerations: &'a [Toleration],
}

/// What a machine has too little of for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    Gpus,
    Scratch,
    Memory,
    Processors,
}

/// Processors and gibibytes of memory of a pool's smallest machines; nothing if one of its types is not known.
pub(super) fn size_of_machines(pool: &Pool) -> Option<(u32, u32)> {
    let sizes: Option<Vec<(u32, u32)>> = pool.instance_types.iter().map(machine_size).collect();
    let sizes = sizes?;
    let processors = sizes.iter().map(|(processors, _)| *processors).min()?;
    Some((processors, sizes.iter().map(|(_, memory)| *memory).min()?))
}

/// Gibibytes that pods can have of the drives of a pool's smallest machines; nothing if one of its types has none.
pub(super) fn scratch_of_machines(pool: &Pool) -> Option<u32> {
    InstanceStore::of_pool(pool)?.scratch().map(|scratch| scratch.pods_gib)
}

/// A taint of cluster.yaml, as the nodes get it.
pub(super) fn taint_of(taint: &config::Taint) -> Taint {
    let effect = match taint.effect {
        config::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
        config::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        config::TaintEffect::NoExecute => TaintEffect::NoExecute,
    };
    Taint { key: taint.key.to_string(), value: taint.value.to_string(), effect }
}

impl Machine {
    /// A machine of a pool, less what its system needs.
    pub(super) fn of_pool(pool: &Pool) -> Self {
        let size = size_of_machines(pool);
        // Huge pages are no memory for pods.
        let set_aside = if pool.efa.is_some() { u64::from(EfaCards::HUGE_PAGES) * HUGE_PAGE } else { 0 };
        let memory = |gibibytes: u32| {
            let rest = u64::from(gibibytes).saturating_sub(RESERVED_GIBIBYTES).saturating_mul(GIBIBYTE);
            rest.saturating_sub(set_aside)
        };
        let gpu_taint = pool.gpus.as_ref().map(|_| Taint {
            key: GPU_RESOURCE.to_owned(),
            value: "present".to_owned(),
            effect: TaintEffect::NoSchedule,
        });
        Self {
            gpus: pool.gpus.as_ref().map_or(0, |gpus| gpus.count),
            efa: pool.efa.map_or(0, |cards| cards.count),
            // The system needs some of the processors, however little that is.
            processors: size.map(|(processors, _)| (u64::from(processors) * 1000).saturating_sub(1)),
            memory: size.map(|(_, gibibytes)| memory(gibibytes)),
            scratch: Some(u64::from(scratch_of_machines(pool).unwrap_or(0)) * GIBIBYTE),
            taints: gpu_taint.into_iter().chain(pool.taints.iter().map(taint_of)).collect(),
        }
    }

    /// A node, with what it says that pods can have.
    pub(super) fn of_node(node: &Node) -> Self {
        Self {
            gpus: node.gpus,
            efa: node.efa,
            processors: node.processors,
            memory: node.memory,
            scratch: node.scratch,
            taints: node.taints.clone(),
        }
    }

    /// The taint that keeps pods with these tolerations away.
    pub(super) fn keeps_away(&self, tolerations: &[Toleration]) -> Option<&Taint> {
        let is_tolerated = |taint: &Taint| tolerations.iter().any(|toleration| toleration.tolerates(taint));
        self.taints.iter().find(|taint| taint.is_binding() && !is_tolerated(taint))
    }

    /// What the machine has too little of for one such pod.
    pub(super) fn shortage(&self, needs: &Needs<'_>) -> Option<Shortage> {
        let lacks = |has: Option<u64>, wanted: u64| has.is_some_and(|has| has < wanted);
        if self.gpus < needs.gpus {
            Some(Shortage::Gpus)
        } else if lacks(self.scratch, needs.scratch) {
            Some(Shortage::Scratch)
        } else if lacks(self.memory, needs.memory) {
            Some(Shortage::Memory)
        } else {
            lacks(self.processors, needs.processors).then_some(Shortage::Processors)
        }
    }

    /// Whether the machine is known to have no drives of its own.
    pub(super) fn has_no_scratch(&self) -> bool {
        self.scratch == Some(0)
    }

    /// The part of the machine's memory that falls to such a pod, by its GPUs or else by its processors; nothing if that is not known.
    pub(super) fn memory_share(&self, needs: &Needs<'_>) -> Option<u64> {
        let (part, whole) = match needs.gpus {
            0 => (needs.processors, self.processors?),
            gpus => (u64::from(gpus), u64::from(self.gpus)),
        };
        let share = u128::from(self.memory?) * u128::from(part.min(whole)) / u128::from(whole.max(1));
        u64::try_from(share).ok()
    }

    /// The EFA adapters that fall to a pod with that many of the machine's GPUs.
    pub(super) fn efa_share(&self, gpus: u32) -> u32 {
        (self.efa * gpus).checked_div(self.gpus).unwrap_or(0)
    }

    /// How many such pods the machine has room for while it is empty; nothing if that is not known.
    pub(super) fn room_for(&self, needs: &Needs<'_>) -> Option<u32> {
        let by_memory = self.memory.map(|memory| memory / needs.memory.max(1));
        let by_processors = self.processors.map(|processors| processors / needs.processors.max(1));
        let by_size = by_memory.zip(by_processors).map(|(one, other)| one.min(other));
        let by_scratch = self.scratch.and_then(|scratch| scratch.checked_div(needs.scratch));
        let by_gpus = self.gpus.checked_div(needs.gpus).map(u64::from);
        // Of pods without GPUs, memory and processors are what there is least of.
        if by_gpus.is_none() && by_size.is_none() {
            return None;
        }
        let pods = [by_size, by_scratch, by_gpus].into_iter().flatten().min()?;
        Some(u32::try_from(pods).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, Needs, Shortage};
    use crate::kube::{Taint, TaintEffect, Toleration};

    fn machine() -> Machine {
        let taint = |key: &str, effect| Taint { key: key.to_owned(), value: "a".to_owned(), effect };
        Machine {
            gpus: 4,
            efa: 2,
            processors: Some(7910),
            memory: Some(30 << 30),
            scratch: Some(100 << 30),
            taints: vec![
                taint("spare", TaintEffect::PreferNoSchedule),
                taint("team", TaintEffect::NoSchedule),
            ],
        }
    }

    fn needs(gpus: u32, processors: u64, gibibytes: u64) -> Needs<'static> {
        Needs { gpus, processors, memory: gibibytes << 30, scratch: 0, tolerations: &[] }
    }

    fn with_scratch(gibibytes: u64, needs: Needs<'static>) -> Needs<'static> {
        Needs { scratch: gibibytes << 30, ..needs }
    }

    #[test]
    fn the_scarcest_capacity_limits_the_room() {
        let machine = machine();
        assert_eq!(machine.room_for(&needs(1, 1000, 4)), Some(4));
        assert_eq!(machine.room_for(&needs(1, 1000, 20)), Some(1));
        assert_eq!(machine.room_for(&needs(1, 7000, 4)), Some(1));
        assert_eq!(machine.room_for(&needs(0, 1000, 4)), Some(7));
        assert_eq!(machine.room_for(&needs(8, 1000, 4)), Some(0));
        assert_eq!(machine.room_for(&with_scratch(50, needs(1, 1000, 4))), Some(2));
        assert_eq!(machine.room_for(&with_scratch(50, needs(0, 1000, 4))), Some(2));
        let unlike = Machine { scratch: None, ..machine };
        assert_eq!(unlike.room_for(&with_scratch(50, needs(1, 1000, 4))), Some(4));
    }

    #[test]
    fn a_share_of_the_memory_follows_the_gpus_or_the_processors() {
        let machine = machine();
        assert_eq!(machine.memory_share(&needs(1, 1000, 4)), Some(15 << 29));
        assert_eq!(machine.memory_share(&needs(4, 1000, 4)), Some(30 << 30));
        assert_eq!(machine.memory_share(&needs(0, 3955, 4)), Some(15 << 30));
        let unknown = Machine { memory: None, ..machine };
        assert_eq!(unknown.memory_share(&needs(1, 1000, 4)), None);
    }

    #[test]
    fn adapters_go_with_gpus_and_are_not_shared() {
        let machine = machine();
        let shares = [1, 2, 3, 4].map(|gpus| machine.efa_share(gpus));
        assert_eq!(shares, [0, 1, 1, 2]);
        assert_eq!(Machine { gpus: 0, ..machine }.efa_share(1), 0);
    }

    #[test]
    fn a_machine_that_lacks_anything_has_no_room() {
        let machine = machine();
        for (needs, shortage) in [
            (needs(8, 1000, 4), Shortage::Gpus),
            (with_scratch(101, needs(1, 1000, 4)), Shortage::Scratch),
            (needs(1, 1000, 31), Shortage::Memory),
            (needs(1, 8000, 4), Shortage::Processors),
        ] {
            assert_eq!(machine.shortage(&needs), Some(shortage));
            assert_eq!(machine.room_for(&needs), Some(0));
        }
        assert_eq!(machine.shortage(&with_scratch(100, needs(4, 7910, 30))), None);
    }

    #[test]
    fn unknown_capacities_do_not_limit_the_room() {
        let machine = Machine { processors: None, memory: None, ..machine() };
        assert_eq!(machine.room_for(&needs(1, 100_000, 1000)), Some(4));
        assert_eq!(machine.room_for(&needs(0, 100_000, 1000)), None);
        assert_eq!(machine.shortage(&needs(1, 100_000, 1000)), None);
    }

    #[test]
    fn only_a_binding_taint_that_is_not_tolerated_keeps_pods_away() {
        let machine = machine();
        assert_eq!(machine.keeps_away(&[]).map(|taint| taint.key.as_str()), Some("team"));
        let tolerations = [Toleration::of_any_value("team", TaintEffect::NoSchedule)];
        assert_eq!(machine.keeps_away(&tolerations), None);
    }
}
