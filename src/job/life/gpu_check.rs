//! Reads the GPUs of every GPU node, and compares them with what the machine should have.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::JobError;
use crate::job::names::{JOB_LABEL, MANAGER, MANAGER_LABEL, ROLE_LABEL};
use crate::kube::{ApiServer, LogPart, Node, ObjectName, PodPhase};
use crate::plural::count_of;
use crate::waiting::{Pace, Waiting};

const NAME: &str = "infra-gpu-check";
const NAMESPACE: &str = "default";
const ROLE: &str = "gpu-check";
const LONGEST_SECONDS: u32 = 600;
/// A machine with eight GPUs prints less than a kibibyte.
const LONGEST_TEXT: usize = 64 << 10;
const COMMAND: [&str; 3] =
    ["nvidia-smi", "--query-gpu=index,name,memory.total,driver_version", "--format=csv,noheader"];

/// What a GPU node was found to have. The exit code is 3 if one has a `problem`, 0 otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeGpus {
    /// The node.
    pub node: String,
    /// The pool of the node; null if it is in none.
    pub pool: Option<String>,
    /// How many GPUs the machine type has.
    pub expected: u32,
    /// How many GPUs Kubernetes can give to pods.
    pub allocatable: u32,
    /// What nvidia-smi printed, one line per GPU.
    pub gpus: Vec<String>,
    /// What is wrong; null if nothing is.
    pub problem: Option<String>,
}

/// A check of every GPU node.
#[derive(Debug)]
pub(crate) struct GpuCheck<'a> {
    api: &'a ApiServer,
    mark: String,
    image: String,
}

impl<'a> GpuCheck<'a> {
    /// A check whose pods carry `mark`, which distinguishes them from those of other checks.
    #[must_use]
    pub(crate) fn new(api: &'a ApiServer, mark: &str, image: &str) -> Self {
        Self { api, mark: mark.to_owned(), image: image.to_owned() }
    }

    /// Runs nvidia-smi on every node that should have GPUs: `expected` knows how many. The pods must be deleted afterwards.
    pub(crate) async fn run(
        &self,
        expected: impl Fn(&Node) -> u32,
        waiting: &Waiting,
    ) -> Result<Vec<NodeGpus>, JobError> {
        let mut checks: Vec<NodeGpus> = Vec::new();
        for node in self.api.nodes().await? {
            let wanted = expected(&node).max(node.gpus);
            if wanted > 0 {
                let (pool, allocatable) = (node.pool.clone(), node.gpus);
                let why = node.why_not_ready.map(|why| format!("the node is not Ready: {why}"));
                let problem = why.filter(|_| !node.ready);
                checks.push(NodeGpus {
                    node: node.name,
                    pool,
                    expected: wanted,
                    allocatable,
                    gpus: Vec::new(),
                    problem,
                });
            }
        }
        for (number, check) in checks.iter().enumerate().filter(|(_, check)| check.problem.is_none()) {
            self.api.apply(&self.pod(number, &check.node)).await?;
        }
        self.collect(&mut checks, waiting).await?;
        checks.iter_mut().for_each(judge_node);
        Ok(checks)
    }

    async fn collect(&self, checks: &mut [NodeGpus], waiting: &Waiting) -> Result<(), JobError> {
        let mut pace = Pace::of_moment();
        let mut waits_for = vec![None; checks.len()];
        loop {
            let mut open = 0;
            let pods = self.api.pods(Some(NAMESPACE), &self.selector()).await?;
            for (number, check) in checks.iter_mut().enumerate() {
                let name = self.pod_name(number);
                if check.problem.is_some() || !check.gpus.is_empty() {
                    continue;
                }
                let Some(pod) = pods.iter().find(|pod| pod.name == name) else {
                    check.problem = Some("its pod was deleted before it ran".to_owned());
                    continue;
                };
                waits_for[number].clone_from(&pod.detail);
                match pod.phase {
                    PodPhase::Succeeded => check.gpus = self.lines(&name).await?,
                    PodPhase::Failed => {
                        let detail = pod.detail.clone().unwrap_or_default();
                        let said = self.lines(&name).await.unwrap_or_default().join("; ");
                        check.problem =
                            Some(format!("nvidia-smi failed: {detail} {said}").trim_end().to_owned());
                    }
                    _ => open += 1,
                }
            }
            if open == 0 {
                return Ok(());
            }
            if waiting.pause(pace.next_pause()).await.is_err() {
                let open = |check: &NodeGpus| check.gpus.is_empty() && check.problem.is_none();
                for (check, detail) in checks.iter_mut().zip(waits_for).filter(|(check, _)| open(check)) {
                    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                    check.problem = Some(format!("its pod did not run in time{detail}"));
                }
                return Ok(());
            }
        }
    }

    async fn lines(&self, pod: &str) -> Result<Vec<String>, JobError> {
        let mut body = self.api.pod_log(NAMESPACE, pod, LogPart::default()).await?;
        let text = body.beginning(LONGEST_TEXT).await?;
        Ok(String::from_utf8_lossy(&text)
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect())
    }

    /// Deletes the pods of the check.
    pub(crate) async fn remove(&self) -> Result<(), JobError> {
        for pod in self.api.pods(Some(NAMESPACE), &self.selector()).await? {
            self.api.delete_object(&ObjectName::new("Pod", NAMESPACE, &pod.name)).await?;
        }
        Ok(())
    }

    fn selector(&self) -> String {
        format!("{JOB_LABEL}={NAME}-{}", self.mark)
    }

    fn pod_name(&self, number: usize) -> String {
        format!("{NAME}-{}-{number}", self.mark)
    }

    /// A pod bound to a node. It asks for no GPU, so that it runs beside jobs, and sees all of them.
    fn pod(&self, number: usize, node: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.pod_name(number),
                "namespace": NAMESPACE,
                "labels": {MANAGER_LABEL: MANAGER, JOB_LABEL: format!("{NAME}-{}", self.mark), ROLE_LABEL: ROLE},
            },
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "activeDeadlineSeconds": LONGEST_SECONDS,
                "automountServiceAccountToken": false,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": ROLE,
                    "image": self.image,
                    "command": COMMAND,
                    "env": [
                        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
                    ],
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": false},
                }],
            },
        })
    }
}

fn judge_node(check: &mut NodeGpus) {
    if check.problem.is_some() {
        return;
    }
    let seen = u32::try_from(check.gpus.len()).unwrap_or(u32::MAX);
    check.problem = if seen != check.expected {
        Some(format!("nvidia-smi finds {}, but the machine has {}", count_of(seen, "GPU"), check.expected))
    } else if check.allocatable != check.expected {
        Some(format!(
            "Kubernetes offers pods {}, but the machine has {}",
            count_of(check.allocatable, "GPU"),
            check.expected
        ))
    } else {
        None
    };
}
