//! A short job file into the Kubernetes objects of a distributed training job, and their life through the API.
//!
//! In: job.yaml and, where it is there, the cluster's blueprint. Out: objects that are the same for the same input, or every problem
//! at once. What talks to the API is in `life/`; nothing here knows AWS.

mod decide;
mod environment;
mod file;
mod framework;
pub mod life;
pub mod lint;
mod names;
mod objects;
mod placement;
mod rules;
mod scripts;
mod training;
pub mod values;
mod workload;

use std::path::Path;

pub use decide::{HELPER_IMAGE, decide};
pub use framework::Framework;
pub use objects::objects_of;
pub use placement::tolerations_of_all_pools;
pub use scripts::Scripts;
pub use training::{Data, DataSource, Scale, Split, Storage, TrainingJob};
pub use workload::{RunId, Workload};

use crate::blueprint::Blueprint;
use crate::document::{Problems, ReadError, parse, read_text};

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file was read, and something in it is wrong.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

/// A good job and what its author should know about it all the same.
#[derive(Clone, Debug)]
pub struct LoadedJob {
    /// The job.
    pub job: TrainingJob,
    /// Warnings; never errors.
    pub warnings: Problems,
}

/// Reads and validates the job file at `path`; with a blueprint also whether that cluster can run it.
pub fn load(path: &Path, blueprint: Option<&Blueprint>) -> Result<LoadedJob, JobFileError> {
    Ok(validate(path, &read_text(path)?, blueprint)?)
}

/// Validates the text of a job file; `path` is only used to name it.
pub fn validate(path: &Path, text: &str, blueprint: Option<&Blueprint>) -> Result<LoadedJob, Problems> {
    let file: file::JobFile = parse(path, text)?;
    let mut problems = Problems::new(path);
    let job = rules::build_job(&file, &mut problems);
    if let (Some(job), Some(blueprint)) = (&job, blueprint) {
        placement::check_placement(job, blueprint, &mut problems);
    }
    match job {
        Some(job) if problems.allow_use() => Ok(LoadedJob { job, warnings: problems }),
        _ => Err(problems),
    }
}

/// The JSON Schema of a job file.
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(file::JobFile)
}
