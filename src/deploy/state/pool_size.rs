//! How many machines a pool is given, and how many of them stay in service while it rolls.
//!
//! CloudFormation leaves the size of an Auto Scaling group alone if the template does not change it
//! (`IgnoreUnmodifiedGroupSizeProperties`). So as long as cluster.yaml asks for the same count, the parameter of the live stack is passed
//! again, and the Auto Scaling group keeps the size that the autoscaler gave it; while its schedule holds a pool, all three are.

use super::live::{LiveCluster, LiveStack};
use super::pool_hold::{HeldBy, Hold, Limits, LivePool, MAX_SIZE, MIN_SIZE, Recurrences, wanted_actions};
use crate::aws::ScalingGroup;
use crate::blueprint::StackPart;
use crate::config::Pool;
use crate::config::values::PoolName;
use crate::deploy::event::BlockPhase;
use crate::deploy::inputs::capacity_block::BlockNow;
use crate::well_known::COUNT_TAG;

/// The parameter with the number of machines.
pub(crate) const DESIRED_CAPACITY: &str = "DesiredCapacity";
/// The parameter with how many machines stay in service while others are replaced.
pub(crate) const IN_SERVICE: &str = "InService";

/// What decides about a pool's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pool: PoolName,
    count: u32,
    own: Limits,
    /// What Auto Scaling is to do by the clock.
    actions: Recurrences,
    live: Option<LivePool>,
    /// The pool's capacity block: outside of it there are no machines.
    block: Option<BlockNow>,
}

impl PoolSize {
    pub(crate) fn new(pool: &Pool, live: Option<&LiveStack>, block: Option<BlockNow>) -> Self {
        Self {
            pool: pool.name.clone(),
            count: pool.count,
            own: Limits { least: pool.min_count, most: pool.max_count },
            actions: wanted_actions(pool),
            live: live.and_then(|live| LivePool::new(live, DESIRED_CAPACITY)),
            block,
        }
    }

    /// The pool's name.
    pub(crate) fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The count of cluster.yaml; none outside of the pool's capacity block.
    pub(crate) fn count(&self) -> u32 {
        if self.is_closed() { 0 } else { self.count }
    }

    /// The limits of cluster.yaml; none outside of the pool's capacity block.
    pub(crate) fn own_limits(&self) -> Limits {
        if self.is_closed() { Limits::NONE } else { self.own }
    }

    /// Whether the clock changes the size.
    pub(crate) fn has_schedule(&self) -> bool {
        !self.actions.is_empty() || self.block.is_some()
    }

    /// Whether the pool has a capacity block.
    pub(crate) fn has_block(&self) -> bool {
        self.block.is_some()
    }

