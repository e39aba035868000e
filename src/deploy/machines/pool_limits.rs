//! Gives pools that no schedule holds any more their own limits again.
//!
//! CloudFormation cannot: to it, a size that the template does not change is the business of whoever changed it.

use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_hold::{Hold, Limits};
use crate::deploy::state::pool_size::PoolSize;
use crate::plural::count_of;

/// Before the stacks change: a pool whose stack gets another size needs limits that allow it, whichever of the three CloudFormation
/// sets first.
pub(crate) async fn prepare_limits(
    run: &Run,
    sizes: &[&PoolSize],
    live: &LiveCluster,
) -> Result<(), DeployError> {
    for size in sizes {
        let group = live.pool_group(size.pool());
        // Machines of a capacity block that is over cannot start until the stack names another.
        let is_set_by_stack = size.begins_from_none();
        if size.hold(group) == Hold::Released && size.changes_stack(group) && !is_set_by_stack {
            set_own_limits(run, size, live).await?;
        }
    }
    Ok(())
}

/// After the stacks have changed, so that machines start as the stack describes them now. A pool without a schedule is looked at again,
/// since a run that was killed may have left it.
pub(crate) async fn restore_limits(
    run: &Run,
    sizes: &[&PoolSize],
    before: &LiveCluster,
    now: &LiveCluster,
) -> Result<bool, DeployError> {
    let mut is_changed = false;
    let is_meant = |size: &&&PoolSize| {
        !size.has_schedule() || size.hold(before.pool_group(size.pool())) == Hold::Released
    };
    for size in sizes.iter().filter(is_meant) {
        is_changed |= set_own_limits(run, size, now).await?;
    }
    Ok(is_changed)
}

async fn set_own_limits(run: &Run, size: &PoolSize, live: &LiveCluster) -> Result<bool, DeployError> {
    let own = size.own_limits();
    let group = live.pool_group(size.pool()).filter(|group| Limits::of_group(group) != own);
    let Some(group) = group else { return Ok(false) };
    let count = size.count();
    run.clients.set_group_size(&group.name, own.least, own.most, count).await?;
    run.progress.note(format!(
        "pool {}: its own limits are set again ({} → {own}), {}",
        size.pool(),
        Limits::of_group(group),
        count_of(count, "machine")
    ));
    Ok(true)
}
