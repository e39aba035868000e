//! A short job file into the Kubernetes objects of a distributed training job, and their life through the API.
//!
//! In: job.yaml and, where it is there, the cluster's blueprint. Out: objects that are the same for the same input, or every problem
//! at once. What talks to the API is in `life/`; nothing here knows AWS.

mod cluster_facts;
pub(crate) mod code;
mod command;
mod cuda_version;
pub(crate) mod data;
mod decide;
mod environment;
mod fabric;
mod file;
mod file_keys;
mod framework;
pub(crate) mod life;
pub(crate) mod lint;
mod machine;
mod memory;
mod names;
mod needed_machines;
mod objects;
mod placement;
mod rules;
mod run;
mod scripts;
mod tolerations;
mod torch_version;
mod training;
pub(crate) mod values;
mod workload;

use std::path::Path;

pub(crate) use cluster_facts::ClusterFacts;
pub(crate) use decide::{
    CLUSTER_CLAIM, CLUSTER_NAMESPACE, HELPER_IMAGE, NCCL_CHECK_IMAGE, decide, volume_name,
};
pub(crate) use fabric::tcp_notice;
pub(crate) use framework::Framework;
pub(crate) use needed_machines::{NeededMachines, needed_machines};
pub(crate) use objects::{FileSystemClaim, objects_of};
pub(crate) use run::{OUTPUT_DIRECTORY, Run, run_directory};
pub(crate) use scripts::Scripts;
pub(crate) use tolerations::tolerations_of_all_pools;
pub(crate) use training::TrainingJob;
pub(crate) use workload::Workload;

use crate::blueprint::Blueprint;
use crate::document::{self, LoadError, Loaded, Problems};

/// Reads and validates the job file at `path`; with a blueprint also whether that cluster can run it.
pub(crate) fn load(path: &Path, blueprint: Option<&Blueprint>) -> Result<Loaded<TrainingJob>, LoadError> {
    document::load(path, |file, problems| build_and_place_job(file, blueprint, problems))
}

/// Validates the text of a job file; `path` is only used to name it.
pub(crate) fn validate(
    path: &Path,
    text: &str,
    blueprint: Option<&Blueprint>,
) -> Result<Loaded<TrainingJob>, Problems> {
    document::validate(path, text, |file, problems| build_and_place_job(file, blueprint, problems))
}

fn build_and_place_job(
    file: &file::JobFile,
    blueprint: Option<&Blueprint>,
    problems: &mut Problems,
) -> Option<TrainingJob> {
    let job = rules::build_job(file, problems)?;
    if let Some(blueprint) = blueprint {
        placement::check_placement(&job, blueprint, problems);
        memory::check_memory(&job, blueprint, problems);
    }
    Some(job)
}

/// The JSON Schema of a job file.
#[must_use]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(file::JobFile)
}
