//! Whether the clock holds a pool at another size than its own.
//!
//! Auto Scaling sets the size that a scheduled action names, and nothing but the live limits of the Auto Scaling group says that it did.
//! So a pool is held while its live stack has scheduled actions and the group's limits are not the pool's own.

use std::collections::BTreeMap;

use serde_json::Value;

use super::live::LiveStack;
use crate::aws::{SCHEDULED_ACTION_TYPE, ScalingGroup};
use crate::blueprint::{BLOCK_BEGINS_AT, ScheduledAction, follows_block, is_end_of_pool};
use crate::config::Pool;
use crate::deploy::event::BlockPhase;
use crate::deploy::inputs::capacity_block::BlockNow;
use crate::well_known::LIMITS_TAG;

/// The parameter with the fewest machines of a pool with a schedule.
pub(crate) const MIN_SIZE: &str = "MinSize";
/// The parameter with the most machines of a pool with a schedule.
pub(crate) const MAX_SIZE: &str = "MaxSize";

/// The fewest and the most machines of an Auto Scaling group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The fewest machines.
    pub least: u32,
    /// The most machines.
    pub most: u32,
}

impl Limits {
    /// No machines.
    pub(crate) const NONE: Self = Self { least: 0, most: 0 };

    /// The limits that an Auto Scaling group has now.
    pub(crate) fn of_group(group: &ScalingGroup) -> Self {
        Self { least: group.least, most: group.most }
    }

    /// The limits that the tag of an Auto Scaling group calls the pool's own.
    fn of_tag(text: &str) -> Option<Self> {
        let (least, most) = text.split_once('-')?;
        Some(Self { least: least.parse().ok()?, most: most.parse().ok()? })
    }
}

impl std::fmt::Display for Limits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} to {}", self.least, self.most)
    }
}

/// Who decides about the size of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// cluster.yaml and the autoscaler.
    Free,
    /// The clock: the size stays as it is.
    Held(HeldBy),
    /// The clock did, and nothing holds the pool any more: its own limits are set again.
    Released,
}

/// What of cluster.yaml holds a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// Its schedule.
    Schedule,
    /// Its end: nothing else changes its size.
    Expires,
    /// Its capacity block, which is not open.
    Block,
}

/// The scheduled actions of a pool's stack: when each happens, by the name of its resource.
pub(crate) type Recurrences = BTreeMap<String, Value>;

/// What a live stack says about the size of its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LivePool {
    /// The limits that the stack was given.
    pub limits: Limits,
    /// The desired number of machines that the stack was given.
    pub desired: Option<u32>,
    /// What Auto Scaling does by the clock, capacity blocks aside.
    pub actions: Recurrences,
    /// When the capacity block begins that machines are to start in, if there is one and it was to come.
    pub block_begins: Option<String>,
}

impl LivePool {
    /// Reads a stack; none if it holds no Auto Scaling group.
    pub(crate) fn new(live: &LiveStack, desired: &str) -> Option<Self> {
        let parameters = &live.stack.parameters;
        let group = &live.template()["Resources"]["Nodes"]["Properties"];
        let limit = |name: &str| match &group[name] {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => parameters.get(name)?.parse().ok(),
        };
        Some(Self {
            limits: Limits { least: limit(MIN_SIZE)?, most: limit(MAX_SIZE)? },
            desired: parameters.get(desired).and_then(|desired| desired.parse().ok()),
            actions: live_actions(live),
            block_begins: parameters.get(BLOCK_BEGINS_AT).filter(|at| !at.is_empty()).cloned(),
        })
    }

    /// What decides about a pool with a capacity block. CloudFormation sets limits that the stack does not have yet.
    pub(crate) fn hold_in_block(&self, block: &BlockNow, own: Limits, group: &ScalingGroup) -> Hold {
        let now = Limits::of_group(group);
        if block.phase == BlockPhase::Open {
            let tagged = group.tags.get(LIMITS_TAG).and_then(|tag| Limits::of_tag(tag)).unwrap_or(own);
            let is_left_empty = now != tagged && now != own && self.limits == own;
            return if is_left_empty { Hold::Released } else { Hold::Free };
        }
        if now == Limits::NONE {
            return Hold::Held(HeldBy::Block);
        }
        // The clock here may be behind that of AWS, which has begun the block.
        let has_begun =
            block.phase == BlockPhase::ToCome && self.block_begins.as_ref() == Some(&block.begin_recurrence);
        if self.limits == Limits::NONE && !has_begun { Hold::Released } else { Hold::Free }
    }

    /// What decides, given the pool as cluster.yaml has it and its Auto Scaling group.
    pub(crate) fn hold(&self, wanted: &Recurrences, group: &ScalingGroup) -> Hold {
        let own = group.tags.get(LIMITS_TAG).and_then(|tag| Limits::of_tag(tag)).unwrap_or(self.limits);
        if own == Limits::of_group(group) {
            return Hold::Free;
        }
        let ends = |actions: &Recurrences| actions.keys().all(|resource| is_end_of_pool(resource));
        if self.actions.is_empty() || wanted.is_empty() {
            return Hold::Released;
        }
        // Nothing but its end can have held the pool, and it has another one now.
        if ends(&self.actions) && ends(wanted) && self.actions != *wanted {
            return Hold::Released;
        }
        Hold::Held(if ends(&self.actions) { HeldBy::Expires } else { HeldBy::Schedule })
    }
}

/// The scheduled actions that cluster.yaml asks for.
pub(crate) fn wanted_actions(pool: &Pool) -> Recurrences {
    let actions = ScheduledAction::of_pool(pool).into_iter();
    actions.map(|action| (action.resource, action.recurrence.into())).collect()
}

