//! What the clock does to a pool: whether it holds the pool now, and what AWS does next.

use schemars::JsonSchema;
use serde::Serialize;
use time::UtcOffset;
use time::format_description::well_known::Rfc3339;

use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients, ScheduledChange};
use crate::blueprint::{StackPart, is_end_of_pool};
use crate::config::Pool;
use crate::deploy::event::{Holder, minute_in_utc};
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_hold::{HeldBy, Hold, live_actions};
use crate::deploy::state::pool_size::PoolSize;

/// What the clock does to a pool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleState {
    /// What of cluster.yaml holds the pool at a size that is not its own; null if nothing does.
    pub held_by: Option<Holder>,
    /// What AWS does by the clock, what happens first at the beginning. Empty if it could not be read.
    pub actions: Vec<ScheduledActionState>,
}

/// Something that AWS does to the size of a pool, again and again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduledActionState {
    /// When, in the five fields of cron.
    pub at: String,
    /// The time zone of that.
    pub time_zone: String,
    /// When it happens next, in UTC, as AWS says; null if AWS says nothing.
    pub next: Option<String>,
    /// Whether it is the pool's end, `expires`.
    pub is_end: bool,
    /// The fewest machines from then on.
    pub minimum: Option<u32>,
    /// The most machines from then on.
    pub maximum: Option<u32>,
    /// The number of machines from then on.
    pub machines: Option<u32>,
    /// When it happens next, for people.
    #[serde(skip)]
    pub next_minute: Option<String>,
}

/// Reads what the clock does to a pool; none if its stack has no scheduled action.
pub(super) async fn read_schedule(
    clients: &Clients,
    live: &LiveCluster,
    pool: &Pool,
    unreadable: &mut Unreadable,
) -> Result<Option<ScheduleState>, AwsError> {
    let stack = live.stacks.get(&StackPart::Pool(pool.name.clone()));
    let (Some(stack), Some(group)) = (stack, live.pool_group(&pool.name)) else { return Ok(None) };
    let planned = live_actions(stack);
    if planned.is_empty() {
        return Ok(None);
    }
    let is_end =
        |at: &str| planned.iter().any(|(resource, planned)| is_end_of_pool(resource) && planned == at);
    let changes = clients.scheduled_changes(&group.name).await;
    let mut changes = unreadable.take("the schedules of pools", changes)?.unwrap_or_default();
    changes.sort_by_key(|change| (change.next.is_none(), change.next));
    let held_by = match PoolSize::new(pool, Some(stack), None).hold(Some(group)) {
        Hold::Held(HeldBy::Expires) => Some(Holder::Expires),
        // Until the next `infra up`, which cluster.yaml says releases it.
        Hold::Released if planned.keys().all(|resource| is_end_of_pool(resource)) => Some(Holder::Expires),
        Hold::Held(HeldBy::Schedule) | Hold::Released => Some(Holder::Schedule),
        Hold::Held(HeldBy::Block) | Hold::Free => None,
    };
    let state = |change: ScheduledChange| ScheduledActionState {
        is_end: is_end(&change.recurrence),
        at: change.recurrence,
        time_zone: change.time_zone.unwrap_or_else(|| "UTC".to_owned()),
        next: change.next.and_then(|time| time.to_offset(UtcOffset::UTC).format(&Rfc3339).ok()),
        next_minute: change.next.map(minute_in_utc),
        minimum: change.least,
        maximum: change.most,
        machines: change.desired,
    };
    Ok(Some(ScheduleState { held_by, actions: changes.into_iter().map(state).collect() }))
}
