//! Pods of Jobs that are not done.

use super::{ApiServer, KubeError, Pod, PodPhase};
use crate::well_known::{JOB_ROLE_LABEL, TENSORBOARD_ROLE};

const PODS: &str = "/api/v1/pods";
const JOB_LABEL: &str = "batch.kubernetes.io/job-name";
/// Pods of any Job that have not ended: the API need not send what is thrown away here.
const SELECTORS: &str = "labelSelector=batch.kubernetes.io%2Fjob-name\
    &fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// A Job's pod that runs or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobPod {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// The Job it works for.
    pub job: String,
    /// The node it is on.
    pub node: String,
}

impl JobPod {
    /// The pod, if it works for a Job, is not done, and has a node.
    fn of(mut pod: Pod) -> Option<Self> {
        if !matches!(pod.phase, PodPhase::Running | PodPhase::Pending) {
            return None;
        }
        // Nothing is lost when it moves to another machine.
        if pod.labels.get(JOB_ROLE_LABEL).is_some_and(|role| role == TENSORBOARD_ROLE) {
            return None;
        }
        Some(Self {
            namespace: pod.namespace,
            name: pod.name,
            job: pod.labels.remove(JOB_LABEL)?,
            node: pod.node?,
        })
    }
}

impl ApiServer {
    /// Every Job's pod, in any namespace, that runs or waits on a node.
    pub(crate) async fn job_pods(&self) -> Result<Vec<JobPod>, KubeError> {
        let pods: Vec<Pod> = self.list(PODS, Some(SELECTORS)).await?;
        Ok(pods.into_iter().filter_map(JobPod::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};
    use super::JobPod;

    const PODS: &str = r#"{"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [
        {"metadata": {"name": "train-0", "namespace": "ada", "labels": {"batch.kubernetes.io/job-name": "train"}},
         "spec": {"nodeName": "worker-1", "containers": []}, "status": {"phase": "Running"}},
        {"metadata": {"name": "train-1", "namespace": "ada", "labels": {"batch.kubernetes.io/job-name": "train"}},
         "spec": {"nodeName": "worker-2"}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "waits", "namespace": "ada", "labels": {"batch.kubernetes.io/job-name": "train"}},
         "spec": {}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "done", "namespace": "ada", "labels": {"batch.kubernetes.io/job-name": "train"}},
         "spec": {"nodeName": "worker-1"}, "status": {"phase": "Succeeded"}},
        {"metadata": {"name": "board", "namespace": "ada", "labels":
            {"batch.kubernetes.io/job-name": "train-tensorboard", "infra.internal/role": "tensorboard"}},
         "spec": {"nodeName": "worker-1"}, "status": {"phase": "Running"}},
        {"metadata": {"name": "web", "namespace": "ada"}, "spec": {"nodeName": "worker-1"}, "status": {"phase": "Running"}}]}"#;

    fn pod(name: &str, node: &str) -> JobPod {
        JobPod {
            namespace: "ada".to_owned(),
            name: name.to_owned(),
            job: "train".to_owned(),
            node: node.to_owned(),
        }
    }

    #[tokio::test]
    async fn only_what_works_for_a_job_on_a_node_counts() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| json_answer("200 OK", PODS))?;
        let pods = server.client()?.job_pods().await?;
        assert_eq!(pods, [pod("train-0", "worker-1"), pod("train-1", "worker-2")]);
        let request = server.requests.recv()?;
        assert!(
            request.starts_with(
                "GET /api/v1/pods?limit=500&labelSelector=batch.kubernetes.io%2Fjob-name\
                 &fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed HTTP/1.1\r\n"
            ),
            "{request}"
        );
        Ok(())
    }
}
