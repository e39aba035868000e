//! The runs of a job: those that were recorded, and the one that is on the cluster now.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::JobError;
use super::report::JobReport;
use super::restarts::Restarts;
use super::run_records::{DELETED, RunRecord, read_records, record_state};
use super::state::JobState;
use crate::kube::ApiServer;

/// A run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunReport {
    /// The name of the run.
    pub run: String,
    /// The state of the run.
    pub state: RunState,
    /// When it was submitted, in seconds since 1970; null for a run that an earlier version of infra submitted.
    pub submitted: Option<u64>,
    /// When it ended, in seconds since 1970; null if it has not, or nobody saw it.
    pub ended: Option<u64>,
    /// How often the whole group was restarted; null if nobody saw it.
    pub restarts: Option<Restarts>,
    /// Whether it continued an earlier run of the same name.
    pub resumed: bool,
    /// The keys of the job file that differ from the run before, as `env.LR`; null for the first run, or if one of both is not known.
    pub changed: Option<Vec<String>>,
    /// The claim that the run wrote to.
    pub claim: String,
    /// The directory of the run on the claim.
    pub directory: String,
}

/// The state of a run: that of its job, or what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunState {
    /// The data is being imported.
    Importing,
    /// The job is held back, by its queue or until its data is imported.
    Held,
    /// Pods are waiting for machines, images or each other.
    Starting,
    /// All pods are running.
    Running,
    /// The job is complete.
    Complete,
    /// The job failed.
    Failed,
    /// The job was deleted before its end.
    Deleted,
    /// The job is gone, and nobody saw how it ended.
    Unknown,
}

impl RunState {
    /// The name of the state.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Importing => "importing",
            Self::Held => "held",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Deleted => "deleted",
            Self::Unknown => "unknown",
        }
    }
}

impl From<JobState> for RunState {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Importing => Self::Importing,
            JobState::Held => Self::Held,
            JobState::Starting => Self::Starting,
            JobState::Running => Self::Running,
            JobState::Complete => Self::Complete,
            JobState::Failed => Self::Failed,
        }
    }
}

/// Reads every run of a job, oldest first, and records how the one on the cluster is.
pub(crate) async fn read_runs(
    api: &ApiServer,
    namespace: &str,
    name: &str,
) -> Result<Vec<RunReport>, JobError> {
    let live = match JobReport::read(api, namespace, name).await {
        Ok(report) => Some(report),
        Err(JobError::Missing { .. }) => None,
        Err(error) => return Err(error),
    };
    if let Some(report) = &live {
        record_state(api, report).await?;
    }
    let records = read_records(api, namespace, name).await?;
    let runs = list_runs(records, live.as_ref());
    if runs.is_empty() {
        return Err(JobError::Missing { name: name.to_owned(), namespace: namespace.to_owned() });
    }
    Ok(runs)
}

fn list_runs(records: BTreeMap<String, RunRecord>, live: Option<&JobReport>) -> Vec<RunReport> {
    let mut all: Vec<(String, RunRecord)> = records.into_iter().collect();
    all.sort_by_key(|(_, record)| record.order());
    let mut runs: Vec<RunReport> = Vec::new();
    let mut before: Option<BTreeMap<String, String>> = None;
    for (run, record) in all {
        let changed = before.as_ref().map(|before| changed_keys(before, &record.keys));
        before = Some(record.keys.clone());
        runs.push(RunReport {
            state: state_of(&run, &record, live),
            run,
            submitted: Some(record.submitted),
            ended: record.ended,
            restarts: record.restarts,
            resumed: record.resumed,
            changed,
            claim: record.claim,
            directory: record.directory,
        });
    }
    // One that an earlier version of infra submitted was not recorded.
    if let Some(report) = live.filter(|report| runs.iter().all(|run| run.run != report.run)) {
        runs.push(RunReport {
            run: report.run.clone(),
            state: report.state.into(),
            submitted: None,
            ended: report.ended,
            restarts: report.restarts,
            resumed: false,
            changed: None,
            claim: report.claim.clone(),
            directory: report.directory.clone(),
        });
    }
    runs
}

fn state_of(run: &str, record: &RunRecord, live: Option<&JobReport>) -> RunState {
    if let Some(report) = live.filter(|report| report.run == run) {
        return report.state.into();
    }
    match record.state.as_str() {
        "complete" => RunState::Complete,
        "failed" => RunState::Failed,
        DELETED => RunState::Deleted,
        _ => RunState::Unknown,
    }
}

/// The keys that one has and the other has not, or whose values differ.
fn changed_keys(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut keys: Vec<String> = before.keys().chain(now.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| before.get(key) != now.get(key));
    keys
}
