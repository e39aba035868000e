//! The environment contract of each framework: which variables its processes read, and their values.

use serde_json::json;

use super::command::{is_python, program_name};
use super::file::JobFile;
use super::framework::Framework;
use super::names::{SCRATCH_DIRECTORY, group_host_name, pod_host_name, role_job_name, roles_of_scale};
use super::training::{Devices, Scale, Split, TrainingJob};
use super::workload::Variable;
use crate::document::{Fault, Problems};

/// The Job controller appends its own variable last, where earlier ones could not refer to it.
pub(super) const INDEX: &str = "JOB_COMPLETION_INDEX";
pub(super) const INDEX_FIELD: &str = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
const OUR_PREFIX: &str = "INFRA_";
/// Variables of the launchers that a user may set: how long they wait, how large a log may be, and how many restarts there may be.
const SETTINGS: [&str; 5] = ["INFRA_PEER_TIMEOUT", "INFRA_HOLD", "INFRA_LAST_WAIT", LOG_LIMIT, MOST_RESTARTS];
/// How many restarts there may be, of whatever kind.
pub(super) const MOST_RESTARTS: &str = "INFRA_MOST_RESTARTS";
const LOG_LIMIT: &str = "INFRA_LOG_LIMIT";
/// Digits that fit into the numbers of every shell, also when they are added to a time.
const MOST_DIGITS: usize = 15;
/// Paddle's parameter servers listen from this port on.
const PADDLE_PORT: u16 = 7164;
const PADDLE_MASTER_PORT: u16 = 36767;
const SEED_PORT: u16 = 8080;
const TENSORFLOW_PORT: u16 = 2222;
const TORCH_PORT: u16 = 29500;
/// Whether libfabric uses huge pages.
const HUGE_PAGES: &str = "FI_EFA_USE_HUGE_PAGE";
/// Where paddle-v0 finds its configuration, below the job's directory.
const TRAIN_CONFIG_DIRECTORY: &str = "TRAIN_CONFIG_DIR";
/// Put together by the kubelet: one attempt of one run.
const ATTEMPT_OF_RUN: &str = "$(INFRA_RUN)-$(INFRA_ATTEMPT)";

/// Variables of a contract that follow from the rest of the file.
fn fixed_names(framework: Framework) -> &'static [&'static str] {
    match framework {
        Framework::PaddleV0 => {
            &["JOB_NAME", "JOB_PATH", "JOB_NAMESPACE", "CONF_PADDLE_GRADIENT_NUM", "POD_IP"]
        }
        Framework::Paddle => {
            &["POD_IP", "PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_TRAINER_ID", "PADDLE_JOB_ID", "PADDLE_RANK"]
        }
        Framework::TensorflowSeed => &["POD_NAME", "CLUSTER_CONFIG"],
        Framework::Tensorflow => &["TF_CONFIG"],
        Framework::Pytorch => &[
            "PET_NNODES",
            "PET_NODE_RANK",
            "PET_MASTER_ADDR",
            "PET_MASTER_PORT",
            "PET_RDZV_ID",
            "MASTER_ADDR",
            "MASTER_PORT",
            "RANK",
            "WORLD_SIZE",
        ],
        Framework::Program => &[],
    }
}

/// Whether the user may set a variable.
pub(super) fn check_name_is_free(framework: Framework, name: &str) -> Result<(), Fault> {
    let is_ours = name == INDEX || (name.starts_with(OUR_PREFIX) && !SETTINGS.contains(&name));
    if is_ours || fixed_names(framework).contains(&name) {
        return Err(
            Fault::new(format!("{name} follows from the rest of the file")).help("remove it from env")
        );
    }
    Ok(())
}

/// What launchers count with: a number that is none would end each of them in the middle.
pub(super) fn check_setting(name: &str, value: &str) -> Result<(), Fault> {
    let is_plain = value == "0" || value.starts_with(|first: char| ('1'..='9').contains(&first));
    let is_number = is_plain && value.len() <= MOST_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
    if !SETTINGS.contains(&name) || is_number {
        return Ok(());
    }
    let help =
        if name == LOG_LIMIT { "a number of bytes, as \"67108864\"" } else { "a whole number, as \"600\"" };
    Err(Fault::new(format!("{name} is '{value}', which is not a number that launchers can count with"))
        .help(format!("write {help}")))
}

/// The numbers that decide which ports a paddle-v0 pod listens on.
pub(super) fn check_paddle_ports(file: &JobFile, problems: &mut Problems) {
    for (key, value) in &file.env {
        let most = match key.value.as_str() {
            "CONF_PADDLE_PORT" => 65000,
            "CONF_PADDLE_PORTS_NUM" | "CONF_PADDLE_PORTS_NUM_SPARSE" => 64,
            "TRAINER_COUNT" => 1024,
            _ => continue,
        };
        if !value.value.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number)) {
            let fault = Fault::new(format!(
                "{} is '{}', but must be a number from 1 to {most}",
                key.value, value.value
            ));
            problems.add(value.position, fault);
        }
    }
}