    /// Whether the stack was given no machines, so that CloudFormation sets all three sizes when it is given some.
    pub(crate) fn begins_from_none(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.limits == Limits::NONE)
    }

    /// Whether the pool's capacity block is not open.
    fn is_closed(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.phase != BlockPhase::Open)
    }

    /// Who decides about the size now.
    pub(crate) fn hold(&self, group: Option<&ScalingGroup>) -> Hold {
        let Some((live, group)) = self.live.as_ref().zip(group) else { return Hold::Free };
        match &self.block {
            Some(block) => live.hold_in_block(block, self.own, group),
            None => live.hold(&self.actions, group),
        }
    }

    /// The values of the stack's parameters for sizes.
    pub(crate) fn parameters(&self, group: Option<&ScalingGroup>) -> [(String, String); 4] {
        let limits = match (self.hold(group), &self.live) {
            (Hold::Held(by), Some(live)) if by != HeldBy::Block => live.limits,
            _ if self.was_begun_by_aws(group) => Limits::NONE,
            _ => self.own_limits(),
        };
        [
            (DESIRED_CAPACITY, self.desired_capacity(group)),
            (IN_SERVICE, self.in_service(group)),
            (MIN_SIZE, limits.least),
            (MAX_SIZE, limits.most),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
    }

    /// Whether the stack is given another size than it has, so that CloudFormation sets it.
    pub(crate) fn changes_stack(&self, group: Option<&ScalingGroup>) -> bool {
        let stored = self.live.as_ref().map(|live| (live.limits, live.desired));
        stored != Some((self.own_limits(), Some(self.desired_capacity(group))))
    }

    /// The size that is passed to the stack.
    fn desired_capacity(&self, group: Option<&ScalingGroup>) -> u32 {
        let stored = self.live.as_ref().and_then(|live| live.desired);
        match (group, stored, self.hold(group)) {
            _ if self.is_closed() || self.was_begun_by_aws(group) => 0,
            (_, Some(stored), Hold::Held(_)) => stored,
            (Some(group), Some(stored), _) if self.is_count_unchanged(group) && self.fits(stored) => stored,
            _ => self.machines(group),
        }
    }

    /// The number of machines that stay in service, as it is passed to the stack: AWS requires it to be below the maximum.
    fn in_service(&self, group: Option<&ScalingGroup>) -> u32 {
        let most = self.own_limits().most.saturating_sub(1);
        match (self.hold(group), group) {
            // The limits are those of the clock until the stack is updated.
            (Hold::Held(_) | Hold::Released, Some(group)) => {
                group.desired.min(group.most.saturating_sub(1)).min(most)
            }
            _ => self.machines(group).min(most),
        }
    }

    /// How many machines the Auto Scaling group will have: the count of cluster.yaml if that is new, else what the autoscaler or the
    /// clock chose.
    pub(crate) fn machines(&self, group: Option<&ScalingGroup>) -> u32 {
        // The action that begins the block may have been missed.
        let is_left_empty =
            |group: &ScalingGroup| self.block.is_some() && Limits::of_group(group) == Limits::NONE;
        match (group, self.hold(group)) {
            (Some(group), Hold::Held(_)) => group.desired,
            (Some(group), Hold::Free) if self.has_begun_early(group) => group.desired,
            (Some(group), Hold::Free)
                if !self.is_closed() && self.is_count_unchanged(group) && !is_left_empty(group) =>
            {
                group.desired.clamp(self.own.least, self.own.most)
            }
            _ => self.count(),
        }
    }

    /// Whether a scheduled action has given the pool its size, and cluster.yaml asks for no other. The stack keeps the one that it has: an
    /// update that changed it would terminate all machines if it failed and was rolled back.
    fn was_begun_by_aws(&self, group: Option<&ScalingGroup>) -> bool {
        let is_open = self.block.as_ref().is_some_and(|block| block.phase == BlockPhase::Open);
        let has_own = |group: &ScalingGroup| {
            Limits::of_group(group) == self.own && self.is_count_unchanged(group) && self.begins_from_none()
        };
        is_open && group.is_some_and(has_own)
    }

    /// Whether AWS has begun a capacity block that is to come by the clock here: CloudFormation leaves the machines alone.
    fn has_begun_early(&self, group: &ScalingGroup) -> bool {
        let stored = self.live.as_ref().map(|live| live.limits);
        self.is_closed() && Limits::of_group(group) != Limits::NONE && stored == Some(Limits::NONE)
    }

    /// Whether cluster.yaml asks for the same count as when the Auto Scaling group was last changed.
    fn is_count_unchanged(&self, group: &ScalingGroup) -> bool {
        group.tags.get(COUNT_TAG).and_then(|count| count.parse().ok()) == Some(self.count)
    }

    /// Whether a size of the live stack can be passed again. Not if a limit changes: whether CloudFormation then leaves an unchanged
    /// size alone is not said anywhere.
    fn fits(&self, stored: u32) -> bool {
        self.live.as_ref().is_some_and(|live| live.limits == self.own)
            && (self.own.least..=self.own.most).contains(&stored)
    }
}

/// How many machines a pool still needs; `block` is where the moment is, as seen from its capacity block.
pub(crate) fn missing_machines(pool: &Pool, live: &LiveCluster, block: Option<BlockNow>) -> u32 {
    let part = StackPart::Pool(pool.name.clone());
    let group = live.pool_group(&pool.name).filter(|_| live.is_or_will_be_complete(&part));
    let there = group.map_or(0, |group| group.desired);
    PoolSize::new(pool, live.stacks.get(&part), block).machines(group).saturating_sub(there)
}

#[cfg(test)]
mod tests {
    use super::{BlockNow, BlockPhase, COUNT_TAG, Hold, Limits, LivePool, PoolSize, Recurrences};
    use crate::aws::ScalingGroup;
    use crate::config::values::PoolName;
    use crate::deploy::state::pool_hold::HeldBy;

    const OWN: Limits = Limits { least: 0, most: 16 };

    fn group(asked: u32, desired: u32) -> ScalingGroup {
        let mut group = ScalingGroup::of_test("nodes", desired);
        (group.least, group.most) = (OWN.least, OWN.most);
        group.tags.insert(COUNT_TAG.to_owned(), asked.to_string());
        group
    }

