//! Creates the objects of a job: storage and scripts, then its data, then the JobSet that trains.

use std::time::Duration;

use serde_json::{Value, json};

use super::error::JobError;
use super::event::JobEvent;
use super::log_tail::last_lines;
use super::replica::ReplicaPhase;
use super::report::JobReport;
use crate::job::names::{ROLE_LABEL, TENSORBOARD_ROLE};
use crate::job::objects::objects_of;
use crate::job::run::Run;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, KubeError, ObjectName, Outage};
use crate::waiting::{Pace, WaitEnd, Waiting};

/// A volume is bound to its claim within seconds.
const BINDING_LIMIT: Duration = Duration::from_mins(1);

/// An object of a job, and whether it exists.
struct Step {
    name: ObjectName,
    object: Value,
    is_there: bool,
}

impl Step {
    /// Whether the object does a part of the job.
    fn works(&self) -> bool {
        matches!(self.name.kind.as_str(), "Job" | "JobSet") && !is_tensorboard(&self.object)
    }

    fn trains(&self) -> bool {
        self.name.kind == "JobSet"
    }
}

/// Creates the objects of a job, or those that are missing of an existing one. Training begins when the data is imported; its deadline
/// is counted from then.
pub(super) async fn submit(
    api: &ApiServer,
    run: &Run,
    now: fn() -> u64,
    is_there: bool,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    let workload = &run.workload;
    let steps = read_steps(api, run, is_there).await?;
    // It was deleted meanwhile: creating it again would not be attaching to it.
    if is_there && !steps.iter().any(|step| step.works() && step.is_there) {
        return Err(JobError::Removed { name: workload.name.clone() });
    }
    let trains_already = steps.iter().any(|step| step.trains() && step.is_there);
    let missing = |step: &&Step| !step.is_there && !step.trains();
    for step in steps.iter().filter(missing) {
        // Imported data has a marker; an import Job that was deleted after it was done need not run again.
        if !(step.works() && trains_already) {
            apply_object(api, &step.name, &step.object, tell).await?;
        }
    }
    if trains_already {
        return Ok(());
    }
    if workload.data.is_some() {
        wait_for_data(api, workload, waiting, tell).await?;
        tell(JobEvent::Imported);
    }
    let started = run.ending_after(now());
    for object in objects_of(&started).iter().filter(|object| object["kind"] == "JobSet") {
        apply_object(api, &ObjectName::of(object), object, tell).await?;
    }
    Ok(())
}

/// Creates the volume and the claim of the job's namespace, if the job brings them, and waits until they are bound: what comes before
/// the other objects may need them.
pub(super) async fn create_storage(
    api: &ApiServer,
    run: &Run,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    let workload = &run.workload;
    if workload.volume.is_none() {
        return Ok(());
    }
    for step in read_steps(api, run, false).await? {
        if step.name.kind.starts_with("PersistentVolume") && !step.is_there {
            apply_object(api, &step.name, &step.object, tell).await?;
        }
    }
    let (waiting, mut pace) = (waiting.at_most(BINDING_LIMIT), Pace::of_moment());
    loop {
        let phase = api.claim_phase(&workload.namespace, &workload.claim).await?;
        // Whoever uses a claim that is not bound says so.
        if phase.as_deref() == Some("Bound") || waiting.pause(pace.next_pause()).await.is_err() {
            return Ok(());
        }
    }
}

async fn read_steps(api: &ApiServer, run: &Run, is_there: bool) -> Result<Vec<Step>, JobError> {
    let mut steps = Vec::new();
    for object in objects_of(run) {
        let name = ObjectName::of(&object);
        // Storage and a TensorBoard are kept as they are; whatever else is left of an earlier job is created again.
        let is_kept = name.kind.starts_with("PersistentVolume") || is_tensorboard(&object);
        let live = if is_there || is_kept { api.object(&name).await? } else { None };
        if let Some(volume) = live.as_ref().filter(|_| name.kind == "PersistentVolume") {
            release_volume(api, &name, volume).await?;
        }
        steps.push(Step { name, object, is_there: live.is_some() });
    }
    Ok(steps)
}

fn is_tensorboard(object: &Value) -> bool {
    object["metadata"]["labels"][ROLE_LABEL] == TENSORBOARD_ROLE
}

/// A volume remembers a claim that was deleted with its namespace, and would never be bound to the new one.
async fn release_volume(api: &ApiServer, name: &ObjectName, volume: &Value) -> Result<(), JobError> {
    if volume["status"]["phase"] == "Released" {
        api.merge(name, &json!({"spec": {"claimRef": {"uid": null, "resourceVersion": null}}})).await?;
    }
    Ok(())
}

async fn apply_object(
    api: &ApiServer,
    name: &ObjectName,
    object: &Value,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    let Err(error) = api.apply(object).await else {
        tell(JobEvent::Applied(name.clone()));
        return Ok(());
    };
    match error {
        // What cannot be changed is there; what is not there was refused for its own sake.
        KubeError::Refused { status: 409 | 422, message, .. }
            if matches!(name.kind.as_str(), "Job" | "JobSet") && api.object(name).await?.is_some() =>
        {
            Err(JobError::Overtaken { object: name.clone(), reason: message })
        }
        error => Err(error.into()),
    }
}

async fn wait_for_data(
    api: &ApiServer,
    workload: &Workload,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), JobError> {
    let (mut pace, mut outage) = (Pace::of_moment(), Outage::default());
    let mut told = false;
    let mut waits_for = None;
    let mut restarts = None;
    loop {
        let read = JobReport::read(api, &workload.namespace, &workload.name).await;
        let report = outage.tolerate(read, |contact| tell(JobEvent::Contact(contact)))?;
        if let Some(report) = report {
            let Some(line) = &report.data else {
                return Err(JobError::Removed { name: workload.name.clone() });
            };
            match line.phase {
                ReplicaPhase::Succeeded => return Ok(()),
                ReplicaPhase::Failed => return Err(data_failure(api, &report).await),
                _ => {}
            }
            if !told {
                tell(JobEvent::Importing);
                told = true;
            }
            if report.import_restarts != restarts {
                restarts = report.import_restarts;
                if let Some(restarts) = restarts {
                    tell(JobEvent::ImportRestarted(restarts));
                }
            }
            if line.detail.is_some() && line.detail != waits_for {
                waits_for.clone_from(&line.detail);
                tell(JobEvent::ImportWaits(line.detail.clone().unwrap_or_default()));
            }
        }
        let go_on = waiting.pause(pace.next_pause()).await;
        go_on.map_err(|end: WaitEnd| JobError::StillImporting { name: workload.name.clone(), end })?;
    }
}

/// The last line of a failed import says why; without a pod, its Job does.
async fn data_failure(api: &ApiServer, report: &JobReport) -> JobError {
    let pod = report.data.as_ref().and_then(|line| line.pod.as_ref());
    let lines = match pod {
        Some(pod) => last_lines(api, &report.namespace, pod).await,
        None => Vec::new(),
    };
    let said = lines.iter().rev().find(|line| !line.trim().is_empty());
    let reason = said.map(|line| line.trim_start_matches("infra: ").to_owned());
    let reason = reason.or_else(|| report.reason.clone()).unwrap_or_else(|| "no reason was given".to_owned());
    JobError::Data { name: report.name.clone(), reason }
}