/// Every variable of a role's containers that no run changes, the user's own last unless they replace a default.
pub(super) fn variables_of(job: &TrainingJob, role: &str, replicas: u32, devices: Devices) -> Vec<Variable> {
    let mut variables = group_variables(job, role, replicas);
    variables.extend(match job.framework {
        Framework::PaddleV0 => paddle_v0(job),
        Framework::Paddle => paddle(job),
        Framework::TensorflowSeed => tensorflow_seed(job, role),
        Framework::Tensorflow => tensorflow(job, role),
        Framework::Pytorch => pytorch(job),
        Framework::Program => Vec::new(),
    });
    if devices.gpus == 0 {
        variables.push(no_gpus());
    } else if job.scale.pods() > 1 {
        variables.extend(nccl_sockets());
    }
    if devices.efa > 0 {
        variables.extend(efa_settings());
    }
    if let Some(data) = &job.data {
        variables.push(Variable::text("INFRA_DATA_DIR", data_directory(&root_of(job), data.split)));
    }
    if let Some(directory) = job.code_mount() {
        variables.push(Variable::text("INFRA_CODE_DIR", directory));
        // Python would try to write beside every module, and fail.
        variables.push(Variable::text("PYTHONDONTWRITEBYTECODE", "1"));
    }
    if devices.scratch_gib > 0 {
        variables.push(Variable::text("INFRA_SCRATCH_DIR", SCRATCH_DIRECTORY));
    }
    for (name, value) in &job.environment {
        let own = Variable::text(name.as_str(), value.clone());
        match variables.iter_mut().find(|variable| variable.name == own.name) {
            Some(default) => *default = own,
            None => variables.push(own),
        }
    }
    variables
}

/// What every launcher knows of its group.
fn group_variables(job: &TrainingJob, role: &str, replicas: u32) -> Vec<Variable> {
    let success = if job.framework.is_complete_with_first() { "first" } else { "all" };
    vec![
        Variable::text("INFRA_ROLE", role),
        Variable::text("INFRA_REPLICAS", replicas.to_string()),
        Variable::text("INFRA_GROUP_SIZE", job.scale.pods().to_string()),
        Variable::text("INFRA_SUCCESS", success),
        Variable::text("INFRA_GRACE", job.grace_seconds.value.to_string()),
    ]
}

/// NCCL chooses its settings for AWS by the vendor of the network card, which a pod does not see. With one socket per connection EC2
/// would limit each to 5 Gbit/s.
pub(super) fn nccl_sockets() -> [Variable; 2] {
    [Variable::text("NCCL_SOCKET_NTHREADS", "2"), Variable::text("NCCL_NSOCKS_PERTHREAD", "8")]
}

/// libfabric copies its huge pages for every process that is forked, as loaders of data are, until there are none left and the fork fails.
pub(super) fn efa_settings() -> [Variable; 2] {
    [Variable::text("FI_PROVIDER", "efa"), Variable::text(HUGE_PAGES, "0")]
}

/// Whether the job wants libfabric to use huge pages all the same.
pub(super) fn wants_huge_pages(job: &TrainingJob) -> bool {
    job.environment.iter().any(|(name, value)| name.as_str() == HUGE_PAGES && value != "0")
}

/// Images made for GPUs ask for all of a machine's; a pod that was given none would use those of others.
pub(super) fn no_gpus() -> Variable {
    Variable::text("NVIDIA_VISIBLE_DEVICES", "void")
}

/// The job's directory as its pods see it.
pub(super) fn root_of(job: &TrainingJob) -> String {
    format!("{}/{}", job.framework.mount_path(), job.storage.path)
}

fn data_directory(root: &str, split: Split) -> String {
    match split {
        Split::None => format!("{root}/data"),
        Split::Lines | Split::Files => format!("{root}/$({INDEX})/data"),
    }
}

