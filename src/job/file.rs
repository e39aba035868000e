//! The format of a job file, exactly as written: texts and numbers with their positions, not yet checked.
//!
//! The documentation of each field is what `infra job schema` shows to editors.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::framework::Framework;
use crate::document::At;

/// A distributed training job, described in one file.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobFile {
    /// The job's name: that of its objects and, unless `storage.path` says otherwise, of its directory on the claim.
    pub name: At<String>,
    /// The namespace it runs in, which must exist.
    #[serde(default = "default_namespace")]
    pub namespace: At<String>,
    /// Which environment variables the processes get, and how they are started.
    pub framework: At<Framework>,
    /// The image of the replicas.
    pub image: At<String>,
    /// The image of the parameter servers, if it is a different one.
    #[serde(default)]
    pub ps_image: Option<At<String>>,
    /// Secrets of the namespace with logins to registries, for images that not everybody may pull.
    #[serde(default)]
    pub image_pull_secrets: Vec<At<String>>,
    /// How many processes train, if all have the same role.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: Option<At<u32>>,
    /// How many parameter servers; goes with `workers`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub ps: Option<At<u32>>,
    /// How many workers; goes with `ps`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<At<u32>>,
    /// GPUs of each replica or worker.
    #[serde(default)]
    #[schemars(range(min = 0, max = 16))]
    pub gpus: At<u32>,
    /// CPUs that each replica requests.
    #[serde(default = "default_cpu")]
    pub cpu: At<String>,
    /// The memory limit of each replica, shared memory included; the replica's share of the machine if not given.
    #[serde(default)]
    pub memory: Option<At<String>>,
    /// The pool of machines it runs on; any that fits if not given.
    #[serde(default)]
    pub pool: Option<At<String>>,
    /// The program and its arguments; the framework's launcher is put in front.
    #[serde(default)]
    pub command: Option<At<Vec<At<String>>>>,
    /// A directory beside the job file, whose content is uploaded before the run; the program is started in it, and can only read it.
    #[serde(default)]
    pub code: Option<At<String>>,
    /// The directory that the program is started in, and that `code` is mounted at; that of the image if neither is given.
    #[serde(default)]
    pub workdir: Option<At<String>>,
    /// More environment variables.
    #[serde(default)]
    pub env: BTreeMap<At<String>, At<String>>,
    /// Secrets of the namespace, each of whose keys the processes get as a variable; `env` wins over them.
    #[serde(default)]
    pub secrets: Vec<At<String>>,
    /// Directories of the run, by the path where the program expects them.
    #[serde(default)]
    pub mounts: BTreeMap<At<String>, At<String>>,
    /// Where it reads and writes.
    #[serde(default)]
    pub storage: StorageFile,
    /// Data to import before training.
    #[serde(default)]
    pub data: Option<At<DataFile>>,
    /// How often the whole group may be restarted because of a failure. A lost machine restarts it too, and is not counted.
    #[serde(default = "default_retries")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: At<u32>,
    /// The size of /dev/shm, through which data loaders pass their batches.
    #[serde(default = "default_shared_memory")]
    pub shared_memory: At<String>,
    /// GiB of its machine's own drives that each replica or worker has at /mnt/scratch, empty at each start.
    #[serde(default, rename = "scratchGiB")]
    #[schemars(range(min = 1, max = 100_000))]
    pub scratch_gib: Option<At<u32>>,
    /// How long a process has to save its state after SIGTERM, before it is killed; at most 80s on spot machines.
    #[serde(default = "default_grace")]
    pub grace: At<String>,
    /// The time limit of the job over all attempts, such as 90m, 24h or 7d.
    #[serde(default)]
    pub deadline: Option<At<String>>,
    /// The Kueue queue it waits in.
    #[serde(default)]
    pub queue: Option<At<String>>,
    /// Whether to run a TensorBoard on its output, or what it runs on.
    #[serde(default)]
    pub tensorboard: At<TensorboardFile>,
    /// Whether the image is one of the first generation, whose own start script is run and may list its peers through the API.
    #[serde(default)]
    pub seed_image: At<bool>,
}

/// A TensorBoard: true, false, or what it runs on.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
pub(crate) enum TensorboardFile {
    /// Whether there is one.
    Wanted(bool),
    /// One with these settings.
    Settings(TensorboardSettings),
}

impl Default for TensorboardFile {
    fn default() -> Self {
        Self::Wanted(false)
    }
}

/// What a TensorBoard runs on.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TensorboardSettings {
    /// The image; it needs the program tensorboard.
    #[serde(default)]
    pub image: Option<String>,
    /// CPUs that it requests.
    #[serde(default = "default_tensorboard_cpu")]
    pub cpu: String,
    /// The memory limit.
    #[serde(default = "default_tensorboard_memory")]
    pub memory: String,
}

/// Where a job reads and writes.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct StorageFile {
    /// The claim, in the job's namespace.
    pub claim: At<String>,
    /// The job's directory on the claim; the job's name if not given. Each run has a directory of its own in `runs/` below it.
    pub path: Option<At<String>>,
}

impl Default for StorageFile {
    fn default() -> Self {
        Self { claim: At::implied("efs"), path: None }
    }
}

/// Data to import before training.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DataFile {
    /// The path of an archive on the claim.
    #[serde(default)]
    pub archive: Option<At<String>>,
    /// The URL of an archive on the web; or s3://bucket/key, an object (unpacked if it is an archive) or what is below that key.
    #[serde(default)]
    pub url: Option<At<String>>,
    /// How the data is split among the replicas.
    #[serde(default)]
    pub split: At<SplitFile>,
    /// The most that the unpacked data may take on the claim, such as 500Gi.
    #[serde(default = "default_size_limit")]
    pub size_limit: At<String>,
    /// The image that imports it, if the usual one cannot be pulled; it needs python3.
    #[serde(default)]
    pub image: Option<At<String>>,
}

/// How data is split among the replicas.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SplitFile {
    /// Files whose names begin with `train` are split at line ends, one part per replica; every other file goes to all.
    Lines,
    /// Files are distributed in the order of their names: those at the top of the archive or, if there are none, those in its directories.
    Files,
    /// Every replica reads everything.
    #[default]
    None,
}

/// More than most sets have, and what an elastic file system, which is never full, takes before someone sees the bill.
fn default_size_limit() -> At<String> {
    At::implied("1Ti")
}

fn default_namespace() -> At<String> {
    At::implied("default")
}

/// Enough to be placed anywhere; GPU machines are full when their GPUs are.
fn default_cpu() -> At<String> {
    At::implied("1")
}

/// A reclaimed spot machine costs none of these.
fn default_retries() -> At<u32> {
    At::implied(3_u32)
}

/// What a node grants its pods when it shuts down, which is what a spot notice leaves.
fn default_grace() -> At<String> {
    At::implied("80s")
}

impl Default for TensorboardSettings {
    fn default() -> Self {
        Self { image: None, cpu: default_tensorboard_cpu(), memory: default_tensorboard_memory() }
    }
}

fn default_tensorboard_cpu() -> String {
    "500m".to_owned()
}

fn default_tensorboard_memory() -> String {
    "4Gi".to_owned()
}

/// With the default of 64 MiB, PyTorch's data loaders end with a bus error.
fn default_shared_memory() -> At<String> {
    At::implied("2Gi")
}
