//! A submission in three steps: plan (what exists, what the cluster lacks), the user's consent, start.
//!
//! In: a workload and the API server. Out: a job whose training may begin.

use std::collections::BTreeMap;

use super::error::JobError;
use super::event::JobEvent;
use super::precondition::Precondition;
use super::preconditions::{Checked, check_preconditions};
use super::removal::{expect_no_pods, expect_not_leaving, removal_limit, remove_job, remove_leftovers};
use super::report::JobReport;
use super::run_records::{record_deletion, record_submission};
use super::state::JobState;
use super::submission_plan::{PlannedAction, SubmissionPlan};
use super::submit::{create_storage, submit};
use crate::job::ClusterFacts;
use crate::job::run::Run;
use crate::job::values::RunName;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, ObjectName};
use crate::waiting::Waiting;
use crate::well_known::TEAM_LABEL;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct SubmitRequest {
    /// The job.
    pub workload: Workload,
    /// The name of a new run, or of the earlier one that is resumed.
    pub run: RunName,
    /// Whether the user named the run, so that no other run of the same job will do.
    pub is_run_named: bool,
    /// Whether an earlier run of that name is continued.
    pub is_resumed: bool,
    /// The time now, in seconds since 1970.
    pub now: fn() -> u64,
    /// Whether a job of the same name is deleted first.
    pub replace: bool,
    /// A digest of each key of the job file, by which runs are compared.
    pub keys: BTreeMap<String, String>,
}

/// What a request comes to on the cluster as it is.
#[derive(Debug)]
pub(crate) struct Submission {
    run: Run,
    now: fn() -> u64,
    action: SubmitAction,
    /// The job that is deleted first.
    replaced: Option<JobReport>,
    keys: BTreeMap<String, String>,
    checked: Checked,
}

#[derive(Debug)]
enum SubmitAction {
    /// The same job exists and is not over.
    Attach(JobState),
    /// No job of this name exists.
    Create,
    /// Whatever exists under this name is deleted first.
    Replace(Option<JobState>),
}

impl Submission {
    /// Reads what exists under the job's name, and what the job needs; changes nothing.
    pub(crate) async fn plan(
        api: &ApiServer,
        request: SubmitRequest,
        facts: ClusterFacts<'_>,
    ) -> Result<Self, JobError> {
        let SubmitRequest { workload, run, is_run_named, is_resumed, now, replace, keys } = request;
        let workload = without_volume_of_team(api, workload).await?;
        let run = Run { is_resumed, ..Run::new(workload, run) };
        let live = match JobReport::read(api, &run.workload.namespace, &run.workload.name).await {
            Ok(report) => Some(report),
            Err(JobError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        let replaced = live.clone().filter(|_| replace);
        let action = match live {
            live if replace => SubmitAction::Replace(live.map(|live| live.state)),
            None => SubmitAction::Create,
            Some(live) => {
                expect_not_leaving(api, &run.workload.namespace, &run.workload.name).await?;
                let is_same = live.digest == run.digest && !live.state.is_over();
                let live_run: Option<RunName> = live.run.parse().ok();
                let (Some(name), true) =
                    (live_run, is_same && (!is_run_named || live.run == run.name.as_str()))
                else {
                    return Err(already_there(&live, &run));
                };
                let action = SubmitAction::Attach(live.state);
                return Ok(Self {
                    run: Run { name, is_resumed: live.is_resumed, ..run },
                    now,
                    action,
                    replaced,
                    keys,
                    checked: Checked::default(),
                });
            }
        };
        let checked = check_preconditions(api, &run, facts).await?;
        Ok(Self { run, now, action, replaced, keys, checked })
    }

    /// The name of the run.
    #[must_use]
    pub(crate) fn run(&self) -> &RunName {
        &self.run.name
    }

    /// The job.
    #[must_use]
    pub(crate) fn workload(&self) -> &Workload {
        &self.run.workload
    }

    /// What the job needs and the cluster does not have, and what else its author should know.
    #[must_use]
    pub(crate) fn preconditions(&self) -> &[Precondition] {
        &self.checked.preconditions
    }

    /// Refuses what the cluster cannot run.
    pub(crate) fn check(&self) -> Result<(), JobError> {
        let is_unmet = |precondition: &Precondition| matches!(precondition, Precondition::Unmet(_));
        if self.preconditions().iter().any(is_unmet) { Err(JobError::NotReady) } else { Ok(()) }
    }

    /// The submission as a plan; a run that the user did not name gets its name when it is submitted.
    #[must_use]
    pub(crate) fn describe(&self, is_run_named: bool) -> SubmissionPlan {
        let (action, existing) = match self.action {
            SubmitAction::Attach(state) => (PlannedAction::Attach, Some(state)),
            SubmitAction::Create => (PlannedAction::Create, None),
            SubmitAction::Replace(state) => (PlannedAction::Replace, state),
        };
        let has_name = is_run_named || action == PlannedAction::Attach;
        SubmissionPlan::new(&self.run, has_name, action, existing, &self.checked)
    }

    /// The state of a job that is deleted although it is not over: that needs the user's consent.
    #[must_use]
    pub(crate) fn interrupts(&self) -> Option<JobState> {
        match self.action {
            SubmitAction::Replace(state) => state.filter(|state| !state.is_over()),
            SubmitAction::Attach(_) | SubmitAction::Create => None,
        }
    }

    /// Whether the job is there, so that nothing of it is created.
    #[must_use]
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.action, SubmitAction::Attach(_))
    }

