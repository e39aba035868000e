//! Which taints the pods of a job tolerate.

use super::machine::taint_of;
use super::training::TrainingJob;
use crate::blueprint::Blueprint;
use crate::config::Pool;
use crate::kube::{TaintEffect, Toleration};
use crate::well_known::GPU_RESOURCE;

/// What pods of a job with this many GPUs tolerate: the taint of GPU machines if they have GPUs, and all of the pool the job names.
pub(super) fn tolerations(job: &TrainingJob, blueprint: Option<&Blueprint>, gpus: u32) -> Vec<Toleration> {
    let mut tolerations = Vec::new();
    if gpus > 0 {
        tolerations.push(gpu_toleration());
    }
    let named = job.pool.as_ref().and_then(|name| blueprint?.cluster.pool(&name.value));
    tolerations.extend(named.iter().flat_map(|pool| tolerations_of(pool)));
    if gpus == 0 && named.is_some_and(|pool| pool.gpus.is_some()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

/// What pods that help a job tolerate.
pub(super) fn helper_tolerations(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Vec<Toleration> {
    let mut tolerations = tolerations(job, blueprint, job.gpus.value);
    if !tolerations.contains(&gpu_toleration()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

/// What a pod tolerates that may run on any machine of a cluster but its controllers, which do not reach the file system.
#[must_use]
pub(crate) fn tolerations_of_all_pools(blueprint: &Blueprint) -> Vec<Toleration> {
    let mut tolerations = vec![gpu_toleration()];
    for toleration in blueprint.cluster.pools.iter().flat_map(tolerations_of) {
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    tolerations
}

fn tolerations_of(pool: &Pool) -> impl Iterator<Item = Toleration> {
    pool.taints.iter().map(|taint| Toleration::of(&taint_of(taint)))
}

fn gpu_toleration() -> Toleration {
    Toleration::of_any_value(GPU_RESOURCE, TaintEffect::NoSchedule)
}
