//! Whether the quotas of a namespace leave room for the GPUs of a job: pods over them are not created, and a group of which some pods are
//! missing holds the GPUs that it has.

use serde_json::Value;

use super::error::JobError;
use super::precondition::Precondition;
use crate::job::names::JOB_LABEL;
use crate::job::workload::Workload;
use crate::kube::ApiServer;
use crate::plural::count_of;
use crate::well_known::{GPU_RESOURCE, TEAM_LABEL};

/// Compares the GPUs of all pods of a job with every quota of its namespace. Whoever may not read quotas learns it when the job waits.
pub(super) async fn check_quotas(
    api: &ApiServer,
    workload: &Workload,
) -> Result<Vec<Precondition>, JobError> {
    let needed: u32 = workload.roles.iter().map(|role| role.gpus * role.replicas).sum();
    if needed == 0 {
        return Ok(Vec::new());
    }
    let namespace = workload.namespace.as_str();
    let quotas = match api.objects("ResourceQuota", Some(namespace), "").await {
        Err(error) if error.is_forbidden() => return Ok(Vec::new()),
        quotas => quotas?,
    };
    let limited: Vec<&Value> = quotas.iter().filter(|quota| gpus_of(quota, "/spec/hard").is_some()).collect();
    if limited.is_empty() {
        return Ok(Vec::new());
    }
    let own = api.pods(Some(namespace), &format!("{JOB_LABEL}={}", workload.name)).await?;
    // An earlier job of this name is deleted before the new one begins.
    let own: u32 = own.iter().filter(|pod| !pod.phase.is_over()).map(|pod| pod.gpus).sum();
    Ok(limited.into_iter().filter_map(|quota| judge_quota(quota, needed, own, namespace)).collect())
}

fn judge_quota(quota: &Value, needed: u32, own: u32, namespace: &str) -> Option<Precondition> {
    let limit = gpus_of(quota, "/spec/hard")?;
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    if needed > limit {
        let is_of_team = !quota["metadata"]["labels"][TEAM_LABEL].is_null();
        let change = if is_of_team {
            format!("the administrator changes it with `infra team add {namespace} --gpus N`")
        } else {
            "the administrator changes it".to_owned()
        };
        return Some(Precondition::Unmet(format!(
            "the job needs {}, and the quota '{name}' of namespace {namespace} allows {limit} ({change})",
            count_of(needed, "GPU")
        )));
    }
    let used = gpus_of(quota, "/status/used").unwrap_or(0).saturating_sub(own);
    let left = limit.saturating_sub(used);
    (needed > left).then(|| {
        Precondition::Remark(format!(
            "the quota '{name}' of namespace {namespace} has room for {left} of {} now, the others wait",
            count_of(needed, "GPU")
        ))
    })
}

fn gpus_of(quota: &Value, pointer: &str) -> Option<u32> {
    quota.pointer(pointer)?[format!("requests.{GPU_RESOURCE}")].as_str()?.parse().ok()
}
