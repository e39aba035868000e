//! How the machines of a job talk to each other: over EFA where every machine that may run it has adapters, else over TCP.

use super::cluster_facts::ClusterFacts;
use super::environment::wants_huge_pages;
use super::machine::{HUGE_PAGE, Machine};
use super::needed_machines::needed_machines;
use super::placement::{machines_for, needs_of};
use super::training::{Devices, TrainingJob};
use crate::blueprint::Blueprint;
use crate::config::gpu::EfaCards;
use crate::kube::Toleration;
use crate::plural::count_of;

/// EFA adapters of each pod. They fall to pods as GPUs do: nobody shares one.
pub(super) fn efa_adapters(
    job: &TrainingJob,
    devices: Devices,
    tolerations: &[Toleration],
    facts: ClusterFacts<'_>,
) -> u32 {
    // A pod alone talks to nobody.
    if devices.gpus == 0 || job.scale.pods() < 2 {
        return 0;
    }
    let machines = machines_for(job, &needs_of(job, devices, tolerations), facts);
    machines.iter().map(|machine| machine.efa_share(devices.gpus)).min().unwrap_or(0)
}

/// MiB of huge pages of a pod with EFA, if its job wants libfabric to use them: the share that goes with its GPUs.
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

/// That the machines of a job talk TCP although they could have EFA, in words for whoever submits it.
#[must_use]
pub(crate) fn tcp_notice(job: &TrainingJob, blueprint: &Blueprint) -> Option<String> {
    let needed = needed_machines(job, blueprint)?;
    let pools = &blueprint.cluster.pools;
    needed.iter().filter(|machines| machines.count > 1).find_map(|machines| {
        let pool = pools.iter().find(|pool| pool.name.as_str() == machines.pool)?;
        let gpus = pool.gpus.as_ref().filter(|gpus| gpus.efa.count > 0 && job.gpus.value > 0)?;
        let who = format!("the {} machines of pool {} talk TCP", machines.count, pool.name);
        let Some(cards) = pool.efa else {
            let machine = &pool.instance_types[0];
            return Some(format!("{who}: {machine} has EFA, which efa: true of the pool switches on"));
        };
        let is_without = Machine::of_pool(pool).efa_share(job.gpus.value) == 0;
        is_without.then(|| {
            format!(
                "{who}: each has {} for {}, which replicas do not share; with gpus: {} each has one",
                count_of(cards.count, "EFA adapter"),
                count_of(gpus.count, "GPU"),
                gpus.count.div_ceil(cards.count)
            )
        })
    })
}
