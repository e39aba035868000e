//! What a job file means: every value checked, every default filled in, every contradiction named.

mod code;
mod command;
mod data;
mod mounts;
mod optional;
mod own_launcher;
mod scale;
mod secrets;

use std::collections::BTreeMap;

use code::build_code;
use command::build_command;
use data::build_data;
use mounts::{build_mounts, build_workdir};
use optional::require_valid;
use scale::build_scale;
use secrets::{build_secrets, warn_of_secret};

use super::environment::{check_name_is_free, check_paddle_ports, check_setting};
use super::file::{JobFile, TensorboardFile, TensorboardSettings};
use super::file_keys::keys_of;
use super::framework::Framework;
use super::names::{pod_host_name, roles_of_scale};
use super::torch_version::check_shutdown_time;
use super::training::{Scale, Storage, Tensorboard, TrainingJob};
use super::values::{ClaimPath, EnvironmentName, ImageReference, JobName, Size, parse_deadline};
use crate::config::values::PoolName;
use crate::document::{At, Fault, Problems};

/// What a DNS label may have, and so a pod's name, which Kubernetes makes its host name.
const LONGEST_POD_NAME: usize = 63;
/// What the Job controller adds to the name of a pod.
const POD_NAME_SUFFIX: &str = "-xxxxx";
/// The longest time between SIGTERM and SIGKILL.
const LONGEST_GRACE: u64 = 3600;

pub(super) fn build_job(file: &JobFile, problems: &mut Problems) -> Option<TrainingJob> {
    let framework = file.framework.value;
    let name: Option<JobName> = problems.parse(&file.name);
    let namespace = problems.parse(&file.namespace);
    let image: Option<ImageReference> = problems.parse(&file.image);
    let scale = build_scale(file, problems);
    if let (Some(name), Some(scale)) = (&name, &scale) {
        check_name_lengths(name, file, scale, problems);
    }
    if scale.as_ref().is_some_and(|scale| scale.pods() > 1) && file.deadline.is_none() {
        let fault = Fault::new("there is no deadline: a process that hangs holds its machines for ever");
        problems.warn(None, fault.help("write deadline: 24h, for example"));
    }
    if image.as_ref().is_some_and(ImageReference::is_floating) {
        let fault = Fault::new(format!("the image '{}' can change between two runs", file.image.value));
        problems.warn(file.image.position, fault.help("name a tag other than latest, or a digest"));
    }
    let processors = problems.parse(&file.cpu);
    let shared_memory: Option<Size> = problems.parse(&file.shared_memory);
    let memory = file.memory.as_ref().map(|text| problems.parse::<Size>(text));
    if let (Some(Some(memory)), Some(shared)) = (&memory, &shared_memory)
        && shared.bytes() >= memory.bytes()
    {
        let fault =
            Fault::new(format!("memory is {memory}, and sharedMemory of {shared} alone uses all of it"));
        problems.add(
            file.memory.as_ref().and_then(|text| text.position),
            fault.help("shared memory counts as memory: write more"),
        );
    }
    let pool = file
        .pool
        .as_ref()
        .map(|text| problems.parse::<PoolName>(text).map(|value| At { value, position: text.position }));
    let command = build_command(file, problems);
    let environment = build_environment(file, problems);
    let secrets = build_secrets("secrets", &file.secrets, problems);
    let image_pull_secrets = build_secrets("imagePullSecrets", &file.image_pull_secrets, problems);
    let workdir = build_workdir(file.workdir.as_ref(), problems);
    let code = file.code.as_ref().map(|code| build_code(code, file, problems));
    let mounts = build_mounts(file, problems);
    let tensorboard = build_tensorboard(file, problems);
    let grace_seconds = build_grace(file, problems);
    if let (Framework::Pytorch, Some(image), Some(grace)) = (framework, &image, &grace_seconds) {
        check_shutdown_time(image, grace, problems);
    }
    let storage = build_storage(file, name.as_ref(), problems);
    let data = file.data.as_ref().map(|data| build_data(data, file, storage.as_ref(), problems));
    let deadline = file.deadline.as_ref();
    let deadline_seconds = deadline.map(|text| problems.take(text.position, parse_deadline(&text.value)));
    let queue = file.queue.as_ref().map(|text| problems.parse(text));
    check_seed_image(file, problems);
    let retries = if file.seed_image.value { 0 } else { file.retries.value };
    Some(TrainingJob {
        name: name?,
        namespace: At { value: namespace?, position: file.namespace.position },
        framework,
        image: At { value: image?, position: file.image.position },
        image_pull_secrets: image_pull_secrets?,
        scale: scale?,
        gpus: file.gpus.clone(),
        processors: processors?,
        memory: require_valid(memory)?,
        pool: require_valid(pool)?,
        command: command?,
        code: require_valid(code)?,
        workdir: workdir?,
        environment: environment?,
        secrets: secrets?,
        mounts: mounts?,
        storage: storage?,
        data: require_valid(data)?,
        retries,
        grace_seconds: grace_seconds?,
        shared_memory: shared_memory?,
        scratch_gib: file.scratch_gib.clone(),
        deadline_seconds: require_valid(deadline_seconds)?,
        queue: require_valid(queue)?,
        tensorboard: require_valid(tensorboard)?,
        seed_image: file.seed_image.value,
        keys: keys_of(file),
    })
}

