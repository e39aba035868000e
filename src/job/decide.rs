//! A validated job into every decided fact about its objects.

use std::collections::BTreeMap;

use super::command::{is_python, without_interpreter};
use super::environment::{ports_of, root_of, variables_of};
use super::framework::Framework;
use super::names::{SCRIPT_DIRECTORY, role_jobs};
use super::scripts::{self, Scripts};
use super::tolerations::{helper_tolerations, tolerations};
use super::training::{Data, DataSource, Scale, Split, TrainingJob};
use super::workload::{DataPlan, RolePlan, Variable, VolumePair, Workload, failures_allowed};
use crate::blueprint::Blueprint;
use crate::hexadecimal::hexadecimal;

/// Imports data and hands out results: Python, and the tools of a small Debian.
pub(crate) const HELPER_IMAGE: &str = "public.ecr.aws/docker/library/python:3.13-slim-bookworm";
/// For frameworks whose own images lack it.
const TENSORBOARD_IMAGE: &str = "docker.io/tensorflow/tensorflow:2.16.1";
/// The claim that a cluster has in `default`, and gets in any other namespace.
const CLUSTER_CLAIM: &str = "efs";
const CLUSTER_NAMESPACE: &str = "default";

/// Decides everything about a job's objects that no run changes.
#[must_use]
pub(crate) fn decide(job: &TrainingJob, blueprint: Option<&Blueprint>, scripts: &Scripts) -> Workload {
    let mirrored =
        |image: &str| blueprint.map_or_else(|| image.to_owned(), |known| known.mirrored_image(image));
    Workload {
        name: job.name.to_string(),
        namespace: job.namespace.value.to_string(),
        framework: job.framework,
        roles: roles_of(job, blueprint),
        scripts: scripts_of(job, scripts),
        claim: job.storage.claim.to_string(),
        mount_path: job.framework.mount_path(),
        path: job.storage.path.to_string(),
        data: job.data.as_ref().map(|data| plan_data(data, job, &mirrored)),
        volume: volume_of(job, blueprint),
        tensorboard: job.tensorboard.then(|| tensorboard_image(job)),
        pool: job.pool.as_ref().map(|pool| pool.value.clone()),
        helper_tolerations: helper_tolerations(job, blueprint),
        processors: job.processors.clone(),
        requested_memory: job.requested_memory(),
        memory_limit: job.memory.clone(),
        shared_memory: job.shared_memory.clone(),
        retries: job.retries,
        deadline_seconds: job.deadline_seconds,
        queue: job.queue.as_ref().map(ToString::to_string),
        asks_for_peers: job.seed_image,
    }
}

fn roles_of(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Vec<RolePlan> {
    let jobs = role_jobs(job);
    let has_servers = jobs.len() > 1;
    let plan = |(role, name, replicas): (&'static str, String, u32)| {
        let is_server = role == "ps";
        let image = match &job.scale {
            Scale::Servers { image: Some(image), .. } if is_server => image.to_string(),
            _ => job.image.value.to_string(),
        };
        let gpus = if is_server { 0 } else { job.gpus.value };
        let mut variables = variables_of(job, role, gpus);
        if has_servers {
            variables.splice(1..1, variables_beside_servers(job, replicas));
        }
        RolePlan {
            role,
            job: name,
            replicas,
            image,
            command: command_of(job, is_server, has_servers),
            variables,
            ports: ports_of(job),
            gpus,
            tolerations: tolerations(job, blueprint, gpus),
        }
    };
    jobs.into_iter().map(plan).collect()
}

/// What the launchers of parameter servers and their workers read.
fn variables_beside_servers(job: &TrainingJob, replicas: u32) -> [Variable; 3] {
    [
        Variable::text("INFRA_WORKERS", job.scale.trainers().to_string()),
        Variable::text("INFRA_FAILURES_ALLOWED", failures_allowed(job.retries, replicas).to_string()),
        // Distinguishes this Job from an earlier one with the same name and run.
        Variable::field("INFRA_JOB_UID", "metadata.labels['batch.kubernetes.io/controller-uid']"),
    ]
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
        Framework::Paddle => with_launcher(scripts::PADDLE, &without_interpreter(&job.command)),
        Framework::TensorflowSeed | Framework::Tensorflow if is_server => {
            with_launcher(scripts::SERVER, &job.command)
        }
        Framework::TensorflowSeed | Framework::Tensorflow if has_servers => {
            with_launcher(scripts::WORKER, &job.command)
        }
        Framework::TensorflowSeed | Framework::Tensorflow => with_launcher(scripts::PROGRAM, &job.command),
        Framework::Pytorch => {
            let command = match job.command.first() {
                Some(program) if is_python(program) => {
                    ["torchrun".to_owned()].into_iter().chain(without_interpreter(&job.command)).collect()
                }
                _ => job.command.clone(),
            };
            let is_alone = job.scale.trainers() == 1;
            with_launcher(if is_alone { scripts::PROGRAM } else { scripts::PYTORCH }, &command)
        }
    }
}

