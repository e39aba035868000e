//! `infra job status`: the state of a job, one line per replica.

use clap::Args;

use super::target::JobNameOptions;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::job::life::{JobReport, JobState, ReplicaPhase, ReplicaReport, Restarts};

/// Show the state of a job: one line per replica, with its node, phase, restarts and GPUs
///
/// Exits with 3 if the job failed.
#[derive(Args, Debug)]
pub(super) struct StatusArguments {
    #[command(flatten)]
    job: JobNameOptions,
}

pub(super) fn run(arguments: &StatusArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let report = block_on(async { Ok(JobReport::read(&api, &target.namespace, &target.name).await?) })?;
    match session.output {
        Output::Json => session.printer.json(&report)?,
        Output::Text | Output::Markdown | Output::Html => session.printer.data(table(&report))?,
    }
    Ok(if report.state == JobState::Failed { Exit::Unhealthy } else { Exit::Done })
}

/// A job as a table.
pub(super) fn table(report: &JobReport) -> String {
    let heading = ["ROLE", "INDEX", "PHASE", "NODE", "RESTARTS", "GPUS", ""].map(str::to_owned);
    // A job may be complete before all of its replicas are.
    let is_counted =
        report.wanted > 0 && (report.state != JobState::Complete || report.done == report.wanted);
    let done =
        if is_counted { format!(", {} of {} done", report.done, report.wanted) } else { String::new() };
    let restarts = report.restarts.as_ref().and_then(Restarts::in_words);
    let restarts = restarts.map(|words| format!(", {words}")).unwrap_or_default();
    let line = |replica: &ReplicaReport| {
        [
            replica.role.clone(),
            replica.index.to_string(),
            replica.phase.to_string(),
            replica.node.clone().unwrap_or_else(|| "-".to_owned()),
            replica.restarts.to_string(),
            replica.gpus.to_string(),
            replica.detail.clone().unwrap_or_default(),
        ]
    };
    // An import that is done has nothing more to say.
    let import = report.data.iter().filter(|line| line.phase != ReplicaPhase::Succeeded);
    let restarted = report.import_restarts.as_ref().filter(|_| import.clone().next().is_some());
    let import_restarts = restarted.and_then(Restarts::in_words);
    let import_restarts = import_restarts.map(|words| format!(", import {words}")).unwrap_or_default();
    let lines: Vec<[String; 7]> =
        std::iter::once(heading).chain(import.chain(&report.replicas).map(line)).collect();
    let reason = report.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!(
        "{}/{}: {}{reason}{done}{restarts}{import_restarts}\n{}{}",
        report.namespace,
        report.name,
        report.state.name(),
        results_location(report),
        align_columns(&lines)
    )
}

/// Where the run is; an import of an earlier version of infra did not name one.
fn results_location(report: &JobReport) -> String {
    if report.run.is_empty() {
        return String::new();
    }
    format!("run {} in {} on the claim {}\n", report.run, report.directory, report.claim)
}

/// What has changed, a line each.
pub(super) fn report_changes(before: Option<&JobReport>, now: &JobReport) -> Vec<String> {
    let mut lines = Vec::new();
    if before.is_none_or(|before| before.state != now.state || before.reason != now.reason) {
        let reason = now.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        lines.push(format!("{}: {}{reason}", now.name, now.state.name()));
    }
    for replica in &now.replicas {
        let same = before.is_some_and(|before| before.replicas.contains(replica));
        if same || (before.is_none() && replica.pod.is_none()) {
            continue;
        }
        let place = replica.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        let detail = replica.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let again = if replica.restarts > 0 {
            let times = if replica.restarts == 1 { "once" } else { "times" };
            let count = if replica.restarts == 1 { String::new() } else { format!("{} ", replica.restarts) };
            format!(", restarted {count}{times}")
        } else {
            String::new()
        };
        lines.push(format!("  {} {}: {}{place}{again}{detail}", replica.role, replica.index, replica.phase));
    }
    lines
}
