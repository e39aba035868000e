//! What the log of one pod and the logs of all have in common: printing to the end, and why there is nothing to print.

use std::time::Duration;

use super::log_progress::LogProgress;
use crate::cli::failure::Refusal;
use crate::cli::terminal::printer::{LogPrinter, Printer};
use crate::job::life::{JobReport, ReplicaPhase, ReplicaReport};
use crate::kube::{Body, Contact, KubeError};

/// The pause between two questions whether a replica has been restarted.
pub(super) const PAUSE: Duration = Duration::from_secs(2);
/// The longest silence in a log that is not followed: all of it is there already.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

/// Whether a replica may have printed something.
pub(super) fn has_started(replica: &ReplicaReport) -> bool {
    !matches!(replica.phase, ReplicaPhase::Pending | ReplicaPhase::Held)
}

/// Whether nothing more will be printed.
pub(super) fn is_over(report: &JobReport, replica: &ReplicaReport) -> bool {
    report.state.is_over() || replica.phase == ReplicaPhase::Succeeded
}

/// Why there is nothing to print.
pub(super) fn explain_silence(report: &JobReport, replica: &ReplicaReport) -> Refusal {
    let (role, index) = (&replica.role, replica.index);
    if is_over(report, replica) {
        return Refusal::new(format!(
            "{role} {index} of job '{}' no longer has a pod, and its log was deleted with it",
            report.name
        ))
        .help(suggest_kept_log(report, replica));
    }
    let detail = replica.detail.clone().or_else(|| report.reason.clone());
    let detail = detail.unwrap_or_else(|| replica.phase.to_string());
    Refusal::new(format!("{role} {index} has not started: {detail}")).help("`--follow` waits for it")
}

/// Where the log of a pod that is gone can still be read.
fn suggest_kept_log(report: &JobReport, replica: &ReplicaReport) -> String {
    match &report.restarts {
        Some(_) => format!(
            "`infra job logs {} --role {} --index {} --attempt {}` reads what it printed from the claim",
            report.name, replica.role, replica.index, replica.restarts
        ),
        None => format!("`infra job fetch {}` downloads what it wrote", report.name),
    }
}

/// The API still knows a pod whose machine is gone, and then complains about a pod with the name of the machine.
pub(super) fn explain_lost_machine(
    error: anyhow::Error,
    report: &JobReport,
    replica: &ReplicaReport,
) -> anyhow::Error {
    let Some(node) = &replica.node else { return error };
    match error.downcast_ref::<KubeError>() {
        Some(refused) if refused.status() == Some(404) && refused.to_string().contains(node.as_str()) => {
            Refusal::new(format!(
                "{} {} of job '{}' ran on {node}; that machine is gone, and the log with it",
                replica.role, replica.index, report.name
            ))
            .help(suggest_kept_log(report, replica))
            .into()
        }
        _ => error,
    }
}

pub(super) fn report_contact(contact: &Contact, printer: &Printer) {
    match contact {
        Contact::Lost(why) => printer.warning(format_args!("{why}; retrying")),
        Contact::Found => printer.note("-- the connection is back; some lines may repeat --"),
    }
}

/// Prints a log to its end. If a followed log breaks off, the progress says what is left.
pub(super) async fn copy_log(
    opened: Result<Body, KubeError>,
    follow: bool,
    mut log: LogPrinter,
    printer: &Printer,
    progress: &mut LogProgress,
) -> anyhow::Result<()> {
    let copied = async {
        let mut body = opened?;
        loop {
            let next = if follow { body.chunk().await? } else { body.chunk_within(LONGEST_SILENCE).await? };
            let Some(chunk) = next else { break };
            log.print(&chunk)?;
            progress.receive();
        }
        anyhow::Ok(())
    };
    let copied = copied.await;
    log.finish()?;
    match copied {
        Err(error) if follow => match error.downcast_ref::<KubeError>() {
            Some(broken) if broken.is_passing() => {
                printer.note("-- the connection broke; some lines may repeat --");
                progress.break_off();
                return Ok(());
            }
            // A pod that ended before its container began has no log.
            Some(refused) if matches!(refused.status(), Some(400 | 404)) => {
                printer.note(format_args!("-- {refused} --"));
            }
            _ => return Err(error),
        },
        copied => copied?,
    }
    progress.end();
    Ok(())
}
