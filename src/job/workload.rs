//! Everything about a job's objects that is decided before any of them is written down.

use std::collections::BTreeMap;

use serde::Serialize;

use super::framework::Framework;
use super::values::{Processors, Size};
use crate::config::values::PoolName;
use crate::kube::Toleration;

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Variable {
    /// The name of the variable.
    pub name: String,
    /// Where its value comes from.
    pub source: VariableSource,
}

impl Variable {
    pub(super) fn text(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), source: VariableSource::Text(value.into()) }
    }

    pub(super) fn field(name: &str, path: &'static str) -> Self {
        Self { name: name.to_owned(), source: VariableSource::Field(path) }
    }
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum VariableSource {
    /// The file; `$(NAME)` in it is put in by the kubelet.
    Text(String),
    /// The pod itself.
    Field(&'static str),
}

/// One kind of process of a job: a replicated Job of numbered pods.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RolePlan {
    /// What it is called in labels.
    pub role: &'static str,
    /// How many pods.
    pub replicas: u32,
    /// The image.
    pub image: String,
    /// What they run.
    pub command: Vec<String>,
    /// The environment variables, without those of the run.
    pub variables: Vec<Variable>,
    /// What they listen on.
    pub ports: Vec<(String, u16)>,
    /// GPUs of each.
    pub gpus: u32,
    /// EFA adapters of each. Left out of the digest where there are none, as before there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efa: Option<u32>,
    /// MiB of huge pages of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_pages_mib: Option<u32>,
    /// GiB of its machine's own drives of each. Left out of the digest where there are none, as before there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_gib: Option<u32>,
    /// The most memory of each, where that is known.
    pub memory_limit: Option<Size>,
    /// Taints they tolerate.
    pub tolerations: Vec<Toleration>,
}

/// The code that pods find in a directory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CodePlan {
    /// The directory on the claim, named after its content.
    pub directory: String,
    /// Where pods see it.
    pub mounted_at: String,
}

/// The import of data.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DataPlan {
    /// The image that imports.
    pub image: String,
    /// The file that says it is done.
    pub stamp: String,
    /// The environment variables of the import.
    pub variables: Vec<Variable>,
    /// What is fetched from S3 before. Left out of the digest where there is nothing, as before there was any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsPlan>,
}

/// Objects of S3 that are fetched before the import. Paths are relative to the root of the claim.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ObjectsPlan {
    /// Where they are fetched to.
    pub directory: String,
    /// The file that says that they are imported.
    pub stamp: String,
    /// Directories where an earlier import has put the same files, under the same paths.
    pub placed: Vec<String>,
}

/// A TensorBoard.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TensorboardPlan {
    /// The image.
    pub image: String,
    /// Processors it requests.
    pub processors: Processors,
    /// The memory limit.
    pub memory: Size,
}

/// A volume and claim of the cluster's file system for one more namespace.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct VolumePair {
    /// The volume.
    pub volume: String,
    /// The NFS server.
    pub server: String,
}

/// A job, decided: the same for every run of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Workload {
    /// The name of the job.
    pub name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The framework of the job.
    pub framework: Framework,
    /// The processes of the job.
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
    /// The volume to create for its namespace.
    pub volume: Option<VolumePair>,
    /// The code of the run. Left out of the digest where there is none, as before there was any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodePlan>,
    /// The directory that programs are started in.
    pub workdir: Option<String>,
    /// Secrets whose keys are variables of programs. Left out of the digest where there are none, as before there were any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Secrets with logins to registries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<String>,
    /// Directories of the run, by where programs find them.
    pub mounts: BTreeMap<String, String>,
    /// Its TensorBoard.
    pub tensorboard: Option<TensorboardPlan>,
    /// The pool it runs on, if it names one.
    pub pool: Option<PoolName>,
    /// Taints that its helper pods, which need no GPU, tolerate: a cluster may have nothing but GPU machines, or only the pool that
    /// the job names.
    pub helper_tolerations: Vec<Toleration>,
    /// Processors of each pod.
    pub processors: Processors,
    /// Memory each pod asks for.
    pub requested_memory: Size,
    /// The size of /dev/shm.
    pub shared_memory: Size,
    /// How often the group may be restarted because of a failure.
    pub retries: u32,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: u64,
    /// How many seconds it may take.
    pub deadline_seconds: Option<u64>,
    /// The Kueue queue.
    pub queue: Option<String>,
    /// Whether its pods may list each other through the API.
    pub asks_for_peers: bool,
}

impl Workload {
    /// The job's directory as its pods see it.
    pub(super) fn root(&self) -> String {
        format!("{}/{}", self.mount_path, self.path)
    }

    /// The role whose pods train; the others serve it.
    #[must_use]
    pub(crate) fn training_role(&self) -> Option<&RolePlan> {
        self.roles.last()
    }
}
