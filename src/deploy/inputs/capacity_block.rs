//! Which capacity reservations of pools are capacity blocks, and when they begin and end: read from AWS, and kept in infra.lock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};

use crate::aws::{CapacityReservation, Clients, ReservationState};
use crate::blueprint::{BLOCK_BEGINS_AT, BLOCK_ENDS_AT};
use crate::config::values::{Cron, PoolName};
use crate::config::{Cluster, Pool, PoolImage};
use crate::deploy::error::DeployError;
use crate::deploy::event::{BlockPhase, MACHINES_END_EARLY, PoolBlock, Refusal, minute_in_utc};

/// A capacity block as infra.lock has it, for the day on which AWS no longer lists it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LockedBlock {
    /// The id, which a pool names as its `capacityReservationId`.
    pub id: String,
    /// When the block begins.
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub begins: OffsetDateTime,
    /// When the block ends.
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub ends: OffsetDateTime,
}

impl LockedBlock {
    /// The block that a pool's reservation is; none if it is an ordinary one. `found` is what AWS says of it, `locked` what infra.lock says
    /// of blocks.
    pub(crate) fn of_pool(
        pool: &Pool,
        id: &str,
        found: Option<&CapacityReservation>,
        locked: &[Self],
        now: OffsetDateTime,
    ) -> Result<Option<Self>, Refusal> {
        let Some(found) = found else { return Self::forgotten(pool, id, locked, now).map(Some) };
        if !found.is_block {
            return Ok(None);
        }
        check_pool(pool, id)?;
        check_state(pool, found)?;
        let (Some(begins), Some(ends)) = (found.begins, found.ends) else {
            return Err(Refusal::new(
                format!("AWS does not say when the capacity block {id} begins and ends"),
                "name another in capacityReservationId",
            ));
        };
        Ok(Some(Self { id: id.to_owned(), begins, ends }))
    }

    /// What infra.lock says of a block.
    #[must_use]
    pub(crate) fn of_lock(locked: &[Self], id: &str) -> Option<Self> {
        locked.iter().find(|locked| locked.id == id).cloned()
    }

    /// A block that AWS does not list: EC2 forgets it some time after its end, and not before.
    fn forgotten(pool: &Pool, id: &str, locked: &[Self], now: OffsetDateTime) -> Result<Self, Refusal> {
        let list = "`aws ec2 describe-capacity-reservations` lists yours";
        let Some(block) = Self::of_lock(locked, id) else {
            let instead = format!("correct capacityReservationId; {list}");
            return Err(Refusal::new(format!("there is no capacity reservation {id}"), instead));
        };
        if now < block.ends {
            let (name, ends) = (&pool.name, minute_in_utc(block.ends));
            return Err(Refusal::new(
                format!(
                    "AWS lists no capacity block {id} of pool {name}, which ends on {ends} by infra.lock"
                ),
                format!(
                    "use the account and the region of the block; {list}. If it is gone, name another in capacityReservationId, or \
                     remove the pool from cluster.yaml"
                ),
            ));
        }
        Ok(block)
    }

    /// Where a moment is, as seen from the block.
    #[must_use]
    pub(crate) fn phase(&self, now: OffsetDateTime) -> BlockPhase {
        if now >= self.machines_until() {
            BlockPhase::Over
        } else if now >= self.begins {
            BlockPhase::Open
        } else {
            BlockPhase::ToCome
        }
    }

    /// When the pool's machines are terminated.
    #[must_use]
    pub(crate) fn machines_until(&self) -> OffsetDateTime {
        self.ends - MACHINES_END_EARLY
    }

    /// When the pool starts its machines, in the five fields of cron: the first whole minute of the block.
    #[must_use]
    pub(crate) fn begin_recurrence(&self) -> String {
        Cron::yearly(self.begins + Duration::seconds(59)).as_str().to_owned()
    }

    /// When the pool terminates its machines, in the five fields of cron.
    #[must_use]
    pub(crate) fn end_recurrence(&self) -> String {
        Cron::yearly(self.machines_until()).as_str().to_owned()
    }

