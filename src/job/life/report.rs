//! The state of a job: one for the whole, and one line per replica.

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::error::JobError;
use super::group::{replicas_of_group, state_of_group};
use super::replica::{ReplicaPhase, ReplicaReport, import_of, replicas_of};
use super::restarts::Restarts;
use super::stall::explain_stalls;
use super::state::{JobState, state_of_jobs};
use crate::job::names::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, FRAMEWORK_LABEL, JOB_LABEL, MANAGER, MANAGER_LABEL, PATH_ANNOTATION,
    QUEUE_LABEL, RESUMED_ANNOTATION, ROLE_LABEL, RUN_LABEL, TENSORBOARD_ROLE,
};
use crate::job::run::run_directory;
use crate::kube::{ApiServer, Job, JobSet, Pod};

/// The role of an import.
pub(super) const DATA_ROLE: &str = "data";

/// The state of a job. The exit code of `job status` is 3 if `state` is `failed`, 0 otherwise; that of `job submit` 1 or 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobReport {
    /// The name of the job.
    pub name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The framework of the job.
    pub framework: String,
    /// The name of the run.
    pub run: String,
    /// The digest of the job: the same digest is the same job.
    pub digest: String,
    /// The state of the whole job.
    pub state: JobState,
    /// Why the job is in this state, if there is something to say.
    pub reason: Option<String>,
    /// How many replicas are done.
    pub done: u32,
    /// How many replicas the job has.
    pub wanted: u32,
    /// The claim that the job writes to.
    pub claim: String,
    /// The directory of the job on the claim.
    pub path: String,
    /// The directory of the run on the claim; its results are in `output` below.
    pub directory: String,
    /// How often the whole group was restarted; null for a job that an earlier version of infra submitted.
    pub restarts: Option<Restarts>,
    /// The import of the data; null if there is none, or it was deleted since.
    pub data: Option<ReplicaReport>,
    /// How often the import was restarted; null if there is none.
    pub import_restarts: Option<Restarts>,
    /// Every replica, by role and number.
    pub replicas: Vec<ReplicaReport>,
    /// GPUs that the job holds now: those of its pods that have a node and have not ended, in whatever attempt.
    pub gpus_held: u32,
    /// When the job was created, as Kubernetes writes it.
    pub created: String,
    /// Whether an import belongs to a run that is resumed.
    #[serde(skip)]
    pub is_resumed: bool,
    /// The uid of the JobSet, below which launchers leave their marks on the claim.
    #[serde(skip)]
    pub set_uid: Option<String>,
    /// When the job ended, in seconds since 1970.
    #[serde(skip)]
    pub ended: Option<u64>,
    /// Whether a version of infra without JobSet submitted the job.
    #[serde(skip)]
    pub is_of_earlier_version: bool,
}

impl JobReport {
    /// Reads a job.
    pub(crate) async fn read(api: &ApiServer, namespace: &str, name: &str) -> Result<Self, JobError> {
        let selector = format!("{JOB_LABEL}={name}");
        let (sets, mut jobs, mut pods) = tokio::try_join!(
            Box::pin(api.job_sets(Some(namespace), &selector)),
            Box::pin(api.jobs(Some(namespace), &selector)),
            Box::pin(api.pods(Some(namespace), &selector))
        )?;
        explain_stalls(api, &mut jobs, &mut pods).await;
        let set = sets.unwrap_or_default().into_iter().next();
        let mut report = Self::of(set.as_ref(), &jobs, &pods)
            .ok_or_else(|| JobError::Missing { name: name.to_owned(), namespace: namespace.to_owned() })?;
        if set.is_some_and(|set| set.suspended && set.labels.contains_key(QUEUE_LABEL)) {
            report.explain_queue(api).await;
        }
        Ok(report)
    }

    /// Adds why the queue holds the job back. Whoever may not read that sees the rest.
    async fn explain_queue(&mut self, api: &ApiServer) {
        if let (Ok(Some(why)), Some(reason)) =
            (api.why_queued(&self.namespace, &self.name).await, &mut self.reason)
        {
            *reason = format!("{reason}: {why}");
        }
    }

    /// Reads every job that the user may see: of all namespaces, or of those that can be read, with their names; `own` if not even the
    /// names of the others can be.
    pub(crate) async fn read_visible(
        api: &ApiServer,
        own: &str,
    ) -> Result<(Vec<Self>, Option<Vec<String>>), JobError> {
        match Self::read_all(api, None).await {
            Err(error) if error.is_forbidden() => {}
            all => return Ok((all?, None)),
        }
        let names = match api.namespaces().await {
            Err(error) if error.is_forbidden() => vec![own.to_owned()],
            names => names?,
        };
        let (mut reports, mut readable) = (Vec::new(), Vec::new());
        for name in names {
            match Self::read_all(api, Some(&name)).await {
                Err(error) if error.is_forbidden() && name != own => {}
                found => {
                    reports.extend(found?);
                    readable.push(name);
                }
            }
        }
        Ok((reports, Some(readable)))
    }

