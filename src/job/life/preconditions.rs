//! What must be true of a live cluster before a job is sent to it.

use super::error::JobError;
use super::precondition::Precondition;
use super::room::machines;
use crate::blueprint::Blueprint;
use crate::job::names::{JOB_LABEL, MANAGER, MANAGER_LABEL};
use crate::job::objects::objects_of;
use crate::job::run::Run;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, ObjectName};

/// Checks everything that a job needs, and finds all problems at once.
pub(super) async fn check_preconditions(
    api: &ApiServer,
    run: &Run,
    blueprint: Option<&Blueprint>,
) -> Result<Vec<Precondition>, JobError> {
    let workload = &run.workload;
    let mut found = Vec::new();
    let (has_namespace, nodes, pods) = tokio::try_join!(
        Box::pin(api.has_namespace(&workload.namespace)),
        Box::pin(api.nodes()),
        Box::pin(api.pods(None, ""))
    )?;
    if has_namespace {
        let (claim, foreign) =
            tokio::try_join!(Box::pin(check_claim(api, workload)), Box::pin(foreign_objects(api, run)))?;
        found.extend(claim);
        found.extend(foreign);
    } else {
        let (namespace, create) = (&workload.namespace, "kubectl create namespace");
        found.push(Precondition::Unmet(format!(
            "there is no namespace '{namespace}' (`{create} {namespace}` creates it)"
        )));
    }
    found.extend(machines(&nodes, &pods, workload, blueprint));
    Ok(found)
}

async fn check_claim(api: &ApiServer, workload: &Workload) -> Result<Option<Precondition>, JobError> {
    let (namespace, claim) = (&workload.namespace, &workload.claim);
    let object = api.object(&ObjectName::new("PersistentVolumeClaim", namespace, claim)).await?;
    let Some(object) = object else {
        // The claim is created with the job.
        return Ok(workload
            .volume
            .is_none()
            .then(|| Precondition::Unmet(format!("there is no claim '{claim}' in namespace {namespace}"))));
    };
    let is_ours = object["metadata"]["labels"][MANAGER_LABEL] == MANAGER;
    // A claim that no controller has seen yet has no phase.
    let phase = object["status"]["phase"].as_str().unwrap_or("Pending");
    Ok(match phase {
        "Bound" => None,
        // The volume of the claim is created with the job.
        "Pending" if workload.volume.is_some() && is_ours => None,
        _ => Some(Precondition::Unmet(format!(
            "the claim '{claim}' in namespace {namespace} is {phase}, not Bound (`kubectl -n {namespace} describe pvc {claim}` says why)"
        ))),
    })
}

/// Finds objects of the same names that are foreign, or belong to another job.
async fn foreign_objects(api: &ApiServer, run: &Run) -> Result<Vec<Precondition>, JobError> {
    let workload = &run.workload;
    let mut found = Vec::new();
    for object in objects_of(run) {
        let name = ObjectName::of(&object);
        // Volumes and claims belong to no job.
        if object["metadata"]["labels"][JOB_LABEL].is_null() {
            continue;
        }
        let Some(live) = api.object(&name).await? else { continue };
        let labels = &live["metadata"]["labels"];
        if labels[MANAGER_LABEL] != MANAGER {
            found.push(Precondition::Unmet(format!(
                "there is a {name} in namespace {} that infra did not create; choose another name for the job",
                workload.namespace
            )));
        } else if labels[JOB_LABEL] != workload.name.as_str() {
            found.push(Precondition::Unmet(format!(
                "there is a {name} in namespace {} that belongs to job {}; choose another name for the job",
                workload.namespace,
                labels[JOB_LABEL].as_str().unwrap_or_default()
            )));
        }
    }
    Ok(found)
}
