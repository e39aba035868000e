//! Which taints the pods of a job tolerate.

use super::cluster_facts::{ClusterFacts, PoolFacts};
use super::training::TrainingJob;
use crate::kube::{TaintEffect, Toleration};
use crate::well_known::GPU_RESOURCE;

/// What pods of a job with this many GPUs tolerate: the taint of GPU machines if they have GPUs, and all of the pool the job names.
pub(super) fn tolerations(job: &TrainingJob, facts: ClusterFacts<'_>, gpus: u32) -> Vec<Toleration> {
    let mut tolerations = Vec::new();
    if gpus > 0 {
        tolerations.push(gpu_toleration());
    }
    let named = job.pool.as_ref().and_then(|name| facts.pool(&name.value));
    tolerations.extend(named.iter().flat_map(tolerations_of));
    if gpus == 0 && named.is_some_and(|pool| pool.has_gpus) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

/// What pods that help a job tolerate.
pub(super) fn helper_tolerations(job: &TrainingJob, facts: ClusterFacts<'_>) -> Vec<Toleration> {
    let mut tolerations = tolerations(job, facts, job.gpus.value);
    if !tolerations.contains(&gpu_toleration()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

/// What a pod tolerates that may run on any machine of a cluster but its controllers, which do not reach the file system.
#[must_use]
pub(crate) fn tolerations_of_all_pools(facts: ClusterFacts<'_>) -> Vec<Toleration> {
    let mut tolerations = vec![gpu_toleration()];
    for toleration in facts.pools().iter().flat_map(tolerations_of) {
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    tolerations
}

fn tolerations_of(pool: &PoolFacts) -> impl Iterator<Item = Toleration> {
    pool.taints.iter().map(Toleration::of)
}

fn gpu_toleration() -> Toleration {
    Toleration::of_any_value(GPU_RESOURCE, TaintEffect::NoSchedule)
}