    /// Reads every job of the cluster, or of a namespace.
    pub(crate) async fn read_all(api: &ApiServer, namespace: Option<&str>) -> Result<Vec<Self>, JobError> {
        let selector = format!("{MANAGER_LABEL}={MANAGER},{JOB_LABEL}");
        let (sets, jobs, pods) = tokio::try_join!(
            Box::pin(api.job_sets(namespace, &selector)),
            Box::pin(api.jobs(namespace, &selector)),
            Box::pin(api.pods(namespace, &selector))
        )?;
        let sets = sets.unwrap_or_default();
        let owner = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get(JOB_LABEL).cloned().unwrap_or_default()
        };
        let of_sets = sets.iter().map(|set| (set.namespace.clone(), owner(&set.labels)));
        let of_jobs = jobs.iter().map(|job| (job.namespace.clone(), owner(&job.labels)));
        let mut names: Vec<(String, String)> = of_sets.chain(of_jobs).collect();
        names.sort();
        names.dedup();
        let report = |(namespace, name): (String, String)| {
            let own = |at: &str, labels| at == namespace && owner(labels) == name;
            let jobs: Vec<Job> =
                jobs.iter().filter(|job| own(&job.namespace, &job.labels)).cloned().collect();
            let pods: Vec<Pod> =
                pods.iter().filter(|pod| own(&pod.namespace, &pod.labels)).cloned().collect();
            let set = sets.iter().find(|set| own(&set.namespace, &set.labels));
            Self::of(set, &jobs, &pods)
        };
        Ok(names.into_iter().filter_map(report).collect())
    }

    /// The report from what the API says; nothing if nothing trains and nothing is imported.
    fn of(set: Option<&JobSet>, jobs: &[Job], pods: &[Pod]) -> Option<Self> {
        let role = |job: &Job| job.labels.get(ROLE_LABEL).cloned().unwrap_or_default();
        // What shows results says nothing about the job.
        let (data, mut training): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().filter(|job| role(job) != TENSORBOARD_ROLE).partition(|job| role(job) == DATA_ROLE);
        training.sort_by_key(|job| role(job));
        let import = data.first().map(|job| (*job, import_of(DATA_ROLE, job, pods)));
        let import_restarts = data.first().map(|job| Restarts::of_import(DATA_ROLE, job, pods));
        let (labels, annotations, namespace, created) = match (set, training.first().or(data.first())) {
            (Some(set), _) => (&set.labels, &set.annotations, &set.namespace, &set.created),
            (None, Some(job)) => (&job.labels, &job.annotations, &job.namespace, &job.created),
            (None, None) => return None,
        };
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let annotation = |key: &str| annotations.get(key).cloned().unwrap_or_default();
        // Jobs of an earlier version of infra have no JobSet, and all their runs one directory.
        let is_old = set.is_none() && (!training.is_empty() || !labels.contains_key(RUN_LABEL));
        let (replicas, (state, reason)) = match set {
            Some(set) => {
                let replicas = replicas_of_group(set, &training, pods);
                let state = state_of_group(set, &training, &replicas);
                (replicas, state)
            }
            None => {
                let replicas: Vec<ReplicaReport> =
                    training.iter().flat_map(|job| replicas_of(&role(job), job, pods)).collect();
                let import = import.as_ref().map(|(job, line)| (*job, line));
                let state = state_of_jobs(&training, import, &replicas);
                (replicas, state)
            }
        };
        let (path, run) = (annotation(PATH_ANNOTATION), label(RUN_LABEL));
        Some(Self {
            name: label(JOB_LABEL),
            namespace: namespace.clone(),
            framework: label(FRAMEWORK_LABEL),
            digest: annotation(DIGEST_ANNOTATION),
            claim: annotation(CLAIM_ANNOTATION),
            directory: if is_old { path.clone() } else { format!("{path}/{}", run_directory(&run)) },
            path,
            run,
            restarts: set.map(Restarts::of),
            state,
            reason,
            done: count_done(&replicas),
            wanted: u32::try_from(replicas.len()).unwrap_or(u32::MAX),
            set_uid: set.map(|set| set.uid.clone()),
            ended: set.and_then(|set| set.ended.as_deref()).and_then(parse_seconds),
            is_resumed: annotations.contains_key(RESUMED_ANNOTATION),
            is_of_earlier_version: is_old,
            data: import.map(|(_, line)| line),
            gpus_held: held_gpus(pods),
            created: created.clone(),
            import_restarts,
            replicas,
        })
    }

    /// The newest pod of a replica.
    #[must_use]
    pub(crate) fn replica(&self, role: Option<&str>, index: u32) -> Option<&ReplicaReport> {
        let is_role = |replica: &&ReplicaReport| match role {
            Some(role) => replica.role == role,
            None => replica.role != "ps",
        };
        if role == Some(DATA_ROLE) {
            return self.data.as_ref().filter(|line| line.index == index);
        }
        self.replicas.iter().filter(is_role).find(|replica| replica.index == index)
    }

    /// Every replica of a role, or of all roles that train or serve; the import only by its role.
    #[must_use]
    pub(crate) fn replicas_of(&self, role: Option<&str>) -> Vec<&ReplicaReport> {
        if role == Some(DATA_ROLE) {
            return self.data.iter().collect();
        }
        self.replicas.iter().filter(|replica| role.is_none_or(|role| replica.role == role)).collect()
    }
}

/// GPUs of pods that have a node: a pod that waits for one holds nothing.
fn held_gpus(pods: &[Pod]) -> u32 {
    pods.iter().filter(|pod| pod.node.is_some() && !pod.phase.is_over()).map(|pod| pod.gpus).sum()
}

/// A moment as the API writes it, in seconds since 1970.
pub(crate) fn parse_seconds(text: &str) -> Option<u64> {
    u64::try_from(OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp()).ok()
}

fn count_done(replicas: &[ReplicaReport]) -> u32 {
    let done = replicas.iter().filter(|replica| replica.phase == ReplicaPhase::Succeeded).count();
    u32::try_from(done).unwrap_or(u32::MAX)
}
