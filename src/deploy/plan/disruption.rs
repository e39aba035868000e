//! What a plan interrupts: machines, what they serve, and the job pods on them.

use super::Plan;
use super::machines::find_machine_changes;
use super::outage::find_outages;
use crate::blueprint::Role;
use crate::config::values::PoolName;
use crate::deploy::event::{DisruptedJob, HeldPool, Holder, MachinePlan, ReleasedPool};
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_hold::{HeldBy, Hold};
use crate::kube::{ApiServer, KubeError};

/// What a plan does to machines. The jobs on them are not read yet.
#[must_use]
pub(crate) fn plan_machines(plan: &Plan, desired: &[DesiredStack], live: &LiveCluster) -> MachinePlan {
    let machines = find_machine_changes(plan, desired, live);
    let outages = find_outages(&machines, live);
    let planned = |stack: &&DesiredStack| plan.stacks.iter().any(|planned| planned.part == stack.part);
    let mut found = MachinePlan { machines, outages, jobs: Some(Vec::new()), ..MachinePlan::default() };
    for stack in desired.iter().filter(planned) {
        found.blocks.extend(stack.block().cloned());
        let Some(size) = stack.pool_size() else { continue };
        let machines = size.machines(live.pool_group(size.pool()));
        let (pool, limits) = (size.pool().clone(), size.own_limits());
        match stack.hold(live) {
            Hold::Free => {}
            Hold::Held(by) => {
                found.held.extend(holder_in_cluster_file(by).map(|by| HeldPool { pool, machines, by }));
            }
            // What its block is says it.
            Hold::Released if size.has_block() => {}
            Hold::Released => {
                let (minimum, maximum) = (limits.least, limits.most);
                found.released.push(ReleasedPool { pool, machines, minimum, maximum });
            }
        }
    }
    found
}

/// What of cluster.yaml holds a pool; that its capacity block does is said with the block.
fn holder_in_cluster_file(by: HeldBy) -> Option<Holder> {
    match by {
        HeldBy::Schedule => Some(Holder::Schedule),
        HeldBy::Expires => Some(Holder::Expires),
        HeldBy::Block => None,
    }
}

/// The pools whose machines a plan replaces or terminates.
#[must_use]
pub(crate) fn pools_losing_machines(machines: &MachinePlan) -> Vec<PoolName> {
    let losing = machines.machines.iter().filter(|change| change.change.terminates_machines());
    let mut pools: Vec<PoolName> = losing
        .filter_map(|change| match &change.role {
            Role::Pool(pool) => Some(pool.clone()),
            Role::EtcdMember(_) | Role::Controller => None,
        })
        .collect();
    pools.dedup();
    pools
}

/// The job pods on the nodes of some pools.
pub(crate) async fn disrupted_jobs(
    api: &ApiServer,
    pools: &[PoolName],
) -> Result<Vec<DisruptedJob>, KubeError> {
    let nodes = api.nodes().await?;
    let pods = api.job_pods().await?;
    let on_pools = pods.into_iter().filter_map(|pod| {
        let node = nodes.iter().find(|node| node.name == pod.node)?;
        let pool = pools.iter().find(|pool| node.pool.as_deref() == Some(pool.as_str()))?;
        Some(DisruptedJob {
            pool: pool.clone(),
            namespace: pod.namespace,
            job: pod.job,
            pod: pod.name,
            node: pod.node,
        })
    });
    Ok(on_pools.collect())
}
