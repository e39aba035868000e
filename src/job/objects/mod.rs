//! A decided job into Kubernetes objects: the same for the same job, in the order they are applied.

mod data;
mod metadata;
mod peers;
mod pod;
mod storage;
mod tensorboard;
mod training;

use serde_json::Value;

use super::workload::Workload;

/// Every object of a job. Training comes last: what it needs is there then.
#[must_use]
pub fn objects_of(workload: &Workload) -> Vec<Value> {
    let mut objects = storage::volume_pair(workload);
    objects.extend(peers::scripts(workload));
    objects.extend(peers::service(workload));
    objects.extend(peers::rights(workload));
    objects.extend(data::data_job(workload));
    objects.extend(tensorboard::tensorboard(workload));
    objects.extend(workload.roles.iter().map(|role| training::training_job(workload, role)));
    objects
}
