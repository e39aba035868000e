//! Deletes a job's objects. Its files stay.

use std::time::Duration;

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

/// What a lost machine needs beyond the grace of its pods until they are gone.
const REMOVAL_SECONDS: u64 = 300;
/// Where objects say how long their pods have between SIGTERM and SIGKILL.
const GRACE: [(&str, &str); 3] = [
    ("JobSet", "/template/spec/template/spec/terminationGracePeriodSeconds"),
    ("Job", "/spec/template/spec/terminationGracePeriodSeconds"),
    ("Pod", "/spec/terminationGracePeriodSeconds"),
];

/// How long the pods of a job may take to terminate: they have their grace, which the job file decides.
pub(crate) async fn removal_limit(
    api: &ApiServer,
    namespace: &str,
    name: &str,
) -> Result<Duration, JobError> {
    let mut longest = 0;
    for (kind, path) in GRACE {
        let found = api.objects(kind, Some(namespace), &format!("{JOB_LABEL}={name}")).await?;
        longest = found.iter().map(|object| longest_grace(object, path)).max().unwrap_or(0).max(longest);
    }
    Ok(Duration::from_secs(REMOVAL_SECONDS.saturating_add(longest)))
}

/// The grace of an object's pods; a JobSet has those of its Jobs.
fn longest_grace(object: &Value, path: &str) -> u64 {
    let seconds = |of: &Value| of.pointer(path).and_then(Value::as_u64);
    match object["spec"]["replicatedJobs"].as_array() {
        Some(jobs) => jobs.iter().filter_map(seconds).max(),
        None => seconds(object),
    }
    .unwrap_or(0)
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{GRACE, longest_grace};

    #[test]
    fn the_grace_of_every_kind_is_found() {
        let job = |seconds: u64| json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": seconds}}}});
        let set = json!({"spec": {"replicatedJobs": [{"template": job(20)}, {"template": job(900)}]}});
        let pod = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        let found = GRACE.map(|(kind, path)| match kind {
            "JobSet" => longest_grace(&set, path),
            "Job" => longest_grace(&job(600), path),
            _ => longest_grace(&pod, path),
        });
        assert_eq!(found, [900, 600, 30]);
        assert_eq!(longest_grace(&json!({"spec": {}}), GRACE[1].1), 0);
    }
}
