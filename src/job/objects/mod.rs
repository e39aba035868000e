//! A run of a job into Kubernetes objects: the same for the same run, in the order they are applied.

mod data;
mod job;
mod job_set;
mod metadata;
mod peers;
mod pod;
mod storage;
mod template;
mod tensorboard;
mod training;

use serde_json::Value;

pub(crate) use self::data::IMPORT_RETRIES;
pub(crate) use storage::FileSystemClaim;

use super::run::Run;

/// Every object of a job. The JobSet comes last, when what it needs exists.
#[must_use]
pub(crate) fn objects_of(run: &Run) -> Vec<Value> {
    let workload = &run.workload;
    let mut objects = storage::volume_pair(workload);
    objects.extend(peers::scripts_config_map(workload));
    objects.extend(peers::peer_listing_rights(workload));
    objects.extend(data::data_job(run));
    objects.extend(tensorboard::tensorboard(run));
    objects.push(job_set::job_set(run));
    objects
}
