//! A validated job into every decided fact about its objects.

use std::collections::BTreeMap;

use super::cluster_facts::ClusterFacts;
use super::code::CodeTree;
use super::command::split_interpreter;
use super::environment::{ports_of, root_of, train_config_directory, variables_of};
use super::fabric::{efa_adapters, huge_pages_mib};
use super::framework::Framework;
use super::memory::memory_limit;
use super::names::{SCRIPT_DIRECTORY, SERVER_ROLE, roles_of_scale};
use super::scripts::{self, Scripts};
use super::tolerations::{helper_tolerations, tolerations};
use super::training::{Data, DataSource, Devices, Scale, Split, Tensorboard, TrainingJob};
use super::values::S3Source;
use super::workload::{
    CodePlan, DataPlan, ObjectsPlan, RolePlan, TensorboardPlan, Variable, VolumePair, Workload,
};
use crate::blueprint::Blueprint;
use crate::hexadecimal::hexadecimal;

/// Imports data and hands out results: Python, and the tools of a small Debian.
pub(crate) const HELPER_IMAGE: &str = "public.ecr.aws/docker/library/python:3.13-slim-bookworm";
/// Measures how fast machines all-reduce: PyTorch, NCCL and its plugin for EFA, without a login. CUDA 12.9 runs on every driver since 525.
pub(crate) const NCCL_CHECK_IMAGE: &str =
    "public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2-v1.0";
/// For frameworks whose own images lack it.
const TENSORBOARD_IMAGE: &str = "docker.io/tensorflow/tensorflow:2.16.1";
/// The uid of the Job that a pod belongs to.
const JOB_UID_FIELD: &str = "metadata.labels['batch.kubernetes.io/controller-uid']";
/// Shards that are searched for files of an earlier import.
const MOST_SHARDS_SEARCHED: u32 = 16;
/// The claim that a cluster has in `default`, and gets in any other namespace.
pub(crate) const CLUSTER_CLAIM: &str = "efs";
/// The namespace that the cluster has its claim in.
pub(crate) const CLUSTER_NAMESPACE: &str = "default";

/// Decides everything about a job's objects that no run changes; `code` is what the directory of its code holds now.
#[must_use]
pub(crate) fn decide(
    job: &TrainingJob,
    code: Option<&CodeTree>,
    facts: ClusterFacts<'_>,
    scripts: &Scripts,
) -> Workload {
    let mirrored = |image: &str| facts.mirrored_image(image);
    Workload {
        name: job.name.to_string(),
        namespace: job.namespace.value.to_string(),
        framework: job.framework,
        roles: roles_of(job, facts),
        scripts: scripts_of(job, scripts),
        claim: job.storage.claim.to_string(),
        mount_path: job.framework.mount_path(),
        path: job.storage.path.to_string(),
        data: job.data.as_ref().map(|data| plan_data(data, job, &mirrored)),
        volume: volume_of(job, facts.blueprint()),
        code: code
            .zip(job.code_mount())
            .map(|(code, mount)| CodePlan { directory: code.directory(), mounted_at: mount.to_owned() }),
        workdir: job
            .code_mount()
            .map(str::to_owned)
            .or_else(|| job.workdir.as_ref().map(ToString::to_string)),
        secrets: job.secrets.iter().map(ToString::to_string).collect(),
        image_pull_secrets: job.image_pull_secrets.iter().map(ToString::to_string).collect(),
        mounts: job.mounts.iter().map(|(at, directory)| (at.to_string(), directory.to_string())).collect(),
        tensorboard: job.tensorboard.as_ref().map(|settings| plan_tensorboard(settings, job, &mirrored)),
        pool: job.pool.as_ref().map(|pool| pool.value.clone()),
        helper_tolerations: helper_tolerations(job, facts),
        processors: job.processors.clone(),
        requested_memory: job.requested_memory(),
        shared_memory: job.shared_memory.clone(),
        retries: job.retries,
        grace_seconds: job.grace_seconds.value,
        deadline_seconds: job.deadline_seconds,
        queue: job.queue.as_ref().map(ToString::to_string),
        asks_for_peers: job.seed_image,
    }
}

