//! A training job as everything behind the file sees it: validated, complete, every default filled in.

use std::collections::BTreeMap;

use super::file::SplitFile;
use super::framework::Framework;
use super::values::{
    ClaimName, ClaimPath, EnvironmentName, ImageReference, JobName, Namespace, Processors, QueueName, Size,
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
    /// How many processes of which kind.
    pub scale: Scale,
    /// GPUs of each replica.
    pub gpus: At<u32>,
    /// Processors of each replica.
    pub processors: Processors,
    /// The most memory of each replica.
    pub memory: Option<Size>,
    /// The pool it runs on.
    pub pool: Option<At<PoolName>>,
    /// The training program; empty where the framework brings its own.
    pub command: Vec<String>,
    /// More environment variables.
    pub environment: BTreeMap<EnvironmentName, String>,
    /// Where it reads and writes.
    pub storage: Storage,
    /// Data to import first.
    pub data: Option<Data>,
    /// How often each replica may be started again.
    pub retries: u32,
    /// The size of /dev/shm.
    pub shared_memory: Size,
    /// How many seconds it may take.
    pub deadline_seconds: Option<u64>,
    /// The Kueue queue.
    pub queue: Option<QueueName>,
    /// Whether there is a TensorBoard.
    pub tensorboard: bool,
    /// Whether the image's own start script is run.
    pub seed_image: bool,
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
}

impl TrainingJob {
    /// The memory each replica asks for: what it may use, or room for shared memory and the program.
    #[must_use]
    pub(crate) fn requested_memory(&self) -> Size {
        self.memory.clone().unwrap_or_else(|| self.shared_memory.plus_gibibytes(1))
    }
}