fn scripts_of(job: &TrainingJob, scripts: &Scripts) -> BTreeMap<&'static str, String> {
    let launchers: &[&'static str] = match (job.framework, &job.scale) {
        (Framework::PaddleV0, _) if job.seed_image => &[],
        (Framework::PaddleV0, _) => &[scripts::PADDLE_V0],
        (Framework::Paddle, _) => &[scripts::PADDLE],
        (_, Scale::Servers { .. }) => &[scripts::SERVER, scripts::WORKER],
        (Framework::Pytorch, Scale::Replicas(2..)) => &[scripts::PYTORCH],
        _ => &[scripts::PROGRAM],
    };
    let mut files: BTreeMap<&'static str, String> =
        launchers.iter().map(|name| (file_name(name), scripts.launcher(name))).collect();
    if job.data.is_some() {
        files.insert(file_name(scripts::AWAIT_DATA), scripts.launcher(scripts::AWAIT_DATA));
        files.insert(file_name(scripts::IMPORT_DATA), scripts.text(scripts::IMPORT_DATA));
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
    };
    // Other data, or the same data split differently, is imported again.
    let what = format!("{source}\n{split}\n{count}");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, what.as_bytes());
    let stamp = format!("{root}/.infra/data-{}.ready", hexadecimal(&digest.as_ref()[..6]));
    DataPlan {
        image: data.image.as_ref().map_or_else(|| mirrored(HELPER_IMAGE), ToString::to_string),
        variables: vec![
            Variable::text("OUT_DIR", root),
            Variable::text("SPLIT_COUNT", count.to_string()),
            Variable::text("DATA_SPLIT", split),
            Variable::text("DATA_SOURCE", source),
            Variable::text("DATA_SIZE_LIMIT", data.size_limit.bytes().to_string()),
            Variable::text("DATA_STAMP", stamp.clone()),
        ],
        stamp,
    }
}

/// The cluster has its claim in `default`; any other namespace gets one of its own, for the same file system.
fn volume_of(job: &TrainingJob, blueprint: Option<&Blueprint>) -> Option<VolumePair> {
    let blueprint = blueprint?;
    let namespace = job.namespace.value.as_str();
    let is_ours = job.storage.claim.as_str() == CLUSTER_CLAIM && namespace != CLUSTER_NAMESPACE;
    (is_ours && blueprint.cluster.file_system.is_some()).then(|| VolumePair {
        volume: format!("{}-efs-{namespace}", blueprint.cluster.name),
        server: blueprint.names.file_system.clone(),
    })
}

fn tensorboard_image(job: &TrainingJob) -> String {
    match job.framework {
        Framework::Tensorflow | Framework::TensorflowSeed => match &job.scale {
            Scale::Servers { image: Some(image), .. } => image.to_string(),
            _ => job.image.value.to_string(),
        },
        _ => TENSORBOARD_IMAGE.to_owned(),
    }
}