fn roles_of(job: &TrainingJob, facts: ClusterFacts<'_>) -> Vec<RolePlan> {
    let roles = roles_of_scale(job.framework, &job.scale);
    let has_servers = roles.len() > 1;
    let plan = |(role, replicas): (&'static str, u32)| {
        let is_server = role == SERVER_ROLE;
        let image = match &job.scale {
            Scale::Servers { image: Some(image), .. } if is_server => image.to_string(),
            _ => job.image.value.to_string(),
        };
        let devices = if is_server { Devices::default() } else { job.devices() };
        let tolerations = tolerations(job, facts, devices.gpus);
        let devices = Devices { efa: efa_adapters(job, devices, &tolerations, facts), ..devices };
        RolePlan {
            role,
            replicas,
            image,
            command: command_of(job, is_server, has_servers),
            variables: variables_of(job, role, replicas, devices),
            ports: ports_of(job),
            gpus: devices.gpus,
            efa: Some(devices.efa).filter(|adapters| *adapters > 0),
            huge_pages_mib: huge_pages_mib(job, devices, &tolerations, facts),
            scratch_gib: Some(devices.scratch_gib).filter(|gibibytes| *gibibytes > 0),
            memory_limit: job.memory.clone().or_else(|| memory_limit(job, devices, &tolerations, facts)),
            tolerations,
        }
    };
    roles.into_iter().map(plan).collect()
}

/// The file a script is mounted as.
fn file_name(script: &'static str) -> &'static str {
    script.rsplit('/').next().unwrap_or(script)
}

fn command_of(job: &TrainingJob, is_server: bool, has_servers: bool) -> Vec<String> {
    let with_launcher = |script: &'static str, command: &[String]| {
        let launcher = format!("{SCRIPT_DIRECTORY}/{}", file_name(script));
        ["/bin/sh".to_owned(), launcher].into_iter().chain(command.iter().cloned()).collect()
    };
    match job.framework {
        Framework::PaddleV0 if job.seed_image => {
            ["/bin/bash", "-c", "/root/start.sh"].map(str::to_owned).to_vec()
        }
        Framework::PaddleV0 => with_launcher(scripts::PADDLE_V0, &job.command),
        Framework::Paddle => match split_interpreter(&job.command) {
            Some((interpreter, program)) => {
                with_launcher(scripts::PADDLE, &[std::slice::from_ref(interpreter), program].concat())
            }
            None => with_launcher(scripts::PADDLE, &job.command),
        },
        Framework::TensorflowSeed | Framework::Tensorflow if is_server => {
            with_launcher(scripts::SERVER, &job.command)
        }
        Framework::TensorflowSeed | Framework::Tensorflow if has_servers => {
            with_launcher(scripts::WORKER, &job.command)
        }
        Framework::TensorflowSeed | Framework::Tensorflow | Framework::Program => {
            with_launcher(scripts::PROGRAM, &job.command)
        }
        Framework::Pytorch => {
            // With the interpreter that the user named: the torchrun on the path may belong to another environment.
            let torchrun = [format!("{SCRIPT_DIRECTORY}/{}", file_name(scripts::TORCHRUN))];
            let command = match split_interpreter(&job.command) {
                Some((interpreter, program)) => {
                    [std::slice::from_ref(interpreter), &torchrun, program].concat()
                }
                None => job.command.clone(),
            };
            with_launcher(scripts::PYTORCH, &command)
        }
    }
}

fn scripts_of(job: &TrainingJob, scripts: &Scripts) -> BTreeMap<&'static str, String> {
    let launchers: &[&'static str] = match (job.framework, &job.scale) {
        (Framework::PaddleV0, _) if job.seed_image => &[],
        (Framework::PaddleV0, _) => &[scripts::PADDLE_V0],
        (Framework::Paddle, _) => &[scripts::PADDLE],
        (Framework::Pytorch, _) => &[scripts::PYTORCH],
        (_, Scale::Servers { .. }) => &[scripts::SERVER, scripts::WORKER],
        _ => &[scripts::PROGRAM],
    };
    let mut files: BTreeMap<&'static str, String> =
        launchers.iter().map(|name| (file_name(name), scripts.launcher(name))).collect();
    files.insert(file_name(scripts::PREPARE), scripts.launcher(scripts::PREPARE));
    if job.framework == Framework::Pytorch && split_interpreter(&job.command).is_some() {
        files.insert(file_name(scripts::TORCHRUN), scripts.text(scripts::TORCHRUN));
    }
    if job.data.is_some() {
        files.extend(scripts::IMPORT.map(|name| (file_name(name), scripts.text(name))));
    }
    if job.tensorboard.is_some() {
        files.insert(file_name(scripts::TENSORBOARD), scripts.launcher(scripts::TENSORBOARD));
    }
    files
}

