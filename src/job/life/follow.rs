//! Follows a job to its end, and finds the replica that failed first.

use super::cause::first_failed;
use super::error::JobError;
use super::event::JobEvent;
use super::log_tail::last_lines;
use super::replica::ReplicaReport;
use super::report::JobReport;
use crate::kube::{ApiServer, Outage};
use crate::waiting::{Pace, Waiting};

/// How a followed job ended.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// The job at its end.
    pub report: JobReport,
    /// The replica that failed first, if one did.
    pub culprit: Option<ReplicaReport>,
    /// The last lines it printed.
    pub last_lines: Vec<String>,
}

/// Follows a job until it is over.
pub(crate) async fn follow(
    api: &ApiServer,
    namespace: &str,
    name: &str,
    waiting: &Waiting,
    tell: &(dyn Fn(JobEvent) + Sync),
) -> Result<Followed, JobError> {
    let (mut pace, mut outage) = (Pace::of_stack(), Outage::default());
    let mut seen: Option<JobReport> = None;
    loop {
        let read = match JobReport::read(api, namespace, name).await {
            Err(JobError::Missing { name, .. }) if seen.is_some() => Err(JobError::Removed { name }),
            read => read,
        };
        if let Some(report) = outage.tolerate(read, |contact| tell(JobEvent::Contact(contact)))? {
            if seen.as_ref().is_none_or(|before| has_changed(before, &report)) {
                tell(JobEvent::Changed(Box::new(report.clone())));
                seen = Some(report.clone());
                pace = Pace::of_stack();
            }
            if report.state.is_over() {
                return Ok(explain_end_of_job(api, report).await);
            }
        }
        let go_on = waiting.pause(pace.next_pause()).await;
        go_on.map_err(|end| JobError::StillRunning { name: name.to_owned(), end })?;
    }
}

/// Whether a user would see a difference.
fn has_changed(before: &JobReport, now: &JobReport) -> bool {
    before.state != now.state || before.reason != now.reason || before.replicas != now.replicas
}

async fn explain_end_of_job(api: &ApiServer, report: JobReport) -> Followed {
    let culprit = first_failed(&report).cloned();
    let last_lines = match culprit.as_ref().and_then(|replica| replica.pod.as_ref()) {
        Some(pod) => last_lines(api, &report.namespace, pod).await,
        None => Vec::new(),
    };
    Followed { report, culprit, last_lines }
}
