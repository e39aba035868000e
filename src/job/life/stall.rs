//! What keeps pods from being made or started and stands in no status: Kubernetes says it in events.

use crate::kube::{ApiServer, Job, Pod, PodPhase};

/// Pods that are asked about at a time: what stops one stops the others too.
const ASKED: usize = 4;
/// A Job's pods were refused: by a quota, or by a rule about what pods may do.
const NOT_MADE: &str = "FailedCreate";
/// A pod that has a node has been placed, whatever was said before.
const NOT_PLACED: &str = "FailedScheduling";

/// Notes at each Job that lacks pods why they were refused, and at each pod that does not start why.
pub(super) async fn explain_stalls(api: &ApiServer, jobs: &mut [Job], pods: &mut [Pod]) {
    let lacks_pods = |job: &&mut Job| {
        job.end.is_none() && !job.suspended && !job.leaving && job.active + job.succeeded < job.completions
    };
    for job in jobs.iter_mut().filter(lacks_pods) {
        let newest = newest_warning(api, &job.namespace, &job.uid, |reason| reason == NOT_MADE).await;
        job.detail = newest.map(|said| format!("no pod can be made: {said}"));
    }
    explain_pods(api, pods).await;
}

/// Notes at each pod that has a node and does not start why.
pub(super) async fn explain_pods(api: &ApiServer, pods: &mut [Pod]) {
    let stalls = |pod: &&mut Pod| {
        pod.phase == PodPhase::Pending && pod.node.is_some() && pod.detail.is_none() && !pod.leaving
    };
    for pod in pods.iter_mut().filter(stalls).take(ASKED) {
        let newest = newest_warning(api, &pod.namespace, &pod.uid, |reason| reason != NOT_PLACED).await;
        let node = pod.node.as_deref().unwrap_or_default();
        pod.detail = newest.map(|said| format!("its container is not created on {node}: {said}"));
    }
}

/// What explains a delay must not become a failure: without an answer there is nothing to say.
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