    fn size(count: u32, stored: Option<u32>) -> PoolSize {
        let live = stored.map(|stored| LivePool {
            limits: OWN,
            desired: Some(stored),
            actions: Recurrences::new(),
            block_begins: None,
        });
        PoolSize {
            pool: PoolName::of_test("cpu"),
            count,
            own: OWN,
            actions: Recurrences::new(),
            live,
            block: None,
        }
    }

    #[test]
    fn a_size_that_the_autoscaler_changed_is_kept_and_stays_in_service() {
        let (size, moved) = (size(2, Some(2)), group(2, 12));
        assert_eq!(size.desired_capacity(Some(&moved)), 2, "not a change, so the group keeps its 12");
        assert_eq!(size.in_service(Some(&moved)), 12);
        assert_eq!(size.in_service(Some(&group(2, 16))), 15);
    }

    #[test]
    fn a_changed_count_and_a_new_pool_get_what_cluster_yaml_says() {
        assert_eq!(size(3, Some(2)).desired_capacity(Some(&group(2, 12))), 3);
        assert_eq!(size(3, Some(2)).in_service(Some(&group(2, 12))), 3);
        assert_eq!(size(3, None).desired_capacity(None), 3);
    }

    #[test]
    fn without_a_stored_size_that_of_the_group_is_passed_within_the_limits() {
        assert_eq!(size(2, None).desired_capacity(Some(&group(2, 12))), 12);
        assert_eq!(size(2, None).desired_capacity(Some(&group(2, 40))), 16);
        assert_eq!(size(2, None).in_service(Some(&group(2, 40))), 15);
    }

    #[test]
    fn a_held_pool_gets_what_its_stack_has_and_rolls_with_the_machines_that_it_has() {
        let night: Recurrences = [("At2000".to_owned(), "0 20 * * *".into())].into();
        let mut held = size(5, Some(3));
        held.actions.clone_from(&night);
        if let Some(live) = &mut held.live {
            live.actions = night;
            live.limits = Limits { least: 1, most: 8 };
        }
        let at = |count: u32| {
            let mut group = group(3, count);
            (group.least, group.most) = (count, count);
            group
        };
        assert_eq!(held.hold(Some(&at(2))), Hold::Held(HeldBy::Schedule));
        let values = |count: u32| held.parameters(Some(&at(count))).map(|(_, value)| value);
        assert_eq!(
            values(2),
            ["3", "1", "1", "8"],
            "as the stack has it, though cluster.yaml says 0 to 16 and 5"
        );
        assert_eq!(values(0), ["3", "0", "1", "8"]);
        assert_eq!([0, 2].map(|count| held.machines(Some(&at(count)))), [0, 2]);
    }

    #[test]
    fn outside_of_its_block_a_pool_has_no_machines_and_inside_of_it_its_own() {
        let at = |phase, stored: Limits, now: (u32, u32, u32)| {
            let mut pool = size(3, Some(stored.least));
            pool.own = Limits { least: 1, most: 8 };
            if let Some(live) = &mut pool.live {
                live.limits = stored;
            }
            pool.block = Some(BlockNow { phase, begin_recurrence: "30 11 18 11 *".to_owned() });
            let mut group = group(3, now.2);
            (group.least, group.most) = (now.0, now.1);
            group.tags.insert("infra:limits".to_owned(), "1-8".to_owned());
            (pool.parameters(Some(&group)).map(|(_, value)| value), pool.machines(Some(&group)))
        };
        let own = Limits { least: 1, most: 8 };
        let none = (["0", "0", "0", "0"].map(str::to_owned), 0);
        assert_eq!(at(BlockPhase::ToCome, Limits::NONE, (0, 0, 0)), none);
        assert_eq!(at(BlockPhase::Over, own, (0, 0, 0)), none);
        assert_eq!(at(BlockPhase::Over, own, (1, 8, 3)), none);
        let full = (["3", "3", "1", "8"].map(str::to_owned), 3);
        assert_eq!(at(BlockPhase::Open, Limits::NONE, (0, 0, 0)), full, "the start was missed");
        let begun = (["0", "5", "0", "0"].map(str::to_owned), 5);
        assert_eq!(
            at(BlockPhase::Open, Limits::NONE, (1, 8, 5)),
            begun,
            "by AWS, and grown by the autoscaler"
        );
        assert_eq!(at(BlockPhase::ToCome, Limits::NONE, (1, 8, 3)).1, 0, "machines of another block");
    }
}
