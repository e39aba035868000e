//! The scheduled actions of a pool: what Auto Scaling does to its size, and when.

use std::collections::BTreeMap;

use crate::config::Pool;
use crate::config::values::Cron;

/// The resource of a pool's stack that ends the pool.
const END: &str = "Expires";
/// The resource of a pool's stack that starts machines when the pool's capacity block begins.
const BLOCK_BEGINS: &str = "BlockBegins";
/// The resource of a pool's stack that terminates machines before the pool's capacity block ends.
const BLOCK_ENDS: &str = "BlockEnds";
/// The parameter of a pool's stack that says when machines start, in the five fields of cron.
pub const BLOCK_BEGINS_AT: &str = "BlockBeginsAt";
/// The parameter of a pool's stack that says when machines are terminated, in the five fields of cron.
pub const BLOCK_ENDS_AT: &str = "BlockEndsAt";

/// The least, the most and the desired number of machines of an Auto Scaling group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSize {
    /// The fewest machines.
    pub least: u32,
    /// The most machines.
    pub most: u32,
    /// The number of machines to have.
    pub desired: u32,
}

/// Something that Auto Scaling does to the size of a pool, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledAction {
    /// The name of the resource in the pool's stack.
    pub resource: String,
    /// When, in the five fields of cron.
    pub recurrence: String,
    /// The time zone of that; none for UTC.
    pub time_zone: Option<String>,
    /// The size from then on.
    pub size: GroupSize,
}

/// What Auto Scaling does to the size of a pool when its capacity block begins or ends. Only AWS knows when that is, so it is a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAction {
    /// The name of the resource in the pool's stack.
    pub resource: &'static str,
    /// The condition of the template under which there is such an action.
    pub condition: &'static str,
    /// The parameter that says when.
    pub at: &'static str,
    /// The size from then on.
    pub size: GroupSize,
}

impl BlockAction {
    /// Those of a pool, if its reservation may be a capacity block.
    #[must_use]
    pub fn of_pool(pool: &Pool) -> Vec<Self> {
        if !pool.may_have_block() {
            return Vec::new();
        }
        let own = GroupSize { least: pool.min_count, most: pool.max_count, desired: pool.count };
        let none = GroupSize { least: 0, most: 0, desired: 0 };
        vec![
            Self { resource: BLOCK_BEGINS, condition: "BlockIsToCome", at: BLOCK_BEGINS_AT, size: own },
            Self { resource: BLOCK_ENDS, condition: "HasBlock", at: BLOCK_ENDS_AT, size: none },
        ]
    }

    /// What happens, for a reader who knows cluster.yaml.
    #[must_use]
    pub fn describe(resource: &str) -> Option<&'static str> {
        match resource {
            BLOCK_BEGINS => Some("the start of the capacity block"),
            BLOCK_ENDS => Some("the end of the capacity block"),
            _ => None,
        }
    }
}

impl ScheduledAction {
    /// All of a pool. None is a single action at a time: that would be refused once the time has passed, and deletes itself.
    #[must_use]
    pub fn of_pool(pool: &Pool) -> Vec<Self> {
        let schedule = &pool.schedule;
        let time_zone = (!schedule.time_zone.is_default()).then(|| schedule.time_zone.as_str().to_owned());
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        let entries = schedule.entries.iter().map(|entry| Self {
            resource: resource_name(&entry.at, &mut used),
            recurrence: entry.at.as_str().to_owned(),
            time_zone: time_zone.clone(),
            size: size_with(pool, entry.count),
        });
        let mut actions: Vec<Self> = entries.collect();
        actions.extend(schedule.expires.as_ref().map(|end| Self {
            resource: END.to_owned(),
            recurrence: Cron::yearly(end.time()).as_str().to_owned(),
            time_zone: None,
            size: size_with(pool, 0),
        }));
        actions
    }
}

/// Whether a resource of a pool's stack ends the pool.
#[must_use]
pub fn is_end_of_pool(resource: &str) -> bool {
    resource == END
}

/// Whether a resource of a pool's stack follows a capacity block.
#[must_use]
pub fn follows_block(resource: &str) -> bool {
    matches!(resource, BLOCK_BEGINS | BLOCK_ENDS)
}

/// Fewer machines than the pool's minimum hold it there, and so does none: the autoscaler must not start others. Any other number
/// brings the pool's own limits back.
fn size_with(pool: &Pool, count: u32) -> GroupSize {
    if count == 0 || count < pool.min_count {
        return GroupSize { least: count, most: count, desired: count };
    }
    GroupSize { least: pool.min_count, most: pool.max_count, desired: count }
}

/// By the time of day: Auto Scaling takes no two actions for one moment, also while a stack is updated. So an entry that gets other days
/// must be the same resource, and one at another time must not take the place of a third.
fn resource_name(at: &Cron, used: &mut BTreeMap<String, u32>) -> String {
    let name = match at.time_of_day() {
        Some((hour, minute)) => format!("At{hour:02}{minute:02}"),
        None => {
            let (minutes, hours) = at.times_of_day();
            format!("At{hours:x}x{minutes:x}")
        }
    };
    let count = used.entry(name.clone()).or_default();
    *count += 1;
    if *count == 1 { name } else { format!("{name}n{count}") }
}
