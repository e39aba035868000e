//! Whether a cluster can run a job: its pools, its registries, its file system.

use super::cluster_facts::{ClusterFacts, PoolFacts};
use super::cuda_version::check_cuda;
use super::machine::{Machine, Needs, Shortage, scratch_of_machines, size_of_machines};
use super::tolerations::tolerations;
use super::training::{Devices, Scale, TrainingJob};
use crate::blueprint::Blueprint;
use crate::config::Pool;
use crate::config::instance_store::InstanceStore;
use crate::config::values::Partition;
use crate::document::{Fault, Problems, nearest_word};
use crate::kube::Toleration;
use crate::plural::count_of;
use crate::well_known::DEEP_LEARNING_CONTAINERS;

/// Adds what keeps a cluster from running a job.
pub(super) fn check_placement(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    check_pools(job, blueprint, problems);
    check_grace(job, blueprint, problems);
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
                let help = match nearest_word(name.value.as_str(), names.iter().copied()) {
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
    let (fitting, reasons) = fitting_pools(job, blueprint, candidates, job.devices());
    if fitting.is_empty() {
        let help =
            if reasons.is_empty() { "the cluster has no pool for it".to_owned() } else { reasons.join("; ") };
        let gpus = Some(job.gpus.value).filter(|gpus| *gpus > 0).map(|gpus| count_of(gpus, "GPU"));
        let scratch = job.scratch_gib.as_ref().map(|scratch| format!("{} GiB of scratch", scratch.value));
        let wanted: Vec<String> = gpus.into_iter().chain(scratch).collect();
        let what = match wanted.as_slice() {
            [] => "no pool can run a replica".to_owned(),
            wanted => format!("no pool can run a replica with {}", wanted.join(" and ")),
        };
        let position = position.or(job.scratch_gib.as_ref().and_then(|scratch| scratch.position));
        problems.add(position, Fault::new(what).help(help));
    } else {
        check_total(job, &fitting, problems);
        if job.gpus.value > 0 {
            check_cuda(&job.image, &fitting, problems);
        }
    }
    check_servers(job, blueprint, problems);
}

/// A spot notice leaves two minutes, of which pods get this much.
const SPOT_GRACE_SECONDS: u64 = 80;

/// Processes on spot machines cannot have more time than a notice leaves.
fn check_grace(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    let may_run_on = |pool: &&Pool| job.pool.as_ref().is_none_or(|named| named.value == pool.name);
    let is_suitable = |pool: &&Pool| job.gpus.value == 0 || pool.gpus.is_some();
    let pools = blueprint.cluster.pools.iter();
    let spot = pools.filter(may_run_on).filter(is_suitable).find(|pool| pool.spot);
    if let Some(pool) = spot.filter(|_| job.grace_seconds.value > SPOT_GRACE_SECONDS) {
        let fault = Fault::new(format!(
            "grace is {}s, and the spot machines of pool {} grant at most {SPOT_GRACE_SECONDS}s",
            job.grace_seconds.value, pool.name
        ));
        let help = format!("write grace: {SPOT_GRACE_SECONDS}s, or name a pool that is not spot");
        problems.add(job.grace_seconds.position, fault.help(help));
    }
}

/// Parameter servers have no GPU, so that machines with GPUs keep them away unless the job names their pool.
fn check_servers(job: &TrainingJob, blueprint: &Blueprint, problems: &mut Problems) {
    if job.pool.is_some() || job.gpus.value == 0 || !matches!(job.scale, Scale::Servers { .. }) {
        return;
    }
    let candidates = blueprint.cluster.pools.iter().filter(|pool| pool.gpus.is_none()).collect();
    let (fitting, mut reasons) = fitting_pools(job, blueprint, candidates, Devices::default());
    if fitting.is_empty() {
        reasons
            .push("add a pool without GPUs to the cluster, or name one pool for all with pool:".to_owned());
        let fault = Fault::new("no pool can run a parameter server, which has no GPU");
        problems.add(job.gpus.position, fault.help(reasons.join("; ")));
    }
}

/// The pools whose machines can hold a pod with these devices, and why the others cannot.
pub(super) fn fitting_pools<'a>(
    job: &TrainingJob,
    blueprint: &Blueprint,
    candidates: Vec<&'a Pool>,
    devices: Devices,
) -> (Vec<&'a Pool>, Vec<String>) {
    let tolerations = tolerations(job, ClusterFacts::Blueprint(blueprint), devices.gpus);
    let needs = needs_of(job, devices, &tolerations);
    let mut reasons = Vec::new();
    let fitting = candidates
        .into_iter()
        .filter(|pool| match why_not(pool, &needs, job) {
            Some(reason) => {
                reasons.push(format!("pool {} {reason}", pool.name));
                false
            }
            None => true,
        })
        .collect();
    (fitting, reasons)
}

pub(super) fn needs_of<'a>(job: &TrainingJob, devices: Devices, tolerations: &'a [Toleration]) -> Needs<'a> {
    Needs {
        gpus: devices.gpus,
        processors: job.processors.thousandths(),
        memory: job.requested_memory().bytes(),
        scratch: u64::from(devices.scratch_gib) << 30,
        tolerations,
    }
}

