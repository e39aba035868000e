//! How a job is: one state for the whole, and one line a replica.

use serde::Serialize;

use super::error::JobError;
use crate::job::names::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, FRAMEWORK_LABEL, JOB_LABEL, MANAGER, MANAGER_LABEL, PATH_ANNOTATION,
    ROLE_LABEL, RUN_LABEL,
};
use crate::kube::{ApiServer, Job, JobEnd, Pod};

const DATA_ROLE: &str = "data";

/// A job as it is now.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReport {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its framework.
    pub framework: String,
    /// Which run it is.
    pub run: String,
    /// What it was rendered from.
    pub digest: String,
    /// How the whole is.
    pub state: JobState,
    /// What there is to say about that.
    pub reason: Option<String>,
    /// How many pods are done, of how many.
    pub done: u32,
    /// How many pods there are to be.
    pub wanted: u32,
    /// The claim it writes to.
    pub claim: String,
    /// Its directory there.
    pub path: String,
    /// Every replica, by role and number.
    pub replicas: Vec<ReplicaReport>,
}

/// How a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Its data is being imported; no GPU is held.
    Importing,
    /// It is held back: by us until its data is there, or by its queue.
    Held,
    /// Its pods wait for machines, images or each other.
    Starting,
    /// All its pods run.
    Running,
    /// All its pods are done.
    Complete,
    /// It gave up.
    Failed,
}

impl JobState {
    /// Whether nothing more will happen.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Importing => "importing",
            Self::Held => "held",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

/// One replica of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaReport {
    /// What it does.
    pub role: String,
    /// Its number.
    pub index: u32,
    /// Its newest pod.
    pub pod: Option<String>,
    /// The node that pod is on.
    pub node: Option<String>,
    /// That pod's phase.
    pub phase: String,
    /// How often it was started again.
    pub restarts: u32,
    /// GPUs it has.
    pub gpus: u32,
    /// What it waits for, or how it ended.
    pub detail: Option<String>,
}

impl JobReport {
    /// Looks at a job.
    pub async fn read(api: &ApiServer, namespace: &str, name: &str) -> Result<Self, JobError> {
        let selector = format!("{JOB_LABEL}={name}");
        let jobs = api.jobs(Some(namespace), &selector).await?;
        let pods = api.pods(Some(namespace), &selector).await?;
        Self::of(&jobs, &pods)
            .ok_or_else(|| JobError::Missing { name: name.to_owned(), namespace: namespace.to_owned() })
    }

    /// Looks at every job of the cluster.
    pub async fn read_all(api: &ApiServer, namespace: Option<&str>) -> Result<Vec<Self>, JobError> {
        let selector = format!("{MANAGER_LABEL}={MANAGER},{JOB_LABEL}");
        let jobs = api.jobs(namespace, &selector).await?;
        let pods = api.pods(namespace, &selector).await?;
        let owner = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get(JOB_LABEL).cloned().unwrap_or_default()
        };
        let mut names: Vec<(String, String)> =
            jobs.iter().map(|job| (job.namespace.clone(), owner(&job.labels))).collect();
        names.sort();
        names.dedup();
        let report = |(namespace, name): (String, String)| {
            let own = |at: &str, labels| at == namespace && owner(labels) == name;
            let jobs: Vec<Job> =
                jobs.iter().filter(|job| own(&job.namespace, &job.labels)).cloned().collect();
            let pods: Vec<Pod> =
                pods.iter().filter(|pod| own(&pod.namespace, &pod.labels)).cloned().collect();
            Self::of(&jobs, &pods)
        };
        Ok(names.into_iter().filter_map(report).collect())
    }

    /// Puts together what the API says; nothing if there is no Job that trains.
    fn of(jobs: &[Job], pods: &[Pod]) -> Option<Self> {
        let role = |job: &Job| job.labels.get(ROLE_LABEL).cloned().unwrap_or_default();
        let (data, mut training): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().partition(|job| role(job) == DATA_ROLE);
        training.sort_by_key(|job| role(job));
        let first = *training.first().or(data.first())?;
        let label = |key: &str| first.labels.get(key).cloned().unwrap_or_default();
        let annotation = |key: &str| first.annotations.get(key).cloned().unwrap_or_default();
        let replicas: Vec<ReplicaReport> =
            training.iter().flat_map(|job| replicas_of(&role(job), job, pods)).collect();
        let (state, reason) = state_of(&training, data.first().copied(), &replicas);
        Some(Self {
            name: label(JOB_LABEL),
            namespace: first.namespace.clone(),
            framework: label(FRAMEWORK_LABEL),
            run: label(RUN_LABEL),
            digest: annotation(DIGEST_ANNOTATION),
            claim: annotation(CLAIM_ANNOTATION),
            path: annotation(PATH_ANNOTATION),
            state,
            reason,
            done: training.iter().map(|job| job.succeeded).sum(),
            wanted: training.iter().map(|job| job.completions).sum(),
            replicas,
        })
    }

    /// The newest pod of a replica.
    #[must_use]
    pub fn replica(&self, role: Option<&str>, index: u32) -> Option<&ReplicaReport> {
        let is_role = |replica: &&ReplicaReport| match role {
            Some(role) => replica.role == role,
            None => replica.role != "ps",
        };
        self.replicas.iter().filter(is_role).find(|replica| replica.index == index)
    }
}