/// The ports a role's pods listen on, each with its name.
pub(super) fn ports_of(job: &TrainingJob) -> Vec<(String, u16)> {
    let set = |name: &str, default: u16| -> u16 {
        let own = job.environment.iter().find(|(key, _)| key.as_str() == name);
        own.and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
    };
    match job.framework {
        Framework::PaddleV0 => {
            let first = set("CONF_PADDLE_PORT", PADDLE_PORT);
            let dense = set("CONF_PADDLE_PORTS_NUM", 2);
            let sparse = set("CONF_PADDLE_PORTS_NUM_SPARSE", 2);
            let dense_ports = (0..dense).map(|n| (format!("dense-{n}"), first + n));
            dense_ports.chain((0..sparse).map(|n| (format!("sparse-{n}"), first + dense + n))).collect()
        }
        Framework::Paddle => vec![("master".to_owned(), PADDLE_MASTER_PORT)],
        Framework::TensorflowSeed => vec![("grpc-server".to_owned(), SEED_PORT)],
        Framework::Tensorflow => vec![("grpc".to_owned(), TENSORFLOW_PORT)],
        Framework::Pytorch => vec![("rendezvous".to_owned(), TORCH_PORT)],
        Framework::Program => Vec::new(),
    }
}

/// Where all pods of a role are found in the cluster's DNS, in the order of their numbers; a single pod finds itself without.
fn peer_hosts(job: &TrainingJob, role: &str, count: u32) -> Vec<String> {
    if job.scale.pods() == 1 {
        return vec!["127.0.0.1".to_owned()];
    }
    let host = |index| {
        let host = pod_host_name(job.name.as_str(), role, index);
        format!("{host}.{}", group_host_name(job.name.as_str(), job.namespace.value.as_str()))
    };
    (0..count).map(host).collect()
}

/// Where the pods that train are found.
fn trainer_hosts(job: &TrainingJob) -> Vec<String> {
    peer_hosts(job, job.framework.replica_role(), job.scale.trainers())
}

/// Where all pods of the job are found.
fn all_hosts(job: &TrainingJob) -> String {
    let roles = roles_of_scale(job.framework, &job.scale).into_iter();
    roles.flat_map(|(role, count)| peer_hosts(job, role, count)).collect::<Vec<String>>().join(",")
}

/// Where the first replica is found.
fn first_host(job: &TrainingJob) -> String {
    trainer_hosts(job).into_iter().next().unwrap_or_default()
}

/// The directory of a paddle-v0 job that holds its configuration, and no data.
pub(super) fn train_config_directory(job: &TrainingJob) -> Option<&str> {
    let own = job.environment.iter().find(|(name, _)| name.as_str() == TRAIN_CONFIG_DIRECTORY);
    (job.framework == Framework::PaddleV0).then(|| own.map_or("config", |(_, directory)| directory))
}

fn paddle_v0(job: &TrainingJob) -> Vec<Variable> {
    let mount = job.framework.mount_path();
    // A seed image lists the pods of a Job that has the name of its directory, so that directory is mounted under the Job's name.
    let (job_path, directory) = if job.seed_image {
        (mount.to_owned(), role_job_name(job.name.as_str(), job.framework.replica_role()))
    } else {
        let (above, last) = job.storage.path.split_last();
        (format!("{mount}/{above}"), last.to_owned())
    };
    let trainers = job.scale.trainers();
    let peers = trainer_hosts(job);
    let mut variables = vec![
        Variable::text("JOB_NAME", directory),
        Variable::text("JOB_PATH", job_path.trim_end_matches('/')),
        Variable::field("JOB_NAMESPACE", "metadata.namespace"),
        Variable::field("POD_IP", "status.podIP"),
        Variable::text(TRAIN_CONFIG_DIRECTORY, "config"),
        Variable::text("CONF_PADDLE_NIC", "eth0"),
        Variable::text("CONF_PADDLE_PORT", PADDLE_PORT.to_string()),
        Variable::text("CONF_PADDLE_PORTS_NUM", "2"),
        Variable::text("CONF_PADDLE_PORTS_NUM_SPARSE", "2"),
        Variable::text("CONF_PADDLE_GRADIENT_NUM", trainers.to_string()),
        Variable::text("TRAINER_COUNT", job.gpus.value.max(1).to_string()),
        Variable::text("USE_GPU", if job.gpus.value > 0 { "1" } else { "0" }),
    ];
    if !job.seed_image {
        let arguments =
            "--config=trainer_config.py --num_passes=10 --saving_period=1 --log_period=50 --dot_period=10";
        variables.push(Variable::text("TRAIN_ARGS", arguments));
        variables.push(Variable::text("INFRA_PEERS", peers.join(",")));
    }
    variables
}