/// The scheduled actions of a live stack, but those of a capacity block.
pub(crate) fn live_actions(live: &LiveStack) -> Recurrences {
    let resources = live.template()["Resources"].as_object();
    let actions = resources.into_iter().flatten().filter(|(_, found)| found["Type"] == SCHEDULED_ACTION_TYPE);
    let actions = actions.filter(|(name, _)| !follows_block(name));
    actions.map(|(name, action)| (name.clone(), action["Properties"]["Recurrence"].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::{BlockNow, BlockPhase, HeldBy, Hold, LIMITS_TAG, Limits, LivePool, Recurrences};
    use crate::aws::ScalingGroup;

    fn actions(named: &[(&str, &str)]) -> Recurrences {
        named.iter().map(|(name, at)| ((*name).to_owned(), (*at).into())).collect()
    }

    fn hold(live: &[(&str, &str)], wanted: &[(&str, &str)], limits: (u32, u32), tag: Option<&str>) -> Hold {
        let pool = LivePool {
            limits: Limits { least: 1, most: 8 },
            desired: Some(3),
            actions: actions(live),
            block_begins: None,
        };
        let mut group = ScalingGroup::of_test("nodes", 0);
        (group.least, group.most) = limits;
        group.tags.extend(tag.map(|tag| (LIMITS_TAG.to_owned(), tag.to_owned())));
        pool.hold(&actions(wanted), &group)
    }

    const NIGHT: (&str, &str) = ("At2000", "0 20 * * *");
    const END: (&str, &str) = ("Expires", "0 18 1 12 *");
    const LATER: (&str, &str) = ("Expires", "0 18 8 12 *");

    #[test]
    fn a_pool_with_its_own_limits_is_free_whatever_its_actions() {
        assert_eq!(hold(&[NIGHT], &[NIGHT], (1, 8), Some("1-8")), Hold::Free);
        assert_eq!(hold(&[], &[], (1, 8), None), Hold::Free);
        // The limits were changed while the pool was held: the stack keeps the old ones, the tag has the new ones.
        assert_eq!(hold(&[NIGHT], &[NIGHT], (1, 16), Some("1-16")), Hold::Free);
    }

    #[test]
    fn a_pool_is_held_as_long_as_both_the_stack_and_cluster_yaml_have_a_schedule() {
        assert_eq!(hold(&[NIGHT], &[NIGHT], (0, 0), Some("1-8")), Hold::Held(HeldBy::Schedule));
        assert_eq!(hold(&[NIGHT, END], &[END], (0, 0), Some("1-8")), Hold::Held(HeldBy::Schedule));
        assert_eq!(hold(&[END], &[END], (0, 0), Some("1-8")), Hold::Held(HeldBy::Expires));
        assert_eq!(hold(&[NIGHT], &[], (0, 0), Some("1-8")), Hold::Released);
        assert_eq!(hold(&[], &[NIGHT], (0, 0), None), Hold::Released);
    }

    #[test]
    fn another_end_releases_a_pool_that_had_nothing_but_an_end() {
        assert_eq!(hold(&[END], &[LATER], (0, 0), Some("1-8")), Hold::Released);
        assert_eq!(hold(&[END, NIGHT], &[LATER, NIGHT], (0, 0), Some("1-8")), Hold::Held(HeldBy::Schedule));
        assert_eq!(hold(&[END], &[NIGHT], (0, 0), Some("1-8")), Hold::Held(HeldBy::Expires));
    }

    #[test]
    fn a_block_empties_its_pool_at_any_other_time_and_what_aws_has_begun_stays() {
        const OWN: Limits = Limits { least: 1, most: 8 };
        const NONE: Limits = Limits::NONE;
        let hold = |phase, stored: Limits, now: Limits, stored_begin: &str| {
            let begin = Some(stored_begin.to_owned()).filter(|at| !at.is_empty());
            let pool =
                LivePool { limits: stored, desired: None, actions: Recurrences::new(), block_begins: begin };
            let mut group = ScalingGroup::of_test("nodes", now.least);
            (group.least, group.most) = (now.least, now.most);
            group.tags.insert(LIMITS_TAG.to_owned(), "1-8".to_owned());
            let block = BlockNow { phase, begin_recurrence: "30 11 18 11 *".to_owned() };
            pool.hold_in_block(&block, OWN, &group)
        };
        let (to_come, open, over) = (BlockPhase::ToCome, BlockPhase::Open, BlockPhase::Over);
        for (phase, stored, now, stored_begin, expected) in [
            (to_come, NONE, NONE, "30 11 18 11 *", Hold::Held(HeldBy::Block)),
            (over, NONE, NONE, "", Hold::Held(HeldBy::Block)),
            (over, OWN, NONE, "", Hold::Held(HeldBy::Block)),
            // CloudFormation sets what the stack does not have yet.
            (to_come, OWN, OWN, "", Hold::Free),
            (over, OWN, OWN, "", Hold::Free),
            (open, NONE, NONE, "30 11 18 11 *", Hold::Free),
            (open, NONE, OWN, "30 11 18 11 *", Hold::Free),
            (open, OWN, OWN, "", Hold::Free),
            // AWS has begun it, by its clock.
            (to_come, NONE, OWN, "30 11 18 11 *", Hold::Free),
            // Machines of another block, and those that its end left.
            (to_come, NONE, OWN, "30 11 1 11 *", Hold::Released),
            (over, NONE, OWN, "", Hold::Released),
            // It was over, and is extended.
            (open, OWN, NONE, "", Hold::Released),
        ] {
            assert_eq!(
                hold(phase, stored, now, stored_begin),
                expected,
                "{phase:?} {stored} {now} {stored_begin}"
            );
        }
    }
}
