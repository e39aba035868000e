//! Keeps Auto Scaling from terminating machines of pools only because another availability zone has fewer.
//!
//! The autoscaler terminates idle machines wherever they are, and leaves availability zones uneven; Auto Scaling would even them out by
//! terminating machines that jobs run on. CloudFormation has no property for it, and a rolling update switches it on again.

use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::well_known::{POOL_PREFIX, ROLE_TAG};

/// Suspends rebalancing for every pool of the cluster; makes no changing call if it is suspended already.
pub(crate) async fn suspend_az_rebalance(run: &Run, live: &LiveCluster) -> Result<(), DeployError> {
    let clients = &run.clients;
    let is_pool = |role: &String| role.starts_with(POOL_PREFIX);
    let pools = live.groups.iter().filter(|group| group.tags.get(ROLE_TAG).is_some_and(is_pool));
    for group in pools.filter(|group| group.rebalances_availability_zones) {
        clients.suspend_az_rebalance(&group.name).await?;
    }
    Ok(())
}