fn paddle(job: &TrainingJob) -> Vec<Variable> {
    vec![
        Variable::field("POD_IP", "status.podIP"),
        Variable::text("INFRA_MASTER_HOST", first_host(job)),
        Variable::text("INFRA_MASTER_PORT", PADDLE_MASTER_PORT.to_string()),
        // Processes of an earlier attempt must not be taken for peers.
        Variable::text("PADDLE_JOB_ID", ATTEMPT_OF_RUN),
        Variable::text("PADDLE_NNODES", job.scale.trainers().to_string()),
        Variable::text("PADDLE_NPROC_PER_NODE", job.gpus.value.max(1).to_string()),
        Variable::text("PADDLE_TRAINER_ID", format!("$({INDEX})")),
        Variable::text("PADDLE_LOG_DIR", format!("$(INFRA_OUTPUT_DIR)/node_$({INDEX})")),
        Variable::text("PYTHONUNBUFFERED", "1"),
    ]
}

/// The cluster as both generations of TensorFlow describe it: JSON that is also a Python literal.
fn tensorflow_cluster(job: &TrainingJob, port: u16) -> serde_json::Value {
    let mut cluster = serde_json::Map::new();
    for (role, count) in roles_of_scale(job.framework, &job.scale) {
        let addresses: Vec<String> =
            peer_hosts(job, role, count).into_iter().map(|host| format!("{host}:{port}")).collect();
        cluster.insert(role.to_owned(), json!(addresses));
    }
    serde_json::Value::Object(cluster)
}

fn tensorflow_seed(job: &TrainingJob, role: &str) -> Vec<Variable> {
    vec![
        // Programs of that time split it at the first two dashes: role, index, rest.
        Variable::text("POD_NAME", format!("{role}-$({INDEX})-{}", job.name)),
        Variable::text("CLUSTER_CONFIG", tensorflow_cluster(job, SEED_PORT).to_string()),
        Variable::text("INFRA_PEERS", all_hosts(job)),
    ]
}

fn tensorflow(job: &TrainingJob, role: &str) -> Vec<Variable> {
    let mut cluster = tensorflow_cluster(job, TENSORFLOW_PORT);
    let has_servers = matches!(job.scale, Scale::Servers { .. });
    if has_servers {
        name_the_chief(&mut cluster);
    }
    let told = if has_servers && role == "worker" {
        // Which of them is the chief depends on the number, so the launcher says it.
        Variable::text("INFRA_TF_CLUSTER", cluster.to_string())
    } else {
        // The index is put in by the kubelet: a number, not a text.
        let task = format!(r#"{{"type":"{role}","index":$({INDEX})}}"#);
        Variable::text("TF_CONFIG", format!(r#"{{"cluster":{cluster},"task":{task}}}"#))
    };
    let peers = Variable::text("INFRA_PEERS", all_hosts(job));
    vec![told, peers, Variable::text("PYTHONUNBUFFERED", "1")]
}

/// The first worker is the chief: Estimators refuse parameter servers without a chief, and ParameterServerStrategy waits for one.
fn name_the_chief(cluster: &mut serde_json::Value) {
    let workers = cluster["worker"].as_array().cloned().unwrap_or_default();
    if let Some((chief, others)) = workers.split_first() {
        let mut led = json!({"chief": [chief], "ps": cluster["ps"]});
        if !others.is_empty() {
            led["worker"] = json!(others);
        }
        *cluster = led;
    }
}

fn pytorch(job: &TrainingJob) -> Vec<Variable> {
    let (master, port) = (first_host(job), TORCH_PORT.to_string());
    let index = format!("$({INDEX})");
    let replicas = job.scale.trainers().to_string();
    let mut variables = vec![
        Variable::text("PET_NNODES", replicas.clone()),
        Variable::text("PET_NPROC_PER_NODE", job.gpus.value.max(1).to_string()),
        Variable::text("PET_NODE_RANK", index.clone()),
        Variable::text("PET_MASTER_ADDR", master.clone()),
        Variable::text("PET_MASTER_PORT", port.clone()),
        // Processes of an earlier attempt must not be taken for peers.
        Variable::text("PET_RDZV_ID", ATTEMPT_OF_RUN),
        // A restart of one node alone would wait for the others for ever; the whole group is restarted instead.
        Variable::text("PET_MAX_RESTARTS", "0"),
        // Versions before 2.4 look every five seconds, and which pod failed first would be chance.
        Variable::text("PET_MONITOR_INTERVAL", "0.1"),
        Variable::text("INFRA_PEERS", trainer_hosts(job).join(",")),
        Variable::text("PYTHONUNBUFFERED", "1"),
        Variable::text("NCCL_DEBUG", "WARN"),
    ];
    let program = job.command.first().map(String::as_str).unwrap_or_default();
    if !is_python(program) && program_name(program) != "torchrun" {
        // A program of its own may do without torchrun: one process a pod.
        variables.extend([
            Variable::text("MASTER_ADDR", master),
            Variable::text("MASTER_PORT", port),
            Variable::text("RANK", index),
            Variable::text("WORLD_SIZE", replicas),
        ]);
    }
    variables
}