/// How long processes have after SIGTERM.
fn build_grace(file: &JobFile, problems: &mut Problems) -> Option<At<u64>> {
    let (written, position) = (&file.grace.value, file.grace.position);
    let seconds = problems.take(position, parse_deadline(written))?;
    if seconds > LONGEST_GRACE {
        let fault = Fault::new(format!("grace is {written}, at most {LONGEST_GRACE}s are allowed"));
        problems
            .add(position, fault.help("a restart of the group waits for it; write checkpoints more often"));
        return None;
    }
    Some(At { value: seconds, position })
}

fn build_tensorboard(file: &JobFile, problems: &mut Problems) -> Option<Option<Tensorboard>> {
    let settings = match &file.tensorboard.value {
        TensorboardFile::Wanted(false) => return None,
        TensorboardFile::Wanted(true) => &TensorboardSettings::default(),
        TensorboardFile::Settings(settings) => settings,
    };
    // Which of the settings is wrong, the message says.
    let position = file.tensorboard.position;
    let image = settings.image.as_ref().map(|text| problems.take(position, text.parse()));
    let processors = problems.take(position, settings.cpu.parse());
    let memory = problems.take(position, settings.memory.parse());
    Some(
        require_valid(image)
            .and_then(|image| Some(Tensorboard { image, processors: processors?, memory: memory? })),
    )
}

/// The longest of the pods' names, which are built from the job's.
fn check_name_lengths(name: &JobName, file: &JobFile, scale: &Scale, problems: &mut Problems) {
    let roles = roles_of_scale(file.framework.value, scale).into_iter();
    let names = roles.map(|(role, count)| pod_host_name(name.as_str(), role, count - 1) + POD_NAME_SUFFIX);
    let Some(longest) = names.max_by_key(String::len) else { return };
    if longest.len() > LONGEST_POD_NAME {
        let over = longest.len() - LONGEST_POD_NAME;
        let fault = Fault::new(format!(
            "the name '{name}' is too long: the pod {longest} has {} characters, at most {LONGEST_POD_NAME} are allowed",
            longest.len()
        ));
        problems.add(file.name.position, fault.help(format!("make it {over} shorter")));
    }
}

fn build_environment(file: &JobFile, problems: &mut Problems) -> Option<BTreeMap<EnvironmentName, String>> {
    let mut environment = BTreeMap::new();
    for (key, value) in &file.env {
        let Some(name) = problems.parse::<EnvironmentName>(key) else { continue };
        if let Err(fault) = check_name_is_free(file.framework.value, name.as_str()) {
            problems.add(key.position, fault);
        } else if value.value.contains('\0') {
            problems.add(value.position, Fault::new(format!("the value of {name} contains a zero byte")));
        } else if let Err(fault) = check_setting(name.as_str(), &value.value) {
            problems.add(value.position, fault);
        } else {
            warn_of_secret(&name, key.position, &value.value, problems);
            environment.insert(name, value.value.clone());
        }
    }
    if file.framework.value == Framework::PaddleV0 {
        check_paddle_ports(file, problems);
    }
    (environment.len() == file.env.len()).then_some(environment)
}

fn build_storage(file: &JobFile, name: Option<&JobName>, problems: &mut Problems) -> Option<Storage> {
    let claim = problems.parse(&file.storage.claim);
    let path: Option<ClaimPath> = match &file.storage.path {
        Some(path) => problems.parse(path),
        None => name.and_then(|name| name.as_str().parse().ok()),
    };
    Some(Storage { claim: claim?, path: path? })
}

fn check_seed_image(file: &JobFile, problems: &mut Problems) {
    if !file.seed_image.value {
        return;
    }
    let at = file.seed_image.position;
    if file.framework.value != Framework::PaddleV0 {
        let fault = Fault::new(format!("seedImage is for paddle-v0, not for {}", file.framework.value));
        problems.add(at, fault.help("remove it: other frameworks' images are started as they are"));
    }
    if file.retries.is_written() && file.retries.value > 0 {
        let fault = Fault::new(
            "a seed image cannot be retried: it numbers its trainers by the addresses of the pods that are there",
        );
        problems.add(
            file.retries.position,
            fault.help("write retries: 0, or leave seedImage out to number them by index"),
        );
    }
}
