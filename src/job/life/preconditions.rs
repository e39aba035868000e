//! What must be true of a live cluster before a job is sent to it.

use super::error::JobError;
use crate::blueprint::Blueprint;
use crate::job::names::{MANAGER, MANAGER_LABEL};
use crate::job::workload::Workload;
use crate::kube::{ApiServer, Node, ObjectName};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The job cannot run.
    Unmet(String),
    /// The job can run, and its author should know this.
    Remark(String),
}

/// Looks at everything a job needs; all that is wrong is found at once.
pub async fn check_preconditions(
    api: &ApiServer,
    workload: &Workload,
    blueprint: Option<&Blueprint>,
) -> Result<Vec<Precondition>, JobError> {
    let mut found = Vec::new();
    if !api.has_namespace(&workload.namespace).await? {
        let (namespace, create) = (&workload.namespace, "kubectl create namespace");
        return Ok(vec![Precondition::Unmet(format!(
            "there is no namespace '{namespace}' (`{create} {namespace}` makes it)"
        ))]);
    }
    found.extend(claim(api, workload).await?);
    found.extend(strangers(api, workload).await?);
    let nodes = api.nodes().await?;
    found.extend(machines(&nodes, workload, blueprint));
    Ok(found)
}

async fn claim(api: &ApiServer, workload: &Workload) -> Result<Option<Precondition>, JobError> {
    let (namespace, claim) = (&workload.namespace, &workload.claim);
    Ok(match api.claim_phase(namespace, claim).await?.as_deref() {
        Some("Bound") => None,
        // It is made with the job.
        None | Some("Pending") if workload.volume.is_some() => None,
        None => Some(Precondition::Unmet(format!("there is no claim '{claim}' in namespace {namespace}"))),
        Some(phase) => Some(Precondition::Unmet(format!(
            "the claim '{claim}' in namespace {namespace} is {phase}, not Bound"
        ))),
    })
}

/// Objects of the same name that somebody else made.
async fn strangers(api: &ApiServer, workload: &Workload) -> Result<Option<Precondition>, JobError> {
    for role in &workload.roles {
        let name = ObjectName::new("Job", &workload.namespace, &role.job);
        let Some(object) = api.object(&name).await? else { continue };
        if object["metadata"]["labels"][MANAGER_LABEL] != MANAGER {
            return Ok(Some(Precondition::Unmet(format!(
                "there is a Job '{}' already that was not made by infra; choose another name",
                role.job
            ))));
        }
    }
    Ok(None)
}

fn machines(nodes: &[Node], workload: &Workload, blueprint: Option<&Blueprint>) -> Vec<Precondition> {
    let pool = workload.node_selector.values().next();
    let usable: Vec<&Node> = nodes
        .iter()
        .filter(|node| node.ready && node.schedulable && !node.is_controller)
        .filter(|node| pool.is_none() || node.pool.as_ref() == pool)
        .collect();
    let place = pool.map_or_else(|| "the cluster".to_owned(), |pool| format!("pool {pool}"));
    let Some(role) = workload.roles.iter().find(|role| role.gpus > 0) else {
        return if usable.is_empty() {
            vec![unmet_or_started(format!("{place} has no node that is Ready"), pool, blueprint)]
        } else {
            Vec::new()
        };
    };
    let room: u32 = usable.iter().map(|node| node.gpus / role.gpus).sum();
    if room >= role.replicas {
        return Vec::new();
    }
    let text = format!(
        "{} replicas with {} GPUs each need more than {place} has now: room for {room} on {} Ready nodes",
        role.replicas,
        role.gpus,
        usable.len()
    );
    vec![unmet_or_started(text, pool, blueprint)]
}

/// The autoscaler starts machines for pods that wait, if it may.
fn unmet_or_started(text: String, pool: Option<&String>, blueprint: Option<&Blueprint>) -> Precondition {
    let may_grow = blueprint.is_some_and(|blueprint| {
        let cluster = &blueprint.cluster;
        let of_job =
            |candidate: &&crate::config::Pool| pool.is_none_or(|name| candidate.name.as_str() == name);
        cluster.addons.cluster_autoscaler
            && cluster.pools.iter().filter(of_job).any(|pool| pool.max_count > pool.min_count)
    });
    if may_grow {
        Precondition::Remark(format!("{text}; the autoscaler starts more"))
    } else {
        Precondition::Unmet(text)
    }
}
