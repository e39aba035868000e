//! What keeps pods from being created or started: Kubernetes says it in events only.

use crate::kube::{ApiServer, Job, Pod, PodPhase};

/// The most pods whose events are read: what stops one usually stops the others too.
const MOST_PODS_READ: usize = 4;
/// The creation of a Job's pods was refused, by a quota or an admission rule.
const FAILED_CREATE: &str = "FailedCreate";
/// Outdated as soon as the pod has a node.
const NOT_PLACED: &str = "FailedScheduling";

/// Adds to each Job that lacks pods why they were refused, and to each pod that does not start why.
pub(super) async fn explain_stalls(api: &ApiServer, jobs: &mut [Job], pods: &mut [Pod]) {
    let lacks_pods = |job: &&mut Job| {
        job.end.is_none() && !job.suspended && !job.leaving && job.active + job.succeeded < job.completions
    };
    for job in jobs.iter_mut().filter(lacks_pods) {
        let newest = newest_warning(api, &job.namespace, &job.uid, |reason| reason == FAILED_CREATE).await;
        job.detail = newest.map(|said| format!("no pod can be created: {said}"));
    }
    explain_pods(api, pods).await;
}

/// Adds to each pod that has a node and does not start why.
pub(super) async fn explain_pods(api: &ApiServer, pods: &mut [Pod]) {
    let stalls = |pod: &&mut Pod| {
        pod.phase == PodPhase::Pending && pod.node.is_some() && pod.detail.is_none() && !pod.leaving
    };
    for pod in pods.iter_mut().filter(stalls).take(MOST_PODS_READ) {
        let newest = newest_warning(api, &pod.namespace, &pod.uid, |reason| reason != NOT_PLACED).await;
        let node = pod.node.as_deref().unwrap_or_default();
        pod.detail = newest.map(|said| format!("its container is not created on {node}: {said}"));
    }
}

/// An explanation must not become a failure: without an answer there is none.
async fn newest_warning(
    api: &ApiServer,
    namespace: &str,
    uid: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<String> {
    let warnings = api.warnings(namespace, uid).await.unwrap_or_default();
    let newest = warnings.into_iter().rfind(|warning| counts(&warning.reason))?;
    Some(format!("{}: {}", newest.reason, newest.message))
}
