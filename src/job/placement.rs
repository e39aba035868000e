//! Where a job's pods may run: what its pools have, and what they keep away.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::gpu_toleration;
use super::training::{Scale, TrainingJob};
use crate::blueprint::Blueprint;
use crate::config::gpu::size_of;
use crate::config::values::Partition;
use crate::config::{Pool, Taint};
use crate::document::{Fault, Problems, nearest};

const POOL_LABEL: &str = "infra.internal/pool";
const GIBIBYTE: u64 = 1 << 30;
/// What the system, the kubelet and the daemons of a node keep of its memory, at least.
const RESERVED_GIBIBYTES: u64 = 1;

/// The labels a job's nodes must have.
pub(super) fn node_selector(job: &TrainingJob) -> BTreeMap<String, String> {
    job.pool.iter().map(|pool| (POOL_LABEL.to_owned(), pool.value.to_string())).collect()
}

/// The taints that pods of a job with so many GPUs stand: those of GPUs if they have some, and all of the pool the job names.
pub(super) fn tolerations(job: &TrainingJob, blueprint: Option<&Blueprint>, gpus: u32) -> Vec<Value> {
    let mut tolerations = Vec::new();
    if gpus > 0 {
        tolerations.push(gpu_toleration());
    }
    let named = job.pool.as_ref().and_then(|name| blueprint?.cluster.pool(&name.value));
    tolerations.extend(named.iter().flat_map(|pool| &pool.taints).map(toleration_of));
    if gpus == 0 && named.is_some_and(|pool| pool.gpus.is_some()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

fn toleration_of(taint: &Taint) -> Value {
    let effect = format!("{:?}", taint.effect);
    json!({"key": taint.key.as_str(), "operator": "Equal", "value": taint.value.as_str(), "effect": effect})
}

/// The taints that pods stand which help a job.
pub(super) fn helper_tolerations(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Vec<Value> {
    let mut tolerations = tolerations(job, blueprint, job.gpus.value);
    if !tolerations.contains(&gpu_toleration()) {
        tolerations.push(gpu_toleration());
    }
    tolerations
}

/// The taints that a pod stands which may run on any machine of a cluster but its controllers, which have no way to the file system.
#[must_use]
pub fn tolerations_of_all_pools(blueprint: &Blueprint) -> Vec<Value> {
    let mut tolerations = vec![gpu_toleration()];
    for toleration in blueprint.cluster.pools.iter().flat_map(|pool| &pool.taints).map(toleration_of) {
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    tolerations
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
        Some(name) => match blueprint.cluster.pool(&name.value) {
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
    let (fitting, reasons) = fitting(job, candidates, job.gpus.value);
    if fitting.is_empty() {
        let help =
            if reasons.is_empty() { "the cluster has no pool for it".to_owned() } else { reasons.join("; ") };
        let what = match job.gpus.value {
            0 => "no pool can hold a replica".to_owned(),
            1 => "no pool can hold a replica with 1 GPU".to_owned(),
            gpus => format!("no pool can hold a replica with {gpus} GPUs"),
        };
        problems.add(position, Fault::new(what).help(help));
    } else {
        check_total(job, &fitting, problems);
    }
    check_servers(job, pools, problems);
}

/// Parameter servers have no GPU, so that machines with GPUs keep them away unless the job names their pool.
fn check_servers(job: &TrainingJob, pools: &[Pool], problems: &mut Problems) {
    if job.pool.is_some() || job.gpus.value == 0 || !matches!(job.scale, Scale::Servers { .. }) {
        return;
    }
    let candidates = pools.iter().filter(|pool| pool.gpus.is_none()).collect();
    let (fitting, mut reasons) = fitting(job, candidates, 0);
    if fitting.is_empty() {
        reasons.push("give the cluster a pool without GPUs, or name a pool for all with pool:".to_owned());
        let fault = Fault::new("no pool can hold a parameter server, which has no GPU");
        problems.add(job.gpus.position, fault.help(reasons.join("; ")));
    }
}

/// The pools whose machines can hold a pod with so many GPUs, and why the others cannot.
fn fitting<'a>(job: &TrainingJob, candidates: Vec<&'a Pool>, gpus: u32) -> (Vec<&'a Pool>, Vec<String>) {
    let mut reasons = Vec::new();
    let fitting = candidates
        .into_iter()
        .filter(|pool| match why_not(job, pool, gpus) {
            Some(reason) => {
                reasons.push(format!("pool {} {reason}", pool.name));
                false
            }
            None => true,
        })
        .collect();
    (fitting, reasons)
}

/// Why a pool's machines cannot hold a pod with so many GPUs.
fn why_not(job: &TrainingJob, pool: &Pool, wanted_gpus: u32) -> Option<String> {
    let gpus = pool.gpus.as_ref().map_or(0, |gpus| gpus.count);
    if wanted_gpus > gpus {
        return Some(match gpus {
            0 => "has no GPUs".to_owned(),
            _ => format!("has {gpus} a machine"),
        });
    }
    if pool.max_count == 0 {
        return Some("has no machines: its maxCount is 0".to_owned());
    }
    let tainted = |taint: &&Taint| format!("{:?}", taint.effect) != "PreferNoSchedule";
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
    let names: Vec<&str> = fitting.iter().map(|pool| pool.name.as_str()).collect();
    let room: u32 = fitting
        .iter()
        .map(|pool| {
            let by_gpus = pool.gpus.as_ref().map_or(0, |gpus| gpus.count) / job.gpus.value;
            by_gpus.min(pods_a_machine(job, pool).unwrap_or(by_gpus)).saturating_mul(pool.max_count)
        })
        .sum();
    if room < wanted {
        let fault = Fault::new(format!(
            "{wanted} replicas with {} GPUs each do not fit: pool {} has room for {room} at its largest",
            job.gpus.value,
            names.join(", ")
        ));
        problems.add(
            job.gpus.position,
            fault.help("raise the pool's maxCount in cluster.yaml, or ask for fewer"),
        );
    } else if let (Some(_), Scale::Servers { servers, .. }) = (&job.pool, &job.scale)
        && let Some(room) = fitting.first().and_then(|pool| pods_in_pool(job, pool))
        && room < servers.saturating_add(wanted)
    {
        let fault = Fault::new(format!(
            "{servers} parameter servers and {wanted} workers do not fit: pool {} has memory and processors for {room} pods at its largest",
            names.join(", ")
        ));
        let help = "raise the pool's maxCount, ask for less memory or cpu, or leave pool: out and have a pool without GPUs";
        problems.add(job.gpus.position, fault.help(help));
    }
}

/// How many pods of a job a machine has memory and processors for, where that is known.
fn pods_a_machine(job: &TrainingJob, pool: &Pool) -> Option<u32> {
    let (processors, memory) = size_of(pool.instance_types.first()?)?;
    let memory = u64::from(memory).saturating_sub(RESERVED_GIBIBYTES) * GIBIBYTE;
    let by_memory = memory / job.requested_memory().bytes().max(1);
    // The system needs some of the processors.
    let by_processors =
        (u64::from(processors) * 1000).saturating_sub(1) / job.processors.thousandths().max(1);
    u32::try_from(by_memory.min(by_processors)).ok()
}

fn pods_in_pool(job: &TrainingJob, pool: &Pool) -> Option<u32> {
    pods_a_machine(job, pool).map(|pods| pods.saturating_mul(pool.max_count))
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
