//! Pools whose end has passed: `up` refuses them, `plan` and `validate` say so.

use time::OffsetDateTime;

use crate::cli::failure::Refusal;
use crate::config::values::{Expiry, PoolName};
use crate::config::{Cluster, Pool};

/// What is said of every pool whose end has passed.
pub(in crate::cli) fn ended_pools(cluster: &Cluster, now: OffsetDateTime) -> Vec<String> {
    cluster.pools.iter().filter_map(|pool| Some(sentence(pool, passed_end(pool, now)?))).collect()
}

/// Refuses a pool whose end has passed, of all or of the one that is meant: AWS would end it in a year.
pub(in crate::cli) fn refuse_ended_pools(
    cluster: &Cluster,
    only: Option<&PoolName>,
    now: OffsetDateTime,
) -> Result<(), Refusal> {
    let meant = |pool: &&Pool| only.is_none_or(|name| pool.name == *name);
    let ended = cluster.pools.iter().filter(meant).find_map(|pool| Some((pool, passed_end(pool, now)?)));
    let Some((pool, end)) = ended else { return Ok(()) };
    Err(Refusal::new(sentence(pool, end)).help(format!(
        "give pool {} a later expires, or none, to start it again; delete the pool from cluster.yaml if it is no longer needed",
        pool.name
    )))
}

fn passed_end(pool: &Pool, now: OffsetDateTime) -> Option<Expiry> {
    pool.schedule.expires.filter(|end| end.time() <= now)
}

fn sentence(pool: &Pool, end: Expiry) -> String {
    format!("pool {} has ended: its expires, {end}, is in the past", pool.name)
}
