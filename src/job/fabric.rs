//! How the machines of a job talk to each other: over EFA where every machine that may run it has adapters, else over TCP.

use super::cluster_facts::ClusterFacts;
use super::environment::wants_huge_pages;
use super::machine::{HUGE_PAGE, Machine};
use super::placement::{fitting_pools, machines_for, needs_of, room_in};
use super::training::{Devices, TrainingJob};
use crate::blueprint::Blueprint;
use crate::config::gpu::{EfaCards, can_have_efa};
use crate::config::{NetworkLayout, Pool, PoolImage};
use crate::kube::Toleration;
use crate::plural::count_of;

/// The number of EFA adapters of each pod. Like GPUs, adapters are not shared between pods.
pub(super) fn efa_adapters(
    job: &TrainingJob,
    devices: Devices,
    tolerations: &[Toleration],
    facts: ClusterFacts<'_>,
) -> u32 {
    // A single pod has no peers.
    if devices.gpus == 0 || job.scale.pods() < 2 {
        return 0;
    }
    let machines = machines_for(job, &needs_of(job, devices, tolerations), facts);
    machines.iter().map(|machine| machine.efa_share(devices.gpus)).min().unwrap_or(0)
}

/// MiB of huge pages of a pod with EFA, in proportion to its GPUs; none unless the job lets libfabric use them.
pub(super) fn huge_pages_mib(
    job: &TrainingJob,
    devices: Devices,
    tolerations: &[Toleration],
    facts: ClusterFacts<'_>,
) -> Option<u32> {
    if devices.efa == 0 || !wants_huge_pages(job) {
        return None;
    }
    let machines = machines_for(job, &needs_of(job, devices, tolerations), facts);
    let most = machines.iter().map(|machine| machine.gpus).max()?;
    let pages = (EfaCards::HUGE_PAGES * devices.gpus).checked_div(most)?;
    u32::try_from((u64::from(pages) * HUGE_PAGE) >> 20).ok()
}

/// What `submit` reports when the machines of a job use TCP although they could use EFA.
#[must_use]
pub(crate) fn tcp_notice(job: &TrainingJob, blueprint: &Blueprint) -> Option<String> {
    let cluster = &blueprint.cluster;
    if job.gpus.value == 0 || job.scale.trainers() < 2 {
        return None;
    }
    let may_be_meant = |pool: &&Pool| job.pool.as_ref().is_none_or(|named| named.value == pool.name);
    let candidates = cluster.pools.iter().filter(may_be_meant).collect();
    match fitting_pools(job, blueprint, candidates, job.devices()).0.as_slice() {
        [pool] => notice_of_pool(job, pool, &cluster.network.layout),
        pools => notice_of_pools(job, pools),
    }
}

/// The notice for a job that runs on this pool alone.
fn notice_of_pool(job: &TrainingJob, pool: &Pool, layout: &NetworkLayout) -> Option<String> {
    let needs = needs_of(job, job.devices(), &[]);
    let room = Machine::of_pool(pool).room_for(&needs).filter(|room| *room > 0)?;
    // Pods on one machine need no network.
    if job.scale.trainers() <= room {
        return None;
    }
    let name = &pool.name;
    let Some(cards) = pool.efa else {
        let machine = &pool.instance_types[0];
        let besides = besides_efa(pool, layout);
        return can_have_efa(&pool.instance_types).then(|| {
            format!(
                "jobs on pool {name} use TCP, but {machine} has EFA: set `efa: true` on the pool{besides}"
            )
        });
    };
    let gpus = pool.gpus.as_ref().filter(|_| !has_adapters(job, pool))?;
    Some(format!(
        "the job uses TCP on pool {name}: each machine has {} for {}, and replicas cannot share one: request gpus: {} per replica",
        count_of(cards.count, "EFA adapter"),
        count_of(gpus.count, "GPU"),
        gpus.count.div_ceil(cards.count)
    ))
}

/// The notice for a job that may run on several pools, if it would have EFA on one that has room for all of it.
fn notice_of_pools(job: &TrainingJob, pools: &[&Pool]) -> Option<String> {
    let needs = needs_of(job, job.devices(), &[]);
    let has_room = |pool: &Pool| room_in(pool, &needs).is_none_or(|room| room >= job.scale.trainers());
    let without = pools.iter().find(|pool| !has_adapters(job, pool))?;
    let with = pools.iter().find(|pool| has_adapters(job, pool) && has_room(pool))?;
    Some(format!(
        "the job may run on pool {}, where a replica has no EFA adapter, and uses TCP: set `pool: {}` in the job file",
        without.name, with.name
    ))
}

/// Whether a replica on a machine of the pool has adapters.
fn has_adapters(job: &TrainingJob, pool: &Pool) -> bool {
    Machine::of_pool(pool).efa_share(job.gpus.value) > 0
}

/// What a pool needs for EFA and does not have yet, besides `efa: true`.
fn besides_efa(pool: &Pool, layout: &NetworkLayout) -> String {
    let needs = [
        (pool.image != PoolImage::DeepLearning, "`image: deep-learning`"),
        (layout.is_public(), "private topology"),
        (pool.availability_zones.len() != 1, "one availability zone"),
    ];
    let missing: Vec<&str> =
        needs.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect();
    match missing.as_slice() {
        [] => String::new(),
        [one] => format!(", with {one}"),
        [others @ .., last] => format!(", with {} and {last}", others.join(", ")),
    }
}
