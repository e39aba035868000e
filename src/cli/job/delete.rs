//! `infra job delete`: deletes a job; its files stay.

use clap::Args;

use super::target::{JobNameOptions, seconds_now};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::life::{JobError, JobReport, record_deletion, removal_limit, removal_of, remove_job};
use crate::kube::ObjectName;

/// Delete a job and everything that belongs to it except its files
#[derive(Args, Debug)]
pub(super) struct DeleteArguments {
    #[command(flatten)]
    job: JobNameOptions,
}

pub(super) fn run(arguments: &DeleteArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let (name, namespace) = (target.name.as_str(), target.namespace.as_str());
    block_on(async {
        let report = match JobReport::read(&api, namespace, name).await {
            Ok(report) => Some(report),
            Err(JobError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if report.is_none() && removal_of(&api, namespace, name).await?.is_empty() {
            session
                .printer
                .note(format_args!("there is no job '{name}' in namespace {namespace}; nothing to do"));
            return Ok(Exit::Done);
        }
        if let Some(report) = report.as_ref().filter(|report| !report.state.is_over())
            && !session.yes
        {
            let question = format!("Job '{name}' is {}. It will be deleted. Continue?", report.state.name());
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        session.printer.note(format_args!("deleting job '{name}', and waiting for its pods to terminate"));
        if let Some(report) = &report
            && let Err(error) = record_deletion(&api, report, seconds_now()).await
        {
            session.printer.warning(format_args!("`infra job runs` does not know how it ended: {error}"));
        }
        let limit = removal_limit(&api, namespace, name).await?;
        let (_interrupter, waiting) = session.begin_waiting(Some(limit));
        remove_job(&api, namespace, name, &waiting, &|left| print_remaining(left, session)).await?;
        session.printer.note(format_args!("job '{name}' is deleted"));
        if let Some(report) = report.filter(|report| !report.path.is_empty()) {
            session
                .printer
                .note(format_args!("its files stay in {} on the claim {}", report.path, report.claim));
        }
        Ok(Exit::Done)
    })
}

/// Shows what has not terminated yet.
pub(super) fn print_remaining(left: &[ObjectName], session: &Session) {
    let names: Vec<String> = left.iter().map(ToString::to_string).collect();
    session.printer.note(format_args!("waiting for {} to terminate", names.join(", ")));
}
