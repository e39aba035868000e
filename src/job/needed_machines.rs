//! How many machines of a pool a job needs while nothing else runs on them.

use schemars::JsonSchema;
use serde::Serialize;

use super::machine::Machine;
use super::placement::{fitting_pools, needs_of};
use super::training::{Devices, Scale, TrainingJob};
use crate::blueprint::{BlockIds, Blueprint, Charge, pool_charge};
use crate::config::Pool;
use crate::config::values::PoolName;

/// Machines of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NeededMachines {
    /// The name of the pool.
    #[schemars(with = "String")]
    pub pool: PoolName,
    /// How many machines.
    pub count: u32,
    /// How each of them is paid for.
    #[serde(skip)]
    pub charge: Charge,
}

/// The machines that the pods of a job fill; nothing if several pools would do, or if it is not known what fits on a machine.
#[must_use]
pub(crate) fn needed_machines(
    job: &TrainingJob,
    blueprint: &Blueprint,
    blocks: &BlockIds,
) -> Option<Vec<NeededMachines>> {
    let trainers = (job.scale.trainers(), job.devices());
    let servers = match &job.scale {
        Scale::Servers { servers, .. } => Some((*servers, Devices::default())),
        Scale::Replicas(_) => None,
    };
    let mut found: Vec<NeededMachines> = Vec::new();
    for (pods, devices) in std::iter::once(trainers).chain(servers).filter(|(pods, _)| *pods > 0) {
        let pool = only_pool(job, blueprint, devices)?;
        let room = Machine::of_pool(pool).room_for(&needs_of(job, devices, &[])).filter(|room| *room > 0)?;
        let count = pods.div_ceil(room);
        match found.iter_mut().find(|machines| machines.pool == pool.name) {
            Some(machines) => machines.count += count,
            None => {
                let charge = pool_charge(pool, blocks);
                found.push(NeededMachines { pool: pool.name.clone(), count, charge });
            }
        }
    }
    Some(found)
}

/// The pool that pods with these devices run on, if there is only one.
fn only_pool<'a>(job: &TrainingJob, blueprint: &'a Blueprint, devices: Devices) -> Option<&'a Pool> {
    if let Some(name) = &job.pool {
        return blueprint.cluster.pool(&name.value);
    }
    let pools = blueprint.cluster.pools.iter().filter(|pool| devices.gpus > 0 || pool.gpus.is_none());
    match fitting_pools(job, blueprint, pools.collect(), devices).0.as_slice() {
        [pool] => Some(*pool),
        _ => None,
    }
}