    /// Creates the claim that the job brings, if it does, before anything else: its code goes there.
    pub(crate) async fn create_storage(
        &self,
        api: &ApiServer,
        waiting: &Waiting,
        tell: &(dyn Fn(JobEvent) + Sync),
    ) -> Result<(), JobError> {
        create_storage(api, &self.run, waiting, tell).await
    }

    /// Deletes what is in the way and creates the job; returns when training may begin.
    pub(crate) async fn start(
        &self,
        api: &ApiServer,
        waiting: &Waiting,
        tell: &(dyn Fn(JobEvent) + Sync),
    ) -> Result<(), JobError> {
        let (namespace, name) = (&self.run.workload.namespace, &self.run.workload.name);
        match self.action {
            SubmitAction::Attach(state) => tell(JobEvent::Attached(state)),
            SubmitAction::Create => {
                expect_no_pods(api, namespace, name).await?;
                remove_leftovers(api, &self.run).await?;
            }
            SubmitAction::Replace(state) => {
                if let Some(state) = state {
                    tell(JobEvent::Deleting(state));
                }
                if let Some(replaced) = &self.replaced {
                    tell_unrecorded(record_deletion(api, replaced, (self.now)()).await, tell);
                }
                let waiting = waiting.at_most(removal_limit(api, namespace, name).await?);
                let left = |left: &[_]| tell(JobEvent::Terminating(left.to_vec()));
                remove_job(api, namespace, name, &waiting, &left).await?;
            }
        }
        let is_there = self.is_there();
        if !is_there {
            let recorded = record_submission(api, &self.run, &self.keys, (self.now)()).await;
            tell_unrecorded(recorded, tell);
        }
        submit(api, &self.run, self.now, is_there, waiting, tell).await
    }
}

/// A run that is not in the list of runs still trains.
fn tell_unrecorded(recorded: Result<(), JobError>, tell: &(dyn Fn(JobEvent) + Sync)) {
    if let Err(error) = recorded {
        tell(JobEvent::NotRecorded(error.to_string()));
    }
}

/// A team has its claim, on a directory of its own: the job creates none.
async fn without_volume_of_team(api: &ApiServer, mut workload: Workload) -> Result<Workload, JobError> {
    if workload.volume.is_some() {
        let namespace = api.object(&ObjectName::new("Namespace", "", &workload.namespace)).await?;
        if namespace.is_some_and(|namespace| !namespace["metadata"]["labels"][TEAM_LABEL].is_null()) {
            workload.volume = None;
        }
    }
    Ok(workload)
}

fn already_there(report: &JobReport, run: &Run) -> JobError {
    let is_same = report.digest == run.digest;
    let what = match is_same {
        _ if report.is_of_earlier_version => "a job of this name that an earlier version of infra submitted",
        true => "this very job",
        false => "another job of this name",
    };
    JobError::AlreadyThere { what, name: report.name.clone(), state: report.state.name() }
}
