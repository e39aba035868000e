//! The format of a job file, exactly as written: texts and numbers with their places, nothing judged yet.
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
pub struct JobFile {
    /// The job's name: that of its objects and, unless told otherwise, of its directory on the claim.
    pub name: At<String>,
    /// The namespace it runs in.
    #[serde(default = "default_namespace")]
    pub namespace: At<String>,
    /// Whose environment contract its processes follow.
    pub framework: At<Framework>,
    /// The image of its replicas.
    pub image: At<String>,
    /// The image of its parameter servers, if it is another.
    #[serde(default)]
    pub ps_image: Option<At<String>>,
    /// How many processes train, all alike.
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
    /// Processors that each replica asks for.
    #[serde(default = "default_cpu")]
    pub cpu: At<String>,
    /// The most memory each replica may use, shared memory included; without it there is no limit.
    #[serde(default)]
    pub memory: Option<At<String>>,
    /// The pool of machines it runs on; any that fits if not given.
    #[serde(default)]
    pub pool: Option<At<String>>,
    /// The training program and its arguments; the framework's launcher is put in front.
    #[serde(default)]
    pub command: Option<At<Vec<At<String>>>>,
    /// More environment variables.
    #[serde(default)]
    pub env: BTreeMap<At<String>, At<String>>,
    /// Where it reads and writes.
    #[serde(default)]
    pub storage: StorageFile,
    /// Data to bring there before training.
    #[serde(default)]
    pub data: Option<At<DataFile>>,
    /// How often each replica may be started again.
    #[serde(default = "default_retries")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: At<u32>,
    /// The size of /dev/shm, which data loaders pass their batches through.
    #[serde(default = "default_shared_memory")]
    pub shared_memory: At<String>,
    /// How long it may take in all, as 90m, 24h or 7d.
    #[serde(default)]
    pub deadline: Option<At<String>>,
    /// The Kueue queue it waits in.
    #[serde(default)]
    pub queue: Option<At<String>>,
    /// Whether a TensorBoard watches its output.
    #[serde(default)]
    pub tensorboard: bool,
    /// Whether the image is one of the first generation, whose own start script is run and may ask the API for its peers.
    #[serde(default)]
    pub seed_image: At<bool>,
}

/// Where a job reads and writes.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StorageFile {
    /// The claim, in the job's namespace.
    pub claim: At<String>,
    /// The job's directory there; its name if not given. Output goes to `output/` below it.
    pub path: Option<At<String>>,
}

impl Default for StorageFile {
    fn default() -> Self {
        Self { claim: At::implied("efs"), path: None }
    }
}

/// Data to bring to the claim before training.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataFile {
    /// An archive on the claim, by its path there.
    #[serde(default)]
    pub archive: Option<At<String>>,
    /// An archive on the web.
    #[serde(default)]
    pub url: Option<At<String>>,
    /// How it is divided among the replicas.
    #[serde(default)]
    pub split: At<SplitFile>,
    /// The image that imports it, if the usual one cannot be fetched; it needs python3.
    #[serde(default)]
    pub image: Option<At<String>>,
}

/// How data is divided among the replicas.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitFile {
    /// Files whose names begin with `train` are cut at line ends, a piece for each; every other file goes to all.
    Lines,
    /// Files are dealt out in the order of their names.
    Files,
    /// Everybody reads everything.
    #[default]
    None,
}

fn default_namespace() -> At<String> {
    At::implied("default")
}

/// Enough to be placed anywhere; GPU machines are full when their GPUs are.
fn default_cpu() -> At<String> {
    At::implied("1")
}

/// A spot machine that is taken away costs none of these.
fn default_retries() -> At<u32> {
    At::implied(3_u32)
}

/// The 64 MiB that containers get otherwise end PyTorch's data loaders with a bus error.
fn default_shared_memory() -> At<String> {
    At::implied("2Gi")
}
