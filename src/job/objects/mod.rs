//! A run of a job into Kubernetes objects: the same for the same run, in the order they are applied.

mod data;
mod job;
mod metadata;
mod peers;
mod pod;
mod storage;
mod template;
mod tensorboard;
mod training;

use serde_json::Value;

use super::run::Run;

/// Every object of a job. Training comes last, when what it needs exists.
#[must_use]
pub(crate) fn objects_of(run: &Run) -> Vec<Value> {
    let workload = &run.workload;
    let mut objects = storage::volume_pair(workload);
    objects.extend(peers::scripts(workload));
    objects.extend(peers::service(workload));
    objects.extend(peers::rights(workload));
    objects.extend(data::data_job(run));
    objects.extend(tensorboard::tensorboard(workload));
    objects.extend(workload.roles.iter().map(|role| training::training_job(run, role)));
    objects
}
