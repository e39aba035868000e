//! Explains a job: reads what is left of it on the cluster, and puts it together with what its launchers left on the claim.

use super::advice::advise;
use super::attempt_records::{AttemptRecord, RecordedEnd};
use super::cause::{cause_of_pod, cause_of_record, first_failed};
use super::explanation::{Cause, JobExplanation};
use super::job_events::events_of;
use super::log_tail::last_lines;
use super::report::JobReport;
use super::state::JobState;
use super::waits::waits_of;
use crate::kube::ApiServer;

/// Whether only the claim has what happened: pods of earlier attempts are gone, and pods of a group end together, in no order.
#[must_use]
pub(crate) fn needs_records(report: &JobReport) -> bool {
    let Some(restarts) = &report.restarts else { return false };
    let is_told_by_pods = report.wanted == 1 && first_failed(report).is_some();
    restarts.attempt() > 0 || (report.state == JobState::Failed && !is_told_by_pods)
}

/// Explains a job, with the records of its attempts as far as they could be read.
pub(crate) async fn explain_job(
    api: &ApiServer,
    report: JobReport,
    records: &[AttemptRecord],
) -> JobExplanation {
    let mut causes = ended_attempts(&report, records);
    if let Some(cause) = cause_of_failure(api, &report, records).await {
        causes.retain(|earlier| earlier.attempt != cause.attempt);
        causes.push(cause);
    }
    let first_cause = if report.state == JobState::Complete { None } else { causes.pop() };
    let waits_for = waits_of(&report);
    JobExplanation {
        next: advise(&report, first_cause.as_ref(), &waits_for),
        events: if report.state == JobState::Complete { Vec::new() } else { events_of(api, &report).await },
        name: report.name,
        namespace: report.namespace,
        run: report.run,
        state: report.state,
        reason: report.reason,
        restarts: report.restarts,
        first_cause,
        earlier: causes,
        waits_for,
    }
}

/// What ended each attempt that is over, oldest first.
fn ended_attempts(report: &JobReport, records: &[AttemptRecord]) -> Vec<Cause> {
    let newest = report.restarts.map_or(0, |restarts| restarts.attempt());
    let has_ended = |record: &&AttemptRecord| {
        record.attempt < newest || (record.attempt == newest && report.state == JobState::Failed)
    };
    records.iter().filter(has_ended).map(|record| cause_of_record(report, record)).collect()
}

/// Why a failed job failed, if its pods show it better than its launchers: a launcher that was killed wrote nothing.
async fn cause_of_failure(api: &ApiServer, report: &JobReport, records: &[AttemptRecord]) -> Option<Cause> {
    let replica = first_failed(report)?;
    let record = records.iter().find(|record| record.attempt == replica.restarts);
    if record.is_some_and(|record| matches!(record.how, RecordedEnd::Exited | RecordedEnd::Late)) {
        return None;
    }
    let lines = match &replica.pod {
        Some(pod) => last_lines(api, &report.namespace, pod).await,
        None => Vec::new(),
    };
    Some(cause_of_pod(report, replica, lines))
}
