//! The capacity blocks of pools: whether each is to come, open or over, and whether its pool follows it.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients};
use crate::blueprint::{BLOCK_BEGINS_AT, BLOCK_ENDS_AT, StackPart};
use crate::config::values::PoolName;
use crate::config::{Cluster, Pool};
use crate::deploy::event::{BlockPhase, PoolBlock};
use crate::deploy::inputs::capacity_block::LockedBlock;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_hold::Limits;

/// Reads the block of every pool whose live stack follows one. `locked` is what infra.lock says of them; what is wrong goes to
/// `warnings`.
pub(super) async fn read_blocks(
    clients: &Clients,
    live: &LiveCluster,
    cluster: &Cluster,
    locked: &[LockedBlock],
    now: OffsetDateTime,
    warnings: &mut Unreadable,
) -> Result<BTreeMap<PoolName, PoolBlock>, AwsError> {
    let mut blocks = BTreeMap::new();
    for pool in &cluster.pools {
        let part = StackPart::Pool(pool.name.clone());
        let follows = live.parameter(&part, BLOCK_ENDS_AT).is_some_and(|at| !at.is_empty());
        let Some(id) = pool.capacity_reservation.as_ref().filter(|_| follows) else { continue };
        let answer = clients.capacity_reservation(id.as_str()).await;
        let in_lock = LockedBlock::of_lock(locked, id.as_str());
        let block = match warnings.take("the capacity blocks of pools", answer)? {
            None => in_lock,
            Some(found) => LockedBlock::of_pool(pool, id.as_str(), found.as_ref(), locked, now)
                .unwrap_or_else(|refusal| {
                    warnings.0.push(format!("{}: {}", refusal.what, refusal.instead));
                    in_lock.filter(|_| found.is_none())
                }),
        };
        if let Some(block) = block {
            let block = block.of(&pool.name, now);
            warnings.0.extend(block_warning(pool, &block, live));
            blocks.insert(pool.name.clone(), block);
        }
    }
    Ok(blocks)
}

/// Why `infra up` must run for a pool and its block.
fn block_warning(pool: &Pool, block: &PoolBlock, live: &LiveCluster) -> Option<String> {
    let PoolBlock { pool: name, id, .. } = block;
    let part = StackPart::Pool(pool.name.clone());
    let begins_again = live.parameter(&part, BLOCK_BEGINS_AT).is_some_and(|at| !at.is_empty());
    let is_empty = live.pool_group(&pool.name).is_some_and(|group| Limits::of_group(group) == Limits::NONE);
    match block.phase {
        BlockPhase::Over if begins_again => Some(format!(
            "the capacity block {id} of pool {name} is over: run `infra up`, or pool {name} tries to start machines in it again in a year"
        )),
        BlockPhase::Open if is_empty && pool.max_count > 0 => Some(format!(
            "the capacity block {id} of pool {name} is open, and the pool may have no machines: run `infra up`"
        )),
        _ => None,
    }
}