    /// The block at a moment, for people and programs.
    #[must_use]
    pub(crate) fn of(&self, pool: &PoolName, now: OffsetDateTime) -> PoolBlock {
        PoolBlock {
            pool: pool.clone(),
            id: self.id.clone(),
            begins: self.begins,
            machines_until: self.machines_until(),
            ends: self.ends,
            phase: self.phase(now),
        }
    }

    /// What decides about the size of the pool.
    #[must_use]
    pub(crate) fn now(&self, now: OffsetDateTime) -> BlockNow {
        BlockNow { phase: self.phase(now), begin_recurrence: self.begin_recurrence() }
    }

    /// The lines of infra.lock.
    #[must_use]
    pub(crate) fn lines(blocks: &[Self]) -> String {
        let text = |moment: OffsetDateTime| {
            moment.to_offset(UtcOffset::UTC).format(&Rfc3339).unwrap_or_else(|_| moment.to_string())
        };
        let mut lines = String::new();
        for (index, block) in blocks.iter().enumerate() {
            if index == 0 {
                lines.push_str("capacityBlocks:\n");
            }
            let (begins, ends) = (text(block.begins), text(block.ends));
            let _ = writeln!(lines, "- id: {}\n  begins: {begins}\n  ends: {ends}", block.id);
        }
        lines
    }
}

/// The capacity block of a pool at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockNow {
    /// Whether the block is to come, open or over.
    pub phase: BlockPhase,
    /// When the block begins, in the five fields of cron.
    pub begin_recurrence: String,
}

/// Refuses a pool that cannot use a capacity block.
fn check_pool(pool: &Pool, id: &str) -> Result<(), Refusal> {
    let name = &pool.name;
    if pool.image != PoolImage::DeepLearning {
        return Err(Refusal::new(
            format!("{id} is a capacity block, and pool {name} boots {}", pool.image),
            "add `image: deep-learning` to the pool: machines of capacity blocks need it",
        ));
    }
    let excluded = match (pool.schedule.entries.is_empty(), pool.schedule.expires) {
        (false, _) => "schedule",
        (true, Some(_)) => "expires",
        (true, None) => return Ok(()),
    };
    Err(Refusal::new(
        format!("pool {name} has both {excluded} and the capacity block {id}"),
        format!(
            "remove {excluded}: the pool has machines while its block is open, and the block is paid for as a whole"
        ),
    ))
}

/// Refuses a block that has no machines and will have none.
fn check_state(pool: &Pool, found: &CapacityReservation) -> Result<(), Refusal> {
    let CapacityReservation { id, state, .. } = found;
    let another = "buy or name another block, or remove the pool from cluster.yaml";
    let (why, fix) = match state {
        ReservationState::Active
        | ReservationState::Scheduled
        | ReservationState::Expired
        | ReservationState::PaymentPending => return Ok(()),
        ReservationState::PaymentFailed => ("is released: its payment failed".to_owned(), another),
        ReservationState::Pending
        | ReservationState::Assessing
        | ReservationState::Delayed
        | ReservationState::Unavailable => {
            (format!("is {state}"), "run the command again once the state is scheduled or active")
        }
        ReservationState::Cancelled
        | ReservationState::Cancelling
        | ReservationState::Failed
        | ReservationState::Unsupported
        | ReservationState::Unknown(_) => (format!("is {state}"), another),
    };
    Err(Refusal::new(format!("the capacity block {id} of pool {} {why}", pool.name), fix))
}

/// The capacity blocks of pools at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolBlocks {
    blocks: BTreeMap<PoolName, LockedBlock>,
    now: Option<OffsetDateTime>,
}

