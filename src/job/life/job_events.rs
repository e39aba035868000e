//! What Kubernetes reported about the pods of a job, of all attempts, and about the nodes they were on.

use std::collections::BTreeSet;

use super::report::JobReport;
use crate::kube::{ApiServer, Event};

/// The most events that are shown.
const MOST_EVENTS: usize = 10;
/// Reports that explain an end although they are no warnings: nodes that shut down, go or come back, and pods that have to leave.
const TELLING: [&str; 10] = [
    "NodeNotReady",
    "NodeShutdown",
    "Shutdown",
    "NodeNotSchedulable",
    "RemovingNode",
    "DeletingNode",
    "TaintManagerEviction",
    "Preempted",
    "Evicted",
    "ScaleDown",
];
/// Says that a pod has a node.
const SCHEDULED: &str = "Scheduled";
/// Means nothing as soon as the job has started.
const NOT_PLACED: &str = "FailedScheduling";
/// Where events of nodes are.
const NODE_NAMESPACE: &str = "default";

/// What was reported, oldest first. Users who may not read events of a namespace get none: what explains must not become a failure.
pub(super) async fn events_of(api: &ApiServer, report: &JobReport) -> Vec<String> {
    let of_pods = api.events(&report.namespace, "Pod").await.unwrap_or_default();
    let of_pods: Vec<Event> = of_pods.into_iter().filter(|event| is_own(&event.object, report)).collect();
    let mut nodes: BTreeSet<&str> = report.replicas.iter().filter_map(|line| line.node.as_deref()).collect();
    let scheduled = of_pods.iter().filter(|event| event.report.reason == SCHEDULED);
    // `Successfully assigned default/train-worker-0-1-x2b4c to gpu-2`
    nodes.extend(scheduled.filter_map(|event| event.report.message.rsplit(' ').next()));
    let of_nodes = if nodes.is_empty() {
        Vec::new()
    } else {
        api.events(NODE_NAMESPACE, "Node").await.unwrap_or_default()
    };
    let is_waiting =
        !report.state.is_over() && report.restarts.is_none_or(|restarts| restarts.attempt() == 0);
    let is_telling = |event: &&Event| {
        let reason = event.report.reason.as_str();
        (event.is_warning || TELLING.contains(&reason)) && (reason != NOT_PLACED || is_waiting)
    };
    let pods = of_pods.iter().filter(is_telling).map(|event| ("pod", event));
    let nodes = of_nodes.iter().filter(|event| nodes.contains(event.object.as_str()));
    let mut all: Vec<(&str, &Event)> =
        pods.chain(nodes.filter(is_telling).map(|event| ("node", event))).collect();
    all.sort_by(|one, other| one.1.report.last.cmp(&other.1.report.last));
    let newest = all.split_off(all.len().saturating_sub(MOST_EVENTS));
    newest.into_iter().map(|(kind, event)| in_words(kind, event)).collect()
}

fn in_words(kind: &str, event: &Event) -> String {
    let report = &event.report;
    format!("{} {kind} {}: {}: {}", report.last, event.object, report.reason, report.message)
}

/// Whether a pod is one of the job's: its name begins with that of its Job.
fn is_own(pod: &str, report: &JobReport) -> bool {
    let below = pod.strip_prefix(report.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
    let roles: BTreeSet<&str> =
        report.replicas.iter().chain(&report.data).map(|replica| replica.role.as_str()).collect();
    below.is_some_and(|rest| {
        roles.iter().any(|role| rest.strip_prefix(role).is_some_and(|rest| rest.starts_with('-')))
            // A Job of an earlier version of infra has the name of the job itself.
            || report.restarts.is_none() && rest.starts_with(|first: char| first.is_ascii_digit())
    })
}
