//! What a job file means: every value checked, every default filled in, every contradiction named.

use std::collections::BTreeMap;

use super::command::is_python;
use super::environment::{check_name_is_free, check_paddle_ports};
use super::file::{DataFile, JobFile};
use super::framework::Framework;
use super::names::{data_job_name, role_jobs_of, tensorboard_name};
use super::training::{Data, DataSource, Scale, Split, Storage, TrainingJob};
use super::values::{ClaimPath, EnvironmentName, ImageReference, JobName, Size, parse_deadline, parse_url};
use crate::config::values::PoolName;
use crate::document::{At, Fault, Position, Problems};

/// What a DNS label may have, and so a pod's host name.
const LONGEST_HOST_NAME: usize = 63;
/// As many pods as both roles may have together.
const MOST_PODS: u32 = 1000;

pub(super) fn build_job(file: &JobFile, problems: &mut Problems) -> Option<TrainingJob> {
    let framework = file.framework.value;
    let name: Option<JobName> = problems.parse(&file.name);
    let namespace = problems.parse(&file.namespace);
    let image: Option<ImageReference> = problems.parse(&file.image);
    let scale = build_scale(file, problems);
    if let (Some(name), Some(scale)) = (&name, &scale) {
        check_name_lengths(name, file, scale, problems);
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
    let storage = build_storage(file, name.as_ref(), problems);
    let data = file.data.as_ref().map(|data| build_data(data, file, storage.as_ref(), problems));
    let deadline = file.deadline.as_ref();
    let deadline_seconds = deadline.map(|text| problems.take(text.position, parse_deadline(&text.value)));
    let queue = file.queue.as_ref().map(|text| problems.parse(text));
    check_seed_image(file, storage.as_ref(), problems);
    let retries = if file.seed_image.value { 0 } else { file.retries.value };
    Some(TrainingJob {
        name: name?,
        namespace: At { value: namespace?, position: file.namespace.position },
        framework,
        image: At { value: image?, position: file.image.position },
        scale: scale?,
        gpus: file.gpus.clone(),
        processors: processors?,
        memory: require_valid(memory)?,
        pool: require_valid(pool)?,
        command: command?,
        environment: environment?,
        storage: storage?,
        data: require_valid(data)?,
        retries,
        shared_memory: shared_memory?,
        deadline_seconds: require_valid(deadline_seconds)?,
        queue: require_valid(queue)?,
        tensorboard: file.tensorboard,
        seed_image: file.seed_image.value,
    })
}

/// An optional value: an invalid one fails the job, after everything else was checked too.
fn require_valid<T>(written: Option<Option<T>>) -> Option<Option<T>> {
    match written {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}

fn build_scale(file: &JobFile, problems: &mut Problems) -> Option<Scale> {
    let framework = file.framework.value;
    if let (Some(image), None) = (&file.ps_image, &file.ps) {
        let fault = Fault::new("psImage is the image of parameter servers, and there are none");
        problems.add(image.position, fault.help("write ps: and workers:, or remove psImage"));
    }
    match (&file.replicas, &file.ps, &file.workers) {
        (Some(replicas), None, None) if framework != Framework::TensorflowSeed => {
            Some(Scale::Replicas(replicas.value))
        }
        (Some(replicas), None, None) => {
            let fault =
                Fault::new("tensorflow-seed programs work with parameter servers, not with replicas alone");
            problems.add(
                replicas.position,
                fault.help("write ps: 2 and workers: 4, for example, or use framework: tensorflow"),
            );
            None
        }
        (None, Some(servers), Some(workers)) if framework.has_parameter_servers() => {
            let total = servers.value.saturating_add(workers.value);
            if total > MOST_PODS {
                let fault = Fault::new(format!(
                    "ps and workers are {total} pods together, at most {MOST_PODS} are allowed"
                ));
                problems.add(workers.position, fault);
            }
            if file.deadline.is_none() {
                let fault = Fault::new("parameter servers wait for workers, and there is no deadline");
                let help = "write deadline: 24h, for example: a worker that is lost could keep them waiting for ever";
                problems.warn(servers.position, fault.help(help));
            }
            let image = file.ps_image.as_ref().and_then(|image| problems.parse(image));
            Some(Scale::Servers { servers: servers.value, image, workers: workers.value })
        }
        (None, Some(servers), _) if !framework.has_parameter_servers() => {
            let why = match framework {
                Framework::PaddleV0 => "every paddle-v0 trainer brings its own parameter server",
                _ => "its processes are all alike",
            };
            let fault = Fault::new(format!("framework {framework} has no ps: {why}"));
            problems.add(servers.position, fault.help("write replicas: with their number"));
            None
        }
        (None, None, Some(workers)) => {
            let fault = Fault::new("workers: goes with ps:");
            problems.add(workers.position, fault.help("without parameter servers write replicas:"));
            None
        }
        (None, Some(servers), None) => {
            let fault = Fault::new("ps: goes with workers:");
            problems.add(servers.position, fault.help("write the number of workers too"));
            None
        }
        (Some(replicas), _, _) => {
            let fault = Fault::new("replicas is given together with ps or workers");
            problems.add(replicas.position, fault.help("write either replicas, or ps and workers"));
            None
        }
        (None, None, None) => {
            let help = match framework {
                Framework::TensorflowSeed => "write ps: 2 and workers: 4, for example",
                Framework::Tensorflow => "write replicas: 2, or ps: 2 and workers: 4, for example",
                _ => "write replicas: 2, for example",
            };
            problems.add(None, Fault::new("the number of processes is missing").help(help));
            None
        }
        (None, Some(_), Some(_)) => None,
    }
}

/// The longest of the names that are built from the job's must still be a host name.
fn check_name_lengths(name: &JobName, file: &JobFile, scale: &Scale, problems: &mut Problems) {
    let mut names: Vec<String> = role_jobs_of(name.as_str(), file.framework.value, scale)
        .into_iter()
        .map(|(_, job, count)| format!("{job}-{}", count - 1))
        .collect();
    if file.data.is_some() {
        names.push(data_job_name(name.as_str()));
    }
    if file.tensorboard {
        names.push(tensorboard_name(name.as_str()));
    }
    let Some(longest) = names.into_iter().max_by_key(String::len) else { return };
    if longest.len() > LONGEST_HOST_NAME {
        let over = longest.len() - LONGEST_HOST_NAME;
        let fault = Fault::new(format!(
            "the name '{name}' is too long: '{longest}' has {} characters, a host name at most {LONGEST_HOST_NAME}",
            longest.len()
        ));
        problems.add(file.name.position, fault.help(format!("make it {over} shorter")));
    }
}

fn build_command(file: &JobFile, problems: &mut Problems) -> Option<Vec<String>> {
    let framework = file.framework.value;
    let Some(command) = &file.command else {
        if framework == Framework::PaddleV0 {
            return Some(Vec::new());
        }
        let fault =
            Fault::new("'command' is missing").help("command: the training program, as [python, train.py]");
        problems.add(None, fault);
        return None;
    };
    if file.seed_image.value && framework == Framework::PaddleV0 {
        let fault = Fault::new("a seed image runs its own start script");
        problems.add(command.position, fault.help("remove command, or seedImage"));
        return None;
    }
    let words: Vec<String> = command.value.iter().map(|word| word.value.clone()).collect();
    match words.first() {
        None => problems
            .add(command.position, Fault::new("the command is empty").help("write it as [python, train.py]")),
        Some(first) if first.contains(char::is_whitespace) => {
            let fault = Fault::new(format!("there is no program called '{first}'"));
            problems.add(
                command.value[0].position,
                fault.help("write each word by itself, as [python, train.py]"),
            );
        }
        Some(first) if first.contains('/') && !first.starts_with(['/', '.']) => {
            let fault = Fault::new(format!("'{first}' depends on the directory it is started in"));
            problems.add(command.value[0].position, fault.help(format!("write /{first}")));
        }
        Some(first) if framework == Framework::Paddle && !is_python(first) => {
            let fault = Fault::new("paddle.distributed.launch starts Python programs only");
            problems.add(command.value[0].position, fault.help("write it as [python, train.py]"));
        }
        Some(_) => return Some(words),
    }
    None
}

fn build_environment(file: &JobFile, problems: &mut Problems) -> Option<BTreeMap<EnvironmentName, String>> {
    let mut environment = BTreeMap::new();
    for (key, value) in &file.env {
        let Some(name) = problems.parse::<EnvironmentName>(key) else { continue };
        if let Err(fault) = check_name_is_free(file.framework.value, name.as_str()) {
            problems.add(key.position, fault);
        } else if value.value.contains('\0') {
            problems.add(value.position, Fault::new(format!("the value of {name} contains a zero byte")));
        } else {
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

fn build_data(
    data: &At<DataFile>,
    file: &JobFile,
    storage: Option<&Storage>,
    problems: &mut Problems,
) -> Option<Data> {
    let written = &data.value;
    let source = match (&written.archive, &written.url) {
        (Some(archive), None) => problems.parse(archive).map(DataSource::Archive),
        (None, Some(url)) => problems.take(url.position, parse_url(&url.value)).map(DataSource::Url),
        (Some(_), Some(url)) => {
            let fault = Fault::new("data comes from an archive on the claim or from a URL, not from both");
            problems.add(url.position, fault.help("remove one of them"));
            None
        }
        (None, None) => {
            let fault = Fault::new("the source of the data is missing");
            problems.add(data.position, fault.help("write archive: import/data.tar.gz or url: https://…"));
            None
        }
    };
    let at = written.archive.as_ref().or(written.url.as_ref()).and_then(|text| text.position);
    if let Some(source) = &source {
        check_archive(source, at, problems);
    }
    if let (Some(DataSource::Archive(archive)), Some(storage)) = (&source, storage) {
        check_archive_is_safe(archive, storage, written.split.value, at, problems);
    }
    if written.split.value == Split::None && file.framework.value == Framework::PaddleV0 {
        let fault = Fault::new("paddle-v0 trainers read a part of the data each: split is lines or files");
        problems.add(written.split.position.or(data.position), fault.help("write split: lines"));
    }
    let image = written.image.as_ref().map(|image| problems.parse(image));
    let size_limit = problems.parse(&written.size_limit);
    Some(Data {
        source: source?,
        split: written.split.value,
        size_limit: size_limit?,
        image: require_valid(image)?,
    })
}

fn check_archive(source: &DataSource, at: Option<Position>, problems: &mut Problems) {
    let place = match source {
        DataSource::Archive(path) => path.as_str(),
        DataSource::Url(url) => url.split(['?', '#']).next().unwrap_or(url),
    };
    if !ARCHIVES.iter().any(|ending| place.ends_with(ending)) {
        let fault = Fault::new(format!("'{place}' is not an archive that can be unpacked"));
        problems.add(at, fault.help(format!("archives end with {}", ARCHIVES.join(", "))));
    }
}

/// The import replaces directories of the job; an archive in one of them would be deleted.
fn check_archive_is_safe(
    archive: &ClaimPath,
    storage: &Storage,
    split: Split,
    at: Option<Position>,
    problems: &mut Problems,
) {
    let below = archive.as_str().strip_prefix(storage.path.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let Some((first, _)) = below.and_then(|rest| rest.split_once('/')) else { return };
    let is_shard = first.chars().all(|c| c.is_ascii_digit());
    let is_replaced = match split {
        _ if first == ".infra" => true,
        Split::None => first == "data",
        Split::Lines | Split::Files => is_shard,
    };
    if is_replaced {
        let fault =
            Fault::new(format!("'{archive}' is in {}/{first}, which the import replaces", storage.path));
        problems
            .add(at, fault.help("keep archives outside of the job's directory, such as import/data.tar.gz"));
    }
}

/// What Python's tarfile and zipfile read.
const ARCHIVES: [&str; 7] = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".zip"];

fn check_seed_image(file: &JobFile, storage: Option<&Storage>, problems: &mut Problems) {
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
    if storage.is_some_and(|storage| storage.path.split_last().1 != file.name.value) {
        let position = file.storage.path.as_ref().and_then(|path| path.position);
        let fault = Fault::new("a seed image finds its directory and its pods by one name");
        problems.add(position, fault.help(format!("let path end with {}", file.name.value)));
    }
}
