//! The runs of a job, kept in a ConfigMap of its namespace: the JobSet of a run is deleted a week after its end, or with the next run.
//!
//! In: what was submitted, and how it was seen. Out: the newest runs, oldest first. Whoever submits, follows, deletes or lists writes what
//! they see; nothing runs in the cluster for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::JobError;
use super::report::JobReport;
use super::restarts::Restarts;
use crate::job::names::{MANAGER, MANAGER_LABEL, RUNS_LABEL};
use crate::job::run::Run;
use crate::kube::{ApiServer, KubeError, ObjectName};

/// The most runs that are kept.
const MOST_RUNS: usize = 50;

/// What is known of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunRecord {
    /// Counts the runs of a job: two may be submitted in one second.
    #[serde(default)]
    pub(super) number: u64,
    /// When it was submitted, in seconds since 1970.
    pub(super) submitted: u64,
    /// How it was seen last; a later version may know more states.
    pub(super) state: String,
    /// When it ended, in seconds since 1970.
    #[serde(default)]
    pub(super) ended: Option<u64>,
    /// How often its group was restarted.
    #[serde(default)]
    pub(super) restarts: Option<Restarts>,
    /// Whether it continued an earlier run of the same name.
    #[serde(default)]
    pub(super) resumed: bool,
    /// The digest of each key of the job file; values may be secret.
    #[serde(default)]
    pub(super) keys: BTreeMap<String, String>,
    /// The claim.
    pub(super) claim: String,
    /// The directory of the run there.
    pub(super) directory: String,
}

impl RunRecord {
    /// Later runs are greater.
    pub(super) fn order(&self) -> (u64, u64) {
        (self.number, self.submitted)
    }
}

/// The state of a run whose job was deleted before its end.
pub(super) const DELETED: &str = "deleted";

fn records_name(namespace: &str, job: &str) -> ObjectName {
    ObjectName::new("ConfigMap", namespace, &format!("{job}-runs"))
}

/// Every run that is known, by its name. An entry that is not ours to understand is left out.
pub(super) async fn read_records(
    api: &ApiServer,
    namespace: &str,
    job: &str,
) -> Result<BTreeMap<String, RunRecord>, JobError> {
    let name = records_name(namespace, job);
    let Some(object) = api.object(&name).await? else { return Ok(BTreeMap::new()) };
    refuse_foreign(&name, &object)?;
    let entries = object["data"].as_object().cloned().unwrap_or_default();
    let parse =
        |(run, text): (String, Value)| Some((run, serde_json::from_str::<RunRecord>(text.as_str()?).ok()?));
    Ok(entries.into_iter().filter_map(parse).collect())
}

fn refuse_foreign(name: &ObjectName, object: &Value) -> Result<(), JobError> {
    if object["metadata"]["labels"][MANAGER_LABEL] == MANAGER {
        return Ok(());
    }
    Err(JobError::Foreign { object: name.clone() })
}

/// Records that a run begins. The oldest runs make room for it.
pub(crate) async fn record_submission(
    api: &ApiServer,
    run: &Run,
    keys: &BTreeMap<String, String>,
    now: u64,
) -> Result<(), JobError> {
    let workload = &run.workload;
    let name = records_name(&workload.namespace, &workload.name);
    let known = read_records(api, &workload.namespace, &workload.name).await?;
    let record = RunRecord {
        number: known.values().map(|record| record.number).max().unwrap_or_default() + 1,
        submitted: now,
        state: "starting".to_owned(),
        ended: None,
        restarts: None,
        resumed: run.is_resumed,
        keys: keys.clone(),
        claim: workload.claim.clone(),
        directory: run.directory_on_claim(),
    };
    // Only its metadata: what is applied again without an entry would delete the entry.
    api.apply(&json!({
        "apiVersion": "v1",
        "kind": name.kind,
        "metadata": {
            "name": name.name,
            "namespace": name.namespace,
            "labels": {MANAGER_LABEL: MANAGER, RUNS_LABEL: workload.name},
        },
    }))
    .await?;
    let mut entries = json!({run.name.as_str(): entry_of(&record)});
    let mut others: Vec<(&String, &RunRecord)> =
        known.iter().filter(|(other, _)| other.as_str() != run.name.as_str()).collect();
    others.sort_by_key(|(_, record)| record.order());
    let surplus = (others.len() + 1).saturating_sub(MOST_RUNS);
    for (oldest, _) in others.iter().take(surplus) {
        entries[oldest.as_str()] = Value::Null;
    }
    api.merge(&name, &json!({"data": entries})).await?;
    Ok(())
}

fn entry_of(record: &RunRecord) -> String {
    json!(record).to_string()
}

/// Records how a run is, if that has changed. Whoever may only read leaves it to others.
pub(crate) async fn record_state(api: &ApiServer, report: &JobReport) -> Result<(), JobError> {
    write_seen(api, report, report.state.name(), report.ended).await
}

/// Records that a run ends now because its job is deleted, unless it has ended before.
pub(crate) async fn record_deletion(api: &ApiServer, report: &JobReport, now: u64) -> Result<(), JobError> {
    if report.state.is_over() {
        return record_state(api, report).await;
    }
    write_seen(api, report, DELETED, Some(now)).await
}

async fn write_seen(
    api: &ApiServer,
    report: &JobReport,
    state: &str,
    ended: Option<u64>,
) -> Result<(), JobError> {
    let known = read_records(api, &report.namespace, &report.name).await?;
    let Some(record) = known.get(&report.run) else { return Ok(()) };
    let seen = RunRecord { state: state.to_owned(), ended, restarts: report.restarts, ..record.clone() };
    if seen == *record {
        return Ok(());
    }
    let entries = json!({report.run.as_str(): entry_of(&seen)});
    let name = records_name(&report.namespace, &report.name);
    match api.merge(&name, &json!({"data": entries})).await {
        Err(KubeError::Refused { status: 403 | 404, .. }) => Ok(()),
        merged => Ok(merged.map(|_| ())?),
    }
}