impl PoolBlocks {
    /// Reads the reservation of every pool that has one. A block that can have no machines, or whose pool cannot, is refused.
    pub(crate) async fn read(
        clients: &Clients,
        cluster: &Cluster,
        locked: &[LockedBlock],
        now: OffsetDateTime,
    ) -> Result<Self, DeployError> {
        let (mut blocks, mut refusals) = (BTreeMap::new(), Vec::new());
        for pool in &cluster.pools {
            let Some(id) = &pool.capacity_reservation else { continue };
            let found = clients.capacity_reservation(id.as_str()).await?;
            match LockedBlock::of_pool(pool, id.as_str(), found.as_ref(), locked, now) {
                Ok(Some(block)) => drop(blocks.insert(pool.name.clone(), block)),
                Ok(None) => {}
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() {
            Ok(Self { blocks, now: Some(now) })
        } else {
            Err(DeployError::Refused(refusals))
        }
    }

    /// What infra.lock is to say.
    #[must_use]
    pub(crate) fn locked(&self) -> Vec<LockedBlock> {
        let by_id: BTreeMap<&str, &LockedBlock> =
            self.blocks.values().map(|block| (block.id.as_str(), block)).collect();
        by_id.into_values().cloned().collect()
    }

    /// The block of a pool.
    #[must_use]
    pub(crate) fn block(&self, pool: &PoolName) -> Option<&LockedBlock> {
        self.blocks.get(pool)
    }

    /// The block of a pool at the moment.
    #[must_use]
    pub(crate) fn of(&self, pool: &PoolName) -> Option<PoolBlock> {
        Some(self.block(pool)?.of(pool, self.now?))
    }

    /// The blocks that were to come when they were read, and are open now: an action for a moment that has passed happens in a year.
    pub(crate) fn begun_since(&self, now: OffsetDateTime) -> impl Iterator<Item = PoolBlock> {
        let was_to_come =
            |pool: &PoolName| self.now(pool).is_some_and(|block| block.phase == BlockPhase::ToCome);
        let blocks = self.blocks.iter().filter(move |(pool, _)| was_to_come(pool));
        blocks.map(move |(pool, block)| block.of(pool, now)).filter(|block| block.phase == BlockPhase::Open)
    }

    /// What decides about the size of a pool.
    #[must_use]
    pub(crate) fn now(&self, pool: &PoolName) -> Option<BlockNow> {
        Some(self.block(pool)?.now(self.now?))
    }

    /// The parameters of a pool's stack that say when its block begins and ends. Once it has begun, nothing is to begin: the same
    /// moment comes again in a year.
    #[must_use]
    pub(crate) fn parameters(&self, pool: &Pool) -> Vec<(String, String)> {
        if !pool.may_have_block() {
            return Vec::new();
        }
        let block = self.block(&pool.name).zip(self.now(&pool.name));
        let begins = block.as_ref().filter(|(_, now)| now.phase == BlockPhase::ToCome);
        let begins = begins.map(|(_, now)| now.begin_recurrence.clone()).unwrap_or_default();
        let ends = block.as_ref().map(|(block, _)| block.end_recurrence()).unwrap_or_default();
        vec![(BLOCK_BEGINS_AT.to_owned(), begins), (BLOCK_ENDS_AT.to_owned(), ends)]
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{BlockPhase, LockedBlock};

    #[test]
    fn a_block_has_machines_from_its_first_minute_until_40_minutes_before_its_end() {
        let block = LockedBlock {
            id: "cr-1".to_owned(),
            begins: datetime!(2026-12-31 23:59:12 UTC),
            ends: datetime!(2027-01-02 00:30 UTC),
        };
        assert_eq!(block.begin_recurrence(), "0 0 1 1 *", "not a minute before it begins");
        assert_eq!(block.end_recurrence(), "50 23 1 1 *");
        for (moment, phase) in [
            (datetime!(2026-12-31 23:59:11 UTC), BlockPhase::ToCome),
            (datetime!(2026-12-31 23:59:12 UTC), BlockPhase::Open),
            (datetime!(2027-01-01 23:49:59 UTC), BlockPhase::Open),
            (datetime!(2027-01-01 23:50 UTC), BlockPhase::Over),
            (datetime!(2028-01-01 12:00 UTC), BlockPhase::Over),
        ] {
            assert_eq!(block.phase(moment), phase, "{moment}");
        }
    }
}
