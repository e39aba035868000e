//! Everything about a job's objects that is decided before any of them is written down.

use std::collections::BTreeMap;

use serde_json::Value;

use super::framework::Framework;
use super::values::{Processors, Size};

/// Which run of a job something belongs to: two runs never take each other's marks for their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId(String);

impl RunId {
    /// The run with this name, which only letters, digits and `-` make it into.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let clean: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
        Self(format!("r-{}", clean.trim_matches('-').to_ascii_lowercase()))
    }

    /// The run of a job that is there, as its label says it.
    #[must_use]
    pub fn of_label(label: &str) -> Self {
        Self(label.to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: VariableSource,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableSource {
    /// The file; `$(NAME)` in it is put in by the kubelet.
    Text(String),
    /// The pod itself.
    Field(&'static str),
}

/// One kind of process of a job: a Kubernetes Job of numbered pods.
#[derive(Clone, Debug)]
pub struct RolePlan {
    /// What it is called in labels.
    pub role: &'static str,
    /// Its Kubernetes Job.
    pub job: String,
    /// How many pods.
    pub replicas: u32,
    /// Their image.
    pub image: String,
    /// What they run.
    pub command: Vec<String>,
    /// What they are told.
    pub variables: Vec<Variable>,
    /// What they listen on.
    pub ports: Vec<(String, u16)>,
    /// GPUs of each.
    pub gpus: u32,
    /// Taints they stand.
    pub tolerations: Vec<Value>,
}

/// The import of data.
#[derive(Clone, Debug)]
pub struct DataPlan {
    /// The image that imports.
    pub image: String,
    /// The file that says it is done.
    pub stamp: String,
    /// What the import is told.
    pub variables: Vec<Variable>,
}

/// A volume and claim of the cluster's file system for one more namespace.
#[derive(Clone, Debug)]
pub struct VolumePair {
    /// The volume.
    pub volume: String,
    /// The NFS server.
    pub server: String,
}

/// A job, decided.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its framework.
    pub framework: Framework,
    /// Which run it is.
    pub run: RunId,
    /// What it was rendered from.
    pub digest: String,
    /// Its processes.
    pub roles: Vec<RolePlan>,
    /// The scripts its pods run, by file name.
    pub scripts: BTreeMap<&'static str, String>,
    /// The claim.
    pub claim: String,
    /// Where pods see it.
    pub mount_path: &'static str,
    /// The job's directory on the claim.
    pub path: String,
    /// Data to import.
    pub data: Option<DataPlan>,
    /// The volume to make for its namespace.
    pub volume: Option<VolumePair>,
    /// The image of its TensorBoard.
    pub tensorboard: Option<String>,
    /// Labels its nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that pods stand which help it and need no GPU: a cluster may have nothing but GPU machines, or only the pool that
    /// the job names.
    pub helper_tolerations: Vec<Value>,
    /// Processors of each pod.
    pub processors: Processors,
    /// Memory each pod asks for.
    pub requested_memory: Size,
    /// The most memory of each pod.
    pub memory_limit: Option<Size>,
    /// The size of /dev/shm.
    pub shared_memory: Size,
    /// How often each replica may be started again.
    pub retries: u32,
    /// How many seconds it may take.
    pub deadline_seconds: Option<u64>,
    /// The Kueue queue.
    pub queue: Option<String>,
    /// Whether its pods may ask the API for each other.
    pub asks_for_peers: bool,
}

impl Workload {
    /// Whether its pods talk to each other.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        !self.asks_for_peers && self.roles.iter().map(|role| role.replicas).sum::<u32>() > 1
    }
}