/// The machines that a pod with these needs may run on, as far as the cluster is known.
pub(super) fn machines_for(job: &TrainingJob, needs: &Needs<'_>, facts: ClusterFacts<'_>) -> Vec<Machine> {
    let is_named = |pool: &PoolFacts| job.pool.as_ref().is_none_or(|named| named.value.as_str() == pool.name);
    // Pods without GPUs stay off GPU machines unless the job names their pool.
    let is_suitable = |pool: &PoolFacts| job.pool.is_some() || (pool.has_gpus == (needs.gpus > 0));
    let pools = facts.pools().into_iter().filter(|pool| is_named(pool) && is_suitable(pool));
    pools
        .flat_map(|pool| pool.machines)
        .filter(|machine| {
            machine.keeps_away(needs.tolerations).is_none() && machine.shortage(needs).is_none()
        })
        .collect()
}

/// Why a pool's machines cannot hold a pod.
fn why_not(pool: &Pool, needs: &Needs<'_>, job: &TrainingJob) -> Option<String> {
    let machine = Machine::of_pool(pool);
    let shortage = machine.shortage(needs);
    if shortage == Some(Shortage::Gpus) {
        return Some(match machine.gpus {
            0 => "has no GPUs".to_owned(),
            gpus => format!("has {} per machine", count_of(gpus, "GPU")),
        });
    }
    if pool.max_count == 0 {
        return Some("has no machines: its maxCount is 0".to_owned());
    }
    if let Some(taint) = machine.keeps_away(needs.tolerations) {
        return Some(format!(
            "has the taint {}, which only jobs that name the pool with pool: tolerate",
            taint.key
        ));
    }
    if shortage == Some(Shortage::Scratch) {
        return Some(why_no_scratch(pool, job.devices().scratch_gib));
    }
    let (processors, memory) = size_of_machines(pool)?;
    match shortage? {
        Shortage::Memory => {
            let wanted = job.requested_memory();
            Some(format!("has {memory} GiB of memory per machine, a replica requests {wanted}"))
        }
        Shortage::Gpus | Shortage::Scratch | Shortage::Processors => {
            let wanted = &job.processors;
            Some(format!(
                "has {processors} CPUs per machine, a replica requests {wanted} and the system needs some"
            ))
        }
    }
}

/// Why a pool's machines do not have that much of drives of their own.
fn why_no_scratch(pool: &Pool, wanted: u32) -> String {
    match (InstanceStore::of_pool(pool), scratch_of_machines(pool)) {
        (Some(_), Some(has)) => format!("has {has} GiB of scratch per machine, a replica requests {wanted}"),
        (Some(_), None) => "has types without instance store, which scratchGiB is a part of".to_owned(),
        (None, _) => "has machines without instance store, which scratchGiB is a part of".to_owned(),
    }
}

/// Whether all replicas fit at once, which training needs.
fn check_total(job: &TrainingJob, fitting: &[&Pool], problems: &mut Problems) {
    if job.gpus.value == 0 {
        return;
    }
    let wanted = job.scale.trainers();
    let names: Vec<&str> = fitting.iter().map(|pool| pool.name.as_str()).collect();
    let needs = needs_of(job, job.devices(), &[]);
    let room: u32 = fitting.iter().filter_map(|pool| room_in(pool, &needs)).sum();
    if room < wanted {
        let fault = Fault::new(format!(
            "{} with {} each {} not fit: {} room for {room} at full size",
            count_of(wanted, "replica"),
            count_of(job.gpus.value, "GPU"),
            if wanted == 1 { "does" } else { "do" },
            match names.as_slice() {
                [name] => format!("pool {name} has"),
                names => format!("pools {} have", names.join(", ")),
            }
        ));
        problems.add(
            job.gpus.position,
            fault.help("raise the pool's maxCount in cluster.yaml, or request fewer"),
        );
    } else if let (Some(_), Scale::Servers { servers, .. }) = (&job.pool, &job.scale)
        && let Some(room) =
            fitting.first().and_then(|pool| room_in(pool, &needs_of(job, Devices::default(), &[])))
        && room < servers.saturating_add(wanted)
    {
        let fault = Fault::new(format!(
            "{} and {} do not fit: pool {} has memory and CPUs for {} at full size",
            count_of(*servers, "parameter server"),
            count_of(wanted, "worker"),
            names.join(", "),
            count_of(room, "pod")
        ));
        let help = "raise the pool's maxCount, request less memory or cpu, or remove pool: and add a pool without GPUs to the cluster";
        problems.add(job.gpus.position, fault.help(help));
    }
}

/// How many pods a pool has room for at its largest, where that is known.
pub(super) fn room_in(pool: &Pool, needs: &Needs<'_>) -> Option<u32> {
    Machine::of_pool(pool).room_for(needs).map(|pods| pods.saturating_mul(pool.max_count))
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
    if registry.account != cluster.kms_key.account() && registry.account != DEEP_LEARNING_CONTAINERS {
        let fault = Fault::new(format!(
            "the image belongs to account {}, the cluster's key to another",
            registry.account
        ));
        problems.warn(
            job.image.position,
            fault.help(
                "its repository policy must let this account pull, and the pool's managedPolicyArns must have a policy such as \
                 AmazonEC2ContainerRegistryPullOnly, or the pods wait with ImagePullBackOff",
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
