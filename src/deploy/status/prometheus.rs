//! The Prometheus that monitors a cluster: where it answers, and if nowhere, why.

use crate::blueprint::{MONITORING_NAMESPACE, PROMETHEUS_PORT, PROMETHEUS_SELECTOR};
use crate::kube::{ApiServer, KubeError, Pod, PodPhase, PodPort};

/// The state of a cluster's Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PrometheusState {
    /// The cluster has none.
    Absent,
    /// There is none on the node that was asked for.
    Elsewhere {
        /// The nodes that have one.
        nodes: Vec<String>,
    },
    /// None answers.
    Waiting {
        /// What for.
        reason: String,
    },
    /// One answers.
    Ready {
        /// The port that it answers on.
        port: PodPort,
        /// The controller that it runs on.
        node: String,
    },
}

/// Reads the state of a cluster's Prometheus: of the one on `node`, else of the one in use, else of the first that answers.
pub(crate) async fn read_prometheus(
    api: &ApiServer,
    node: Option<&str>,
    in_use: Option<&str>,
) -> Result<PrometheusState, KubeError> {
    let pods = Box::pin(api.pods(Some(MONITORING_NAMESPACE), PROMETHEUS_SELECTOR)).await?;
    Ok(state_of(&pods, node, in_use))
}

fn state_of(pods: &[Pod], node: Option<&str>, in_use: Option<&str>) -> PrometheusState {
    if pods.is_empty() {
        return PrometheusState::Absent;
    }
    let is_wanted = |pod: &&Pod| node.is_none() || pod.node.as_deref() == node;
    let mut wanted: Vec<&Pod> = pods.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let mut nodes: Vec<String> = pods.iter().filter_map(|pod| pod.node.clone()).collect();
        nodes.sort();
        nodes.dedup();
        return PrometheusState::Elsewhere { nodes };
    }
    wanted.sort_by_key(|pod| (pod.name.as_str() != in_use.unwrap_or_default(), pod.node.clone()));
    let answers = |pod: &&&Pod| pod.phase == PodPhase::Running && pod.is_ready && !pod.leaving;
    if let Some(pod) = wanted.iter().find(answers) {
        let port = PodPort { namespace: pod.namespace.clone(), pod: pod.name.clone(), port: PROMETHEUS_PORT };
        return PrometheusState::Ready { port, node: pod.node.clone().unwrap_or_default() };
    }
    // What is wrong with one says more than that another one starts.
    let detail = wanted.iter().find_map(|pod| pod.detail.clone());
    let usual = if wanted.iter().any(|pod| pod.phase == PodPhase::Running) {
        "it runs, and does not answer yet"
    } else {
        "its pod is being started"
    };
    PrometheusState::Waiting { reason: detail.unwrap_or_else(|| usual.to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{PrometheusState, state_of};
    use crate::kube::Pod;

    fn pod(name: &str, node: &str, status: &Value) -> Result<Pod, serde_json::Error> {
        let metadata = json!({"name": name, "namespace": "kube-system"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"nodeName": node}, "status": status}))
    }

    fn running(is_ready: bool) -> Value {
        let status = if is_ready { "True" } else { "False" };
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}]})
    }

    fn node_of(state: &PrometheusState) -> Option<&str> {
        match state {
            PrometheusState::Ready { node, .. } => Some(node),
            _ => None,
        }
    }

    #[test]
    fn the_first_prometheus_that_answers_is_kept_while_it_answers() -> Result<(), serde_json::Error> {
        let pods = [pod("b", "two", &running(true))?, pod("a", "one", &running(true))?];
        assert_eq!(node_of(&state_of(&pods, None, None)), Some("one"));
        assert_eq!(node_of(&state_of(&pods, None, Some("b"))), Some("two"));
        assert_eq!(node_of(&state_of(&pods, Some("two"), None)), Some("two"));
        let pods = [pod("b", "two", &running(false))?, pod("a", "one", &running(true))?];
        assert_eq!(node_of(&state_of(&pods, None, Some("b"))), Some("one"));
        Ok(())
    }

    #[test]
    fn without_an_answer_from_any_prometheus_there_is_a_reason() -> Result<(), serde_json::Error> {
        assert_eq!(state_of(&[], None, None), PrometheusState::Absent);
        let reason = |text: &str| PrometheusState::Waiting { reason: text.to_owned() };
        let starting = pod("a", "one", &json!({"phase": "Pending"}))?;
        assert_eq!(state_of(&[starting], None, None), reason("its pod is being started"));
        let silent = pod("a", "one", &running(false))?;
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        let broken =
            json!({"phase": "Pending", "containerStatuses": [{"name": "prometheus", "state": waiting}]});
        let pods = [silent, pod("b", "two", &broken)?];
        assert_eq!(state_of(&pods, Some("one"), None), reason("it runs, and does not answer yet"));
        assert_eq!(state_of(&pods, None, None), reason("ImagePullBackOff: no such image"));
        let nodes = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(state_of(&pods, Some("three"), None), PrometheusState::Elsewhere { nodes });
        Ok(())
    }
}