fn replicas_of(role: &str, job: &Job, pods: &[Pod]) -> Vec<ReplicaReport> {
    let line = |index: u32| {
        let mut own: Vec<&Pod> = pods
            .iter()
            .filter(|pod| {
                pod.index == Some(index) && pod.labels.get(ROLE_LABEL).is_some_and(|label| label == role)
            })
            .collect();
        own.sort_by(|one, other| (&one.made, &one.name).cmp(&(&other.made, &other.name)));
        let restarts = u32::try_from(own.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let newest = own.last();
        ReplicaReport {
            role: role.to_owned(),
            index,
            pod: newest.map(|pod| pod.name.clone()),
            node: newest.and_then(|pod| pod.node.clone()),
            phase: newest
                .map_or_else(|| if job.suspended { "Held" } else { "Pending" }.to_owned(), |pod| phase(pod)),
            restarts,
            gpus: newest.map_or(0, |pod| pod.gpus),
            detail: newest.and_then(|pod| pod.detail.clone()),
        }
    };
    (0..job.completions).map(line).collect()
}

fn phase(pod: &Pod) -> String {
    // A pod on a lost machine stays like this until somebody removes it.
    if pod.leaving && pod.phase == "Running" { "Terminating".to_owned() } else { pod.phase.clone() }
}

fn state_of(training: &[&Job], data: Option<&Job>, replicas: &[ReplicaReport]) -> (JobState, Option<String>) {
    for job in training {
        if let Some(JobEnd::Failed { reason }) = &job.end {
            return (JobState::Failed, Some(reason.clone()));
        }
    }
    if !training.is_empty() && training.iter().all(|job| job.end == Some(JobEnd::Complete)) {
        return (JobState::Complete, None);
    }
    if let Some(data) = data {
        match &data.end {
            Some(JobEnd::Failed { reason }) => {
                return (JobState::Failed, Some(format!("its data: {reason}")));
            }
            None => return (JobState::Importing, None),
            Some(JobEnd::Complete) => {}
        }
    }
    if training.is_empty() || training.iter().any(|job| job.suspended) {
        return (JobState::Held, None);
    }
    let waiting = replicas.iter().find(|replica| !matches!(replica.phase.as_str(), "Running" | "Succeeded"));
    match waiting {
        Some(replica) => {
            let detail = replica.detail.clone().unwrap_or_else(|| replica.phase.clone());
            (JobState::Starting, Some(format!("{} {}: {detail}", replica.role, replica.index)))
        }
        None => (JobState::Running, None),
    }
}
