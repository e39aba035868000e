//! A training job as everything behind the file sees it: validated, complete, every default filled in.

use std::collections::BTreeMap;

use super::file::SplitFile;
use super::framework::Framework;
use super::values::{
    ClaimName, ClaimPath, CodePath, ContainerPath, EnvironmentName, ImageReference, JobName, Namespace,
    Processors, QueueName, S3Source, SecretName, Size,
};
use crate::config::values::PoolName;
use crate::document::At;

pub(crate) use super::file::SplitFile as Split;

/// A whole job.
#[derive(Clone, Debug)]
pub(crate) struct TrainingJob {
    /// The name of the job.
    pub name: JobName,
    /// The namespace of the job.
    pub namespace: At<Namespace>,
    /// Whose contract it follows.
    pub framework: Framework,
    /// The image of its replicas.
    pub image: At<ImageReference>,
    /// Secrets with logins to registries.
    pub image_pull_secrets: Vec<SecretName>,
    /// How many processes of which kind.
    pub scale: Scale,
    /// GPUs of each replica.
    pub gpus: At<u32>,
    /// Processors of each replica.
    pub processors: Processors,
    /// The memory limit of each replica, where the file has one.
    pub memory: Option<Size>,
    /// The pool it runs on.
    pub pool: Option<At<PoolName>>,
    /// The program; empty where the framework brings its own.
    pub command: Vec<String>,
    /// The directory with its code, relative to that of the job file.
    pub code: Option<At<CodePath>>,
    /// The directory it is started in.
    pub workdir: Option<ContainerPath>,
    /// More environment variables.
    pub environment: BTreeMap<EnvironmentName, String>,
    /// Secrets whose keys are variables too.
    pub secrets: Vec<SecretName>,
    /// Directories of the run, by where the program finds them.
    pub mounts: BTreeMap<ContainerPath, ClaimPath>,
    /// Where it reads and writes.
    pub storage: Storage,
    /// Data to import first.
    pub data: Option<Data>,
    /// How often the group may be restarted because of a failure.
    pub retries: u32,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: At<u64>,
    /// The size of /dev/shm.
    pub shared_memory: Size,
    /// GiB of its machine's own drives that each replica has.
    pub scratch_gib: Option<At<u32>>,
    /// How many seconds it may take.
    pub deadline_seconds: Option<u64>,
    /// The Kueue queue.
    pub queue: Option<QueueName>,
    /// The TensorBoard.
    pub tensorboard: Option<Tensorboard>,
    /// Whether the image's own start script is run.
    pub seed_image: bool,
    /// A digest of each key of the file, by which runs are compared.
    pub keys: BTreeMap<String, String>,
}

/// What a TensorBoard runs on.
#[derive(Clone, Debug)]
pub(crate) struct Tensorboard {
    /// The image, if it is not the usual one.
    pub image: Option<ImageReference>,
    /// Processors it requests.
    pub processors: Processors,
    /// The memory limit.
    pub memory: Size,
}

/// How many processes of which kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// All alike.
    Replicas(u32),
    /// Parameter servers and workers.
    Servers {
        /// Parameter servers.
        servers: u32,
        /// The image.
        image: Option<ImageReference>,
        /// Workers.
        workers: u32,
    },
}

impl Scale {
    /// How many processes train: the number of shards.
    #[must_use]
    pub(crate) fn trainers(&self) -> u32 {
        match self {
            Self::Replicas(count) | Self::Servers { workers: count, .. } => *count,
        }
    }

    /// How many pods there are of all roles together.
    #[must_use]
    pub(crate) fn pods(&self) -> u32 {
        match self {
            Self::Replicas(count) => *count,
            Self::Servers { servers, workers, .. } => servers.saturating_add(*workers),
        }
    }
}

/// What a pod has of its machine besides processors and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Devices {
    /// GPUs.
    pub gpus: u32,
    /// EFA adapters, where the cluster is known.
    pub efa: u32,
    /// GiB of the machine's own drives.
    pub scratch_gib: u32,
}

/// Where a job reads and writes.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    /// The claim.
    pub claim: ClaimName,
    /// The job's directory there.
    pub path: ClaimPath,
}

/// Data to import.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// Where it is.
    pub source: DataSource,
    /// How it is divided.
    pub split: SplitFile,
    /// The most that it may take when it is unpacked.
    pub size_limit: Size,
    /// The image that imports it.
    pub image: Option<ImageReference>,
}

/// Where data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataSource {
    /// An archive on the claim.
    Archive(ClaimPath),
    /// An archive on the web.
    Url(String),
    /// An object in S3, or all objects below a prefix.
    Objects(S3Source),
}

/// Where code is mounted if the file names no directory for it.
pub(crate) const CODE_MOUNT: &str = "/mnt/code";

impl TrainingJob {
    /// The data in S3 and the most that it may have, if the job has such.
    #[must_use]
    pub(crate) fn objects(&self) -> Option<(&S3Source, &Size)> {
        let data = self.data.as_ref()?;
        match &data.source {
            DataSource::Objects(source) => Some((source, &data.size_limit)),
            DataSource::Archive(_) | DataSource::Url(_) => None,
        }
    }

    /// Where pods see the code, if there is any.
    #[must_use]
    pub(crate) fn code_mount(&self) -> Option<&str> {
        self.code.as_ref().map(|_| self.workdir.as_ref().map_or(CODE_MOUNT, ContainerPath::as_str))
    }

    /// Directories of the code that something else is mounted at, relative to the code.
    #[must_use]
    pub(crate) fn mounts_in_code(&self) -> Vec<String> {
        let Some(mount) = self.code_mount() else { return Vec::new() };
        let below = |at: &ContainerPath| Some(at.as_str().strip_prefix(mount)?.strip_prefix('/')?.to_owned());
        self.mounts.keys().filter_map(below).collect()
    }

    /// What each replica or worker has by the file; parameter servers have nothing of it.
    #[must_use]
    pub(crate) fn devices(&self) -> Devices {
        let scratch_gib = self.scratch_gib.as_ref().map_or(0, |scratch| scratch.value);
        Devices { gpus: self.gpus.value, efa: 0, scratch_gib }
    }

    /// The memory each replica asks for: what it may use, or room for shared memory and the program.
    #[must_use]
    pub(crate) fn requested_memory(&self) -> Size {
        self.memory.clone().unwrap_or_else(|| self.shared_memory.plus_gibibytes(1))
    }
}