fn plan_data(data: &Data, job: &TrainingJob, mirrored: &dyn Fn(&str) -> String) -> DataPlan {
    let root = root_of(job);
    let split = match data.split {
        Split::Lines => "lines",
        Split::Files => "files",
        Split::None => "none",
    };
    let count = if data.split == Split::None { 1 } else { job.scale.trainers() };
    let source = match &data.source {
        DataSource::Archive(path) => format!("{}/{path}", job.framework.mount_path()),
        DataSource::Url(url) => url.clone(),
        DataSource::Objects(objects) => objects.to_string(),
    };
    // Other data, or the same data split differently, is imported again.
    let what = format!("{source}\n{split}\n{count}");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, what.as_bytes());
    let stamp = format!("{root}/.infra/data-{}.ready", hexadecimal(&digest.as_ref()[..6]));
    let objects = match &data.source {
        DataSource::Objects(source) => Some((source, plan_objects(data, source, count, &stamp, job))),
        DataSource::Archive(_) | DataSource::Url(_) => None,
    };
    let mut variables = vec![
        Variable::text("OUT_DIR", root),
        Variable::text("SPLIT_COUNT", count.to_string()),
        Variable::text("DATA_SPLIT", split),
        Variable::text("DATA_SOURCE", source),
        Variable::text("DATA_SIZE_LIMIT", data.size_limit.bytes().to_string()),
        Variable::text("DATA_STAMP", stamp.clone()),
        Variable::field("INFRA_JOB_UID", JOB_UID_FIELD),
    ];
    variables.extend(train_config_directory(job).map(|name| Variable::text("DATA_BESIDE", name)));
    if let Some((source, plan)) = &objects {
        let directory = format!("{}/{}", job.framework.mount_path(), plan.directory);
        let unpacks = if source.is_archive() { "yes" } else { "no" };
        variables
            .extend([Variable::text("DATA_OBJECTS", directory), Variable::text("DATA_UNPACKS", unpacks)]);
    }
    DataPlan {
        image: data.image.as_ref().map_or_else(|| mirrored(HELPER_IMAGE), ToString::to_string),
        variables,
        stamp,
        objects: objects.map(|(_, plan)| plan),
    }
}

/// The same source is fetched to the same directory, however it is split.
fn plan_objects(data: &Data, source: &S3Source, count: u32, stamp: &str, job: &TrainingJob) -> ObjectsPlan {
    let path = &job.storage.path;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, source.to_string().as_bytes());
    let mount = format!("{}/", job.framework.mount_path());
    let placed = match data.split {
        Split::None => vec![format!("{path}/data")],
        // In which of very many shards a file is cannot be found quickly.
        Split::Files if count <= MOST_SHARDS_SEARCHED => {
            (0..count).map(|number| format!("{path}/{number}/data")).collect()
        }
        Split::Files | Split::Lines => Vec::new(),
    };
    ObjectsPlan {
        directory: format!("{path}/.infra/objects-{}", hexadecimal(&digest.as_ref()[..6])),
        stamp: stamp.strip_prefix(&mount).unwrap_or(stamp).to_owned(),
        placed,
    }
}

/// The volume of the cluster's file system for a namespace.
#[must_use]
pub(crate) fn volume_name(cluster: &str, namespace: &str) -> String {
    format!("{cluster}-efs-{namespace}")
}

/// The cluster has its claim in `default`; any other namespace gets one of its own, for the same file system.
fn volume_of(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Option<VolumePair> {
    let blueprint = blueprint?;
    let namespace = job.namespace.value.as_str();
    let is_ours = job.storage.claim.as_str() == CLUSTER_CLAIM && namespace != CLUSTER_NAMESPACE;
    (is_ours && blueprint.cluster.file_system.is_some()).then(|| VolumePair {
        volume: volume_name(blueprint.cluster.name.as_str(), namespace),
        server: blueprint.names.file_system.clone(),
    })
}

fn plan_tensorboard(
    settings: &Tensorboard,
    job: &TrainingJob,
    mirrored: &dyn Fn(&str) -> String,
) -> TensorboardPlan {
    let own = match &job.scale {
        Scale::Servers { image: Some(image), .. } => image,
        _ => &job.image.value,
    };
    let image = match (&settings.image, job.framework) {
        (Some(image), _) => image.to_string(),
        (None, Framework::Tensorflow | Framework::TensorflowSeed) => own.to_string(),
        (None, _) => mirrored(TENSORBOARD_IMAGE),
    };
    TensorboardPlan { image, processors: settings.processors.clone(), memory: settings.memory.clone() }
}
