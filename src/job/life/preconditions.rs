//! What must be true of a live cluster before a job is sent to it.

use super::error::JobError;
use super::precondition::Precondition;
use super::quota::check_quotas;
use super::room::{Room, Sight, check_machines_of_roles, rooms_of_roles};
use super::secrets::check_secrets;
use crate::job::ClusterFacts;
use crate::job::memory::{NO_MEMORY_LIMIT, NO_MEMORY_LIMIT_HELP};
use crate::job::names::{JOB_LABEL, MANAGER, MANAGER_LABEL, role_job_name};
use crate::job::objects::objects_of;
use crate::job::run::Run;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, ObjectName, QueuePresence};

/// The page about queues.
const QUEUE_HELP: &str = "docs/runbooks/share-with-queues.md";

/// What was found out about a job before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// What is not as it should be.
    pub(crate) preconditions: Vec<Precondition>,
    /// The room for each role; none if the machines cannot be seen.
    pub(super) rooms: Vec<Room>,
    /// Whether the pods of all namespaces could be read.
    pub(super) sees_all: bool,
}

/// Checks everything that a job needs, and finds all problems at once.
pub(crate) async fn check_preconditions(
    api: &ApiServer,
    run: &Run,
    facts: ClusterFacts<'_>,
) -> Result<Checked, JobError> {
    let workload = &run.workload;
    let mut found = Vec::new();
    let (has_namespace, sight) = tokio::try_join!(
        Box::pin(has_namespace(api, &workload.namespace)),
        Box::pin(look_around(api, &workload.namespace))
    )?;
    if has_namespace {
        let (engine, claim, queue, secrets, quotas, foreign) = tokio::try_join!(
            Box::pin(check_engine(api, workload, facts)),
            Box::pin(check_claim(api, workload)),
            Box::pin(check_queue(api, workload)),
            Box::pin(check_secrets(api, workload)),
            Box::pin(check_quotas(api, workload)),
            Box::pin(foreign_objects(api, run))
        )?;
        let named = engine.into_iter().chain(claim).chain(queue);
        found.extend(named.chain(secrets).chain(quotas).chain(foreign));
    } else {
        let namespace = &workload.namespace;
        found.push(Precondition::Unmet(format!(
            "there is no namespace '{namespace}' (`infra team add {namespace}` creates it)"
        )));
    }
    found.extend(check_memory(workload, facts));
    let Some(sight) = sight else {
        let remark = "you may not list nodes, so it is not known whether the machines have room";
        found.push(Precondition::Remark(remark.to_owned()));
        return Ok(Checked { preconditions: found, ..Checked::default() });
    };
    let rooms = rooms_of_roles(&sight, workload);
    found.extend(check_machines_of_roles(&sight, &rooms, workload, facts));
    Ok(Checked { preconditions: found, rooms, sees_all: sight.is_complete })
}

/// Without a limit too much memory does not end in a failure that counts: the node evicts pods, also those of others.
fn check_memory(workload: &Workload, facts: ClusterFacts<'_>) -> Option<Precondition> {
    // What cluster.yaml says of machines is judged with the file.
    let is_unlimited =
        facts.blueprint().is_none() && workload.roles.iter().any(|role| role.memory_limit.is_none());
    is_unlimited.then(|| Precondition::Warning(format!("{NO_MEMORY_LIMIT}; {NO_MEMORY_LIMIT_HELP}")))
}

/// Whether the namespace exists. A user who may not read namespaces usually works in this one.
async fn has_namespace(api: &ApiServer, namespace: &str) -> Result<bool, JobError> {
    match api.has_namespace(namespace).await {
        Err(error) if error.is_forbidden() => Ok(true),
        answer => Ok(answer?),
    }
}

/// The nodes and pods that can be seen; nothing if nodes may not be listed.
async fn look_around(api: &ApiServer, namespace: &str) -> Result<Option<Sight>, JobError> {
    let nodes = match api.nodes().await {
        Err(error) if error.is_forbidden() => return Ok(None),
        nodes => nodes?,
    };
    let (pods, is_complete) = match api.pods(None, "").await {
        Err(error) if error.is_forbidden() => (api.pods(Some(namespace), "").await?, false),
        pods => (pods?, true),
    };
    Ok(Some(Sight { nodes, pods, is_complete }))
}

/// Whether the cluster knows JobSets, which restart the group of a job.
async fn check_engine(
    api: &ApiServer,
    workload: &Workload,
    facts: ClusterFacts<'_>,
) -> Result<Option<Precondition>, JobError> {
    let selector = format!("{JOB_LABEL}={}", workload.name);
    if api.job_sets(Some(&workload.namespace), &selector).await?.is_some() {
        return Ok(None);
    }
    let help = match facts.blueprint().map(|blueprint| blueprint.cluster.addons.job_set) {
        Some(true) => "`infra up` installs it; on a cluster of an earlier version, run it once",
        Some(false) => {
            "cluster.yaml has addons.jobSet: false; set it to true and run `infra up`, or install JobSet v0.12 yourself"
        }
        None => "the administrator installs it with `infra up`",
    };
    Ok(Some(Precondition::Unmet(format!("the cluster has no JobSet, which runs jobs ({help})"))))
}

/// Whether the queue exists: without it the job would wait for ever.
async fn check_queue(api: &ApiServer, workload: &Workload) -> Result<Option<Precondition>, JobError> {
    let Some(queue) = &workload.queue else { return Ok(None) };
    let namespace = &workload.namespace;
    Ok(match api.find_queue(namespace, queue).await? {
        QueuePresence::Found => None,
        QueuePresence::Missing => Some(Precondition::Unmet(format!(
            "there is no LocalQueue '{queue}' in namespace {namespace} ({QUEUE_HELP} shows how to create one)"
        ))),
        QueuePresence::NoKueue => Some(Precondition::Unmet(format!(
            "the job waits in queue '{queue}', and Kueue is not installed ({QUEUE_HELP} shows how to install it)"
        ))),
    })
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
    let mut found = unowned_names(api, workload).await?;
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

/// Finds foreign objects under the names that JobSet gives to what it creates: it would use such a Service, and fail on such a Job,
/// without a word.
async fn unowned_names(api: &ApiServer, workload: &Workload) -> Result<Vec<Precondition>, JobError> {
    let (namespace, name) = (&workload.namespace, &workload.name);
    let jobs = workload.roles.iter().map(|role| ("Job", role_job_name(name, role.role)));
    let mut found = Vec::new();
    for (kind, name) in std::iter::once(("Service", name.clone())).chain(jobs) {
        let object = ObjectName::new(kind, namespace, &name);
        let Some(live) = api.object(&object).await? else { continue };
        let owners = live["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let is_owned =
            owners.iter().any(|owner| owner["kind"] == "JobSet" && owner["name"] == workload.name.as_str());
        let is_ours = live["metadata"]["labels"][JOB_LABEL] == workload.name.as_str();
        if !is_owned && !is_ours {
            found.push(Precondition::Unmet(format!(
                "there is a {object} in namespace {namespace} that infra did not create; choose another name for the job"
            )));
        }
    }
    Ok(found)
}
