//! The capacity block of a pool: a reservation of machines for a fixed period, before and after which the pool is empty.

use schemars::JsonSchema;
use serde::Serialize;
use time::{Duration, OffsetDateTime, UtcOffset};

use crate::config::values::PoolName;
use crate::plural::count_of;

/// EC2 terminates machines from 30 minutes before a block's end; the pool goes to zero earlier, so that jobs have time to save.
pub(crate) const MACHINES_END_EARLY: Duration = Duration::minutes(40);

/// The capacity block of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolBlock {
    /// The name of the pool.
    #[schemars(with = "String")]
    pub pool: PoolName,
    /// The id of the capacity block.
    pub id: String,
    /// When the block begins (RFC 3339); the pool starts its machines then.
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub begins: OffsetDateTime,
    /// When the machines of the pool are terminated: 40 minutes before the block ends.
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub machines_until: OffsetDateTime,
    /// When the block ends.
    #[serde(with = "time::serde::rfc3339")]
    #[schemars(with = "String")]
    pub ends: OffsetDateTime,
    /// Whether the block is to come, open or over.
    pub phase: BlockPhase,
}

/// Where a moment is, as seen from a capacity block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BlockPhase {
    /// The block has not begun.
    ToCome,
    /// The pool may have machines.
    Open,
    /// The machines of the pool are terminated, or will be at any moment.
    Over,
}

impl PoolBlock {
    /// When the pool has machines, and why no longer.
    #[must_use]
    pub(crate) fn times(&self) -> String {
        let Self { begins, machines_until, .. } = self;
        let times = match self.phase {
            BlockPhase::ToCome => {
                format!(
                    "begins on {}, machines until {}",
                    minute_in_utc(*begins),
                    minute_in_utc(*machines_until)
                )
            }
            BlockPhase::Open => format!("machines until {}", minute_in_utc(*machines_until)),
            BlockPhase::Over => format!("had machines until {}", minute_in_utc(*machines_until)),
        };
        let early = count_of(MACHINES_END_EARLY.whole_minutes(), "minute");
        format!("{times}, {early} before its end")
    }
}

/// A moment for people.
#[must_use]
pub(crate) fn minute_in_utc(moment: OffsetDateTime) -> String {
    let moment = moment.to_offset(UtcOffset::UTC);
    format!("{} {:02}:{:02} UTC", moment.date(), moment.hour(), moment.minute())
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{BlockPhase, MACHINES_END_EARLY, PoolBlock};
    use crate::config::values::PoolName;

    #[test]
    fn the_times_of_a_block_are_in_utc_and_say_until_when_there_are_machines() {
        let ends = datetime!(2026-11-20 12:30 +01:00);
        let block = |phase| PoolBlock {
            pool: PoolName::of_test("h100"),
            id: "cr-1".to_owned(),
            begins: datetime!(2026-11-18 11:30 UTC),
            machines_until: ends - MACHINES_END_EARLY,
            ends,
            phase,
        };
        for (phase, expected) in [
            (
                BlockPhase::ToCome,
                "begins on 2026-11-18 11:30 UTC, machines until 2026-11-20 10:50 UTC, 40 minutes before its end",
            ),
            (BlockPhase::Open, "machines until 2026-11-20 10:50 UTC, 40 minutes before its end"),
            (BlockPhase::Over, "had machines until 2026-11-20 10:50 UTC, 40 minutes before its end"),
        ] {
            assert_eq!(block(phase).times(), expected);
        }
    }
}
