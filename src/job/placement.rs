//! Where a job's pods may run: what its pools have, and what they keep away.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::gpu_toleration;
use super::training::TrainingJob;
use crate::blueprint::Blueprint;
use crate::config::Pool;
use crate::config::gpu::size_of;
use crate::config::values::Partition;
use crate::document::{Fault, Problems, nearest};

const POOL_LABEL: &str = "infra.internal/pool";
const GIBIBYTE: u64 = 1 << 30;
/// What the system, the kubelet and the daemons of a node keep of its memory, at least.
const RESERVED_GIBIBYTES: u64 = 1;

/// The labels a job's nodes must have.
pub(super) fn node_selector(job: &TrainingJob) -> BTreeMap<String, String> {
    job.pool.iter().map(|pool| (POOL_LABEL.to_owned(), pool.value.to_string())).collect()
}

/// The taints a job's pods stand: those of GPUs, and all of the pool it names.
pub(super) fn tolerations(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Vec<Value> {
    let mut tolerations = Vec::new();
    if job.gpus.value > 0 {
        tolerations.push(gpu_toleration());
    }
    let named = job.pool.as_ref().and_then(|name| pool_of(blueprint?, name.value.as_str()));
    for taint in named.iter().flat_map(|pool| &pool.taints) {
        let effect = format!("{:?}", taint.effect);
        tolerations.push(json!({
            "key": taint.key.as_str(), "operator": "Equal", "value": taint.value.as_str(), "effect": effect,
        }));
    }
    if job.gpus.value == 0 && named.is_some_and(|pool| pool.gpus.is_some()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

fn pool_of<'a>(blueprint: &'a Blueprint, name: &str) -> Option<&'a Pool> {
    blueprint.cluster.pools.iter().find(|pool| pool.name.as_str() == name)
}

/// Notes what keeps a cluster from running a job.
pub(super) fn check_placement(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    check_pools(job, blueprint, problems);
    check_image(job, blueprint, problems);
    check_claim(job, blueprint, problems);
}

fn check_pools(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    let pools = &blueprint.cluster.pools;
    let position = job.pool.as_ref().map_or(job.gpus.position, |pool| pool.position);
    let candidates: Vec<&Pool> = match &job.pool {
        None => pools.iter().filter(|pool| job.gpus.value > 0 || pool.gpus.is_none()).collect(),
        Some(name) => match pool_of(blueprint, name.value.as_str()) {
            Some(pool) => vec![pool],
            None => {
                let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
                let help = match nearest(name.value.as_str(), names.iter().copied()) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None if names.is_empty() => "the cluster has no pools".to_owned(),
                    None => format!("its pools are {}", names.join(", ")),
                };
                let fault =
                    Fault::new(format!("cluster '{}' has no pool '{}'", blueprint.cluster.name, name.value));
                problems.add(name.position, fault.help(help));
                return;
            }
        },
    };
    let mut reasons = Vec::new();
    let fitting: Vec<&Pool> = candidates
        .into_iter()
        .filter(|pool| match why_not(job, pool) {
            Some(reason) => {
                reasons.push(format!("pool {} {reason}", pool.name));
                false
            }
            None => true,
        })
        .collect();
    if fitting.is_empty() {
        let help =
            if reasons.is_empty() { "the cluster has no pool for it".to_owned() } else { reasons.join("; ") };
        let what = match job.gpus.value {
            0 => "no pool can hold a replica".to_owned(),
            1 => "no pool can hold a replica with 1 GPU".to_owned(),
            gpus => format!("no pool can hold a replica with {gpus} GPUs"),
        };
        problems.add(position, Fault::new(what).help(help));
        return;
    }
    check_total(job, &fitting, problems);
}

/// Why a pool's machines cannot hold a replica.
fn why_not(job: &TrainingJob, pool: &Pool) -> Option<String> {
    let gpus = pool.gpus.as_ref().map_or(0, |gpus| gpus.count);
    if job.gpus.value > gpus {
        return Some(match gpus {
            0 => "has no GPUs".to_owned(),
            _ => format!("has {gpus} a machine"),
        });
    }
    if pool.max_count == 0 {
        return Some("has no machines: its maxCount is 0".to_owned());
    }
    let tainted = |taint: &&crate::config::Taint| format!("{:?}", taint.effect) != "PreferNoSchedule";
    if let (None, Some(taint)) = (&job.pool, pool.taints.iter().find(tainted)) {
        return Some(format!("keeps others away with the taint {}; name it with pool:", taint.key));
    }
    // Sizes are known of GPU machines only.
    let (processors, memory) = size_of(pool.instance_types.first()?)?;
    let wanted = job.requested_memory();
    if wanted.bytes() > u64::from(memory).saturating_sub(RESERVED_GIBIBYTES) * GIBIBYTE {
        return Some(format!("has {memory} GiB of memory a machine, a replica asks for {wanted}"));
    }
    let wanted = &job.processors;
    (wanted.thousandths() >= u64::from(processors) * 1000).then(|| {
        format!("has {processors} processors a machine, a replica asks for {wanted} and the system for some")
    })
}

/// Whether all replicas fit at once, which training needs.
fn check_total(job: &TrainingJob, fitting: &[&Pool], problems: &mut Problems) {
    if job.gpus.value == 0 {
        return;
    }
    let wanted = job.scale.trainers();
    let room: u32 = fitting
        .iter()
        .map(|pool| pool.gpus.as_ref().map_or(0, |gpus| gpus.count) / job.gpus.value * pool.max_count)
        .sum();
    if room < wanted {
        let names: Vec<&str> = fitting.iter().map(|pool| pool.name.as_str()).collect();
        let fault = Fault::new(format!(
            "{wanted} replicas with {} GPUs each do not fit: pool {} has room for {room} at its largest",
            job.gpus.value,
            names.join(", ")
        ));
        problems.add(
            job.gpus.position,
            fault.help("raise the pool's maxCount in cluster.yaml, or ask for fewer"),
        );
    }
}

fn check_image(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    let Some(registry) = job.image.value.ecr() else { return };
    let cluster = &blueprint.cluster;
    let in_china = cluster.region.partition() == Partition::China;
    if registry.in_china != in_china {
        let fault = Fault::new(format!(
            "machines in {} cannot log in to a registry in {}",
            cluster.region, registry.region
        ));
        problems.add(
            job.image.position,
            fault.help("the partitions of AWS share no accounts: copy the image to a registry of this one"),
        );
        return;
    }
    if registry.region != cluster.region.as_str() {
        let fault = Fault::new(format!(
            "the image comes from {}, the machines are in {}: every pull crosses regions",
            registry.region, cluster.region
        ));
        problems
            .warn(job.image.position, fault.help(format!("replicate the repository to {}", cluster.region)));
    }
    if registry.account != cluster.kms_key.account() {
        let fault = Fault::new(format!(
            "the image belongs to account {}, the cluster's key to another",
            registry.account
        ));
        problems.warn(
            job.image.position,
            fault.help(
                "its repository policy must let the pool's role pull, or the pods wait with ImagePullBackOff",
            ),
        );
    }
}

fn check_claim(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    if job.storage.claim.as_str() == "efs" && blueprint.cluster.file_system.is_none() {
        let fault = Fault::new(format!(
            "cluster '{}' has no shared file system, so there is no claim 'efs'",
            blueprint.cluster.name
        ));
        problems.add(
            None,
            fault.help(
                "add `storage: {efs: {}}` to cluster.yaml and run `infra up`, or name a claim of your own",
            ),
        );
    }
}
