//! Submits a job: storage and scripts, then its data while training is held back, then training; and follows it to its end.

use serde_json::{Value, json};

use super::error::JobError;
use super::report::{JobReport, JobState};
use crate::job::names::{data_job_name, role_jobs_of_workload};
use crate::job::objects::objects_of;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, JobEnd, ObjectName, Propagation};
use crate::waiting::{Pace, WaitEnd, Waiting};

/// Lines of a pod's log that explain a failure.
const LAST_LINES: u32 = 15;

/// What happens while a job runs.
#[derive(Clone, Debug)]
pub enum JobEvent {
    /// An object was applied.
    Applied(ObjectName),
    /// The data is being imported.
    Importing,
    /// Training may begin.
    Released,
    /// The job is otherwise than before.
    Changed(Box<JobReport>),
}

/// How to submit.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitOptions {
    /// Remove an earlier job of the same name first.
    pub replace: bool,
}

/// What submitting found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// It was sent.
    Sent,
    /// The same job is there already.
    AlreadyThere,
}

/// How a followed job ended.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The job at its end.
    pub report: JobReport,
    /// The last lines of the pod that failed first, if one did.
    pub last_lines: Vec<String>,
}

/// Sends a job. A second time it finds itself there and does nothing.
pub async fn submit(
    api: &ApiServer,
    workload: &Workload,
    options: SubmitOptions,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<Submission, JobError> {
    match JobReport::read(api, &workload.namespace, &workload.name).await {
        Ok(live) if live.digest == workload.digest && !live.state.is_over() => {
            release_after_data(api, workload, waiting, tell).await?;
            return Ok(Submission::AlreadyThere);
        }
        Ok(_) if options.replace => {
            super::removal::remove_job(api, &workload.namespace, &workload.name, waiting).await?;
        }
        Ok(live) => return Err(JobError::Refused(vec![already_there(&live, workload)])),
        Err(JobError::Missing { .. }) => {}
        Err(error) => return Err(error),
    }
    forget_old_import(api, workload).await?;
    let holds_back = workload.data.is_some() && workload.queue.is_none();
    for object in objects_of(workload) {
        let name = ObjectName::of(&object);
        if !is_training(workload, &name) {
            api.apply(&object).await?;
            tell(JobEvent::Applied(name));
        } else if holds_back {
            api.apply(&held_back(object)).await?;
            tell(JobEvent::Applied(name));
        } else if workload.data.is_none() {
            api.apply(&object).await?;
            tell(JobEvent::Applied(name));
        }
    }
    release_after_data(api, workload, waiting, tell).await?;
    Ok(Submission::Sent)
}

fn already_there(live: &JobReport, workload: &Workload) -> String {
    let what = if live.digest == workload.digest { "this job" } else { "another job of this name" };
    format!(
        "{what} is there already, {}; `infra job delete {}` removes it, `--replace` does that first",
        live.state.name(),
        live.name
    )
}

fn is_training(workload: &Workload, name: &ObjectName) -> bool {
    name.kind == "Job" && role_jobs_of_workload(workload).any(|job| job == name.name)
}

fn held_back(mut object: Value) -> Value {
    object["spec"]["suspend"] = json!(true);
    object
}

/// A finished import cannot be changed, only made again; it finds its stamp if there is nothing to do.
async fn forget_old_import(api: &ApiServer, workload: &Workload) -> Result<(), JobError> {
    let name = ObjectName::new("Job", &workload.namespace, &data_job_name(&workload.name));
    api.remove(&name, Propagation::Background).await?;
    Ok(())
}

/// Waits for the data and lets training begin. Whoever left in between comes back to this.
async fn release_after_data(
    api: &ApiServer,
    workload: &Workload,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    if workload.data.is_none() {
        return Ok(());
    }
    wait_for_data(api, workload, waiting, tell).await?;
    for object in objects_of(workload) {
        let name = ObjectName::of(&object);
        if !is_training(workload, &name) {
            continue;
        }
        if workload.queue.is_some() {
            // A queue would start it before its data is there.
            if api.object(&name).await?.is_none() {
                api.apply(&object).await?;
                tell(JobEvent::Applied(name));
            }
        } else {
            api.merge(&name, &json!({"spec": {"suspend": false}})).await?;
        }
    }
    tell(JobEvent::Released);
    Ok(())
}

async fn wait_for_data(
    api: &ApiServer,
    workload: &Workload,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    let name = data_job_name(&workload.name);
    let mut pace = Pace::of_moment();
    let mut told = false;
    loop {
        let selector = format!("{}={}", crate::job::names::JOB_LABEL, workload.name);
        let jobs = api.jobs(Some(&workload.namespace), &selector).await?;
        // A day after it was done it is removed; training that is there was released by then.
        let Some(job) = jobs.iter().find(|job| job.name == name) else { return Ok(()) };
        match &job.end {
            Some(JobEnd::Complete) => return Ok(()),
            Some(JobEnd::Failed { reason }) => {
                let lines = last_lines_of_role(api, workload, "data").await;
                let reason = lines.last().cloned().unwrap_or_else(|| reason.clone());
                return Err(JobError::Data { name: workload.name.clone(), reason });
            }
            None => {}
        }
        if !told {
            tell(JobEvent::Importing);
            told = true;
        }
        waiting.pause(pace.next_pause()).await.map_err(|end| left(&workload.name, end))?;
    }
}

/// Follows a job until it is over.
pub async fn follow(
    api: &ApiServer,
    namespace: &str,
    name: &str,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<Followed, JobError> {
    let mut pace = Pace::of_stack();
    let mut seen: Option<String> = None;
    loop {
        match JobReport::read(api, namespace, name).await {
            Ok(report) => {
                let looks = format!("{:?} {:?} {:?}", report.state, report.reason, report.replicas);
                if seen.as_ref() != Some(&looks) {
                    tell(JobEvent::Changed(Box::new(report.clone())));
                    seen = Some(looks);
                    pace = Pace::of_stack();
                }
                if report.state.is_over() {
                    let last_lines = explain(api, &report).await;
                    return Ok(Followed { report, last_lines });
                }
            }
            // A control plane that is being replaced answers again soon.
            Err(JobError::Kube(error)) if error.is_unreachable() && seen.is_some() => {}
            Err(error) => return Err(error),
        }
        waiting.pause(pace.next_pause()).await.map_err(|end| left(name, end))?;
    }
}

fn left(name: &str, end: WaitEnd) -> JobError {
    JobError::StillRunning { name: name.to_owned(), end }
}

/// The end of the log of the replica that failed first.
async fn explain(api: &ApiServer, report: &JobReport) -> Vec<String> {
    if report.state != JobState::Failed {
        return Vec::new();
    }
    let failed = report.replicas.iter().find(|replica| replica.phase == "Failed");
    match failed.and_then(|replica| replica.pod.as_ref()) {
        Some(pod) => last_lines(api, &report.namespace, pod).await,
        None => Vec::new(),
    }
}

async fn last_lines_of_role(api: &ApiServer, workload: &Workload, role: &str) -> Vec<String> {
    use crate::job::names::{JOB_LABEL, ROLE_LABEL};
    let selector = format!("{JOB_LABEL}={},{ROLE_LABEL}={role}", workload.name);
    let mut pods = api.pods(Some(&workload.namespace), &selector).await.unwrap_or_default();
    pods.sort_by(|one, other| one.made.cmp(&other.made));
    match pods.last() {
        Some(pod) => last_lines(api, &workload.namespace, &pod.name).await,
        None => Vec::new(),
    }
}

/// What explains a failure must not become one: a pod that is gone has nothing to say.
async fn last_lines(api: &ApiServer, namespace: &str, pod: &str) -> Vec<String> {
    let Ok(mut body) = api.pod_log(namespace, pod, false, Some(LAST_LINES)).await else { return Vec::new() };
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = body.chunk().await {
        text.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
