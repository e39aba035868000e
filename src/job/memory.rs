//! The memory limit of a pod whose job file sets none: its share of the machine, so that a program that needs too much is killed by
//! itself, and counted, instead of its node evicting pods.

use super::cluster_facts::ClusterFacts;
use super::placement::{machines_for, needs_of};
use super::tolerations::tolerations;
use super::training::{Devices, TrainingJob};
use super::values::Size;
use crate::blueprint::Blueprint;
use crate::document::{Fault, Problems};
use crate::kube::Toleration;

/// What becomes of a pod without a limit, in words.
pub(super) const NO_MEMORY_LIMIT: &str = "the job's pods have no memory limit, because the size of their machines is not known: with too much memory \
                                          they are evicted, which does not count as a failure";
/// What its author does about that.
pub(super) const NO_MEMORY_LIMIT_HELP: &str = "write memory: in the job file";

/// The smallest share among the pools that the pod may run on; nothing if the size of one of their machines is not known.
pub(super) fn memory_limit(
    job: &TrainingJob,
    devices: Devices,
    tolerations: &[Toleration],
    facts: ClusterFacts<'_>,
) -> Option<Size> {
    let requested = job.requested_memory();
    let needs = needs_of(job, devices, tolerations);
    let machines = machines_for(job, &needs, facts);
    let shares: Option<Vec<u64>> = machines.iter().map(|machine| machine.memory_share(&needs)).collect();
    let share = shares?.into_iter().min()?;
    Some(Size::of_mebibytes((share >> 20).max(requested.bytes() >> 20)))
}

/// Warns of a pod without a limit: the file sets none, and a machine that it may run on is not known.
pub(super) fn check_memory(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    let facts = ClusterFacts::Blueprint(blueprint);
    let tolerations = tolerations(job, facts, job.gpus.value);
    let has_machines = !machines_for(job, &needs_of(job, job.devices(), &tolerations), facts).is_empty();
    let has_limit = job.memory.is_some() || memory_limit(job, job.devices(), &tolerations, facts).is_some();
    if has_machines && !has_limit {
        problems.warn(None, Fault::new(NO_MEMORY_LIMIT).help(NO_MEMORY_LIMIT_HELP));
    }
}
