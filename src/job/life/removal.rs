//! Deletes a job's objects. Its files stay.

use serde_json::Value;

use super::attempt_records::READER_ROLE;
use super::error::JobError;
use crate::job::names::{JOB_LABEL, ROLE_LABEL, TENSORBOARD_ROLE};
use crate::job::objects::objects_of;
use crate::job::run::Run;
use crate::kube::{ApiServer, ObjectName, Pod};
use crate::waiting::{Pace, Waiting};
use crate::well_known::JOB_SET_LABEL;

/// The kinds of objects of a job, in the order of deletion: what creates pods first.
const KINDS: [&str; 9] =
    ["JobSet", "Job", "Deployment", "Pod", "Service", "ConfigMap", "RoleBinding", "Role", "ServiceAccount"];

/// Every object of a job that exists.
pub(crate) async fn removal_of(
    api: &ApiServer,
    namespace: &str,
    name: &str,
) -> Result<Vec<ObjectName>, JobError> {
    let mut objects = Vec::new();
    for kind in KINDS {
        let found = api.objects(kind, Some(namespace), &format!("{JOB_LABEL}={name}")).await?;
        // Jobs of a JobSet are deleted with it.
        let is_own = |object: &&Value| object["metadata"]["labels"][JOB_SET_LABEL].is_null() || kind == "Pod";
        objects.extend(found.iter().filter(is_own).map(|object| {
            // Lists leave the kind of their items out.
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            ObjectName::new(kind, namespace, name)
        }));
    }
    Ok(objects)
}

/// Refuses to start beside pods of an earlier job that have not terminated: two processes must not have the same index.
pub(super) async fn expect_no_pods(api: &ApiServer, namespace: &str, name: &str) -> Result<(), JobError> {
    // Pods that read or show results do not matter.
    let selector = format!("{JOB_LABEL}={name},{ROLE_LABEL}!={READER_ROLE},{ROLE_LABEL}!={TENSORBOARD_ROLE}");
    let pods = api.pods(Some(namespace), &selector).await?;
    let runs = |pod: &&Pod| !pod.phase.is_over();
    let left: Vec<String> = pods.iter().filter(runs).map(|pod| format!("Pod {}", pod.name)).collect();
    if left.is_empty() { Ok(()) } else { Err(JobError::NotDeletedYet { name: name.to_owned(), left }) }
}

/// Deletes what is left of an earlier job and is not part of the new one, without waiting.
pub(super) async fn remove_leftovers(api: &ApiServer, run: &Run) -> Result<(), JobError> {
    let wanted: Vec<ObjectName> = objects_of(run).iter().map(ObjectName::of).collect();
    for object in removal_of(api, &run.workload.namespace, &run.workload.name).await? {
        // Pods are deleted with what created them.
        if object.kind != "Pod" && !wanted.contains(&object) {
            api.delete_object(&object).await?;
        }
    }
    Ok(())
}

/// Refuses to attach to a job that is being deleted: it ends with its last pod.
pub(super) async fn expect_not_leaving(api: &ApiServer, namespace: &str, name: &str) -> Result<(), JobError> {
    let set = api.object(&ObjectName::new("JobSet", namespace, name)).await?;
    if set.is_none_or(|set| set["metadata"]["deletionTimestamp"].is_null()) {
        return Ok(());
    }
    expect_no_pods(api, namespace, name).await?;
    Err(JobError::NotDeletedYet { name: name.to_owned(), left: vec![format!("JobSet {name}")] })
}

/// Deletes a job and waits for its pods to terminate. Reports the pods that are left whenever their number changes.
pub(crate) async fn remove_job(
    api: &ApiServer,
    namespace: &str,
    name: &str,
    waiting: &Waiting,
    tell: &(dyn Fn(&[ObjectName]) + Sync),
) -> Result<(), JobError> {
    let mut pace = Pace::of_moment();
    let mut told = 0;
    let mut deleted: Vec<ObjectName> = Vec::new();
    loop {
        let left = removal_of(api, namespace, name).await?;
        if left.is_empty() {
            return Ok(());
        }
        let (pods, owners): (Vec<ObjectName>, Vec<ObjectName>) =
            left.iter().cloned().partition(|object| object.kind == "Pod");
        // A JobSet that was deleted stays until its pods have terminated.
        let are_deleted = owners.iter().all(|owner| deleted.contains(owner));
        if are_deleted && !pods.is_empty() && pods.len() != told {
            tell(&pods);
            told = pods.len();
        }
        // Pods are deleted with what created them.
        let next = if owners.is_empty() { pods } else { owners };
        for object in next {
            if object.kind == "Pod" || !deleted.contains(&object) {
                api.delete_object(&object).await?;
                deleted.push(object);
            }
        }
        let go_on = waiting.pause(pace.next_pause()).await;
        go_on.map_err(|_| JobError::NotDeletedYet {
            name: name.to_owned(),
            left: left.iter().map(ToString::to_string).collect(),
        })?;
    }
}
