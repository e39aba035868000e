//! `infra job list`: every job that the user may see.

use clap::Args;

use super::runs::in_units;
use super::target::{job_namespace, seconds_now};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::job::life::{JobReport, parse_seconds};

/// List the jobs on the cluster, with their state, age and the GPUs that they hold
///
/// Lists the jobs of all namespaces that you may see. GPUs are held by pods that have a machine; a pod that waits for one holds none.
#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Only the jobs of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

pub(super) fn run(arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = TargetCluster::find(session)?;
    let own = job_namespace(session)?;
    let (reports, namespaces) = block_on(async {
        match &arguments.namespace {
            Some(namespace) => Ok((JobReport::read_all(&cluster.api, Some(namespace)).await?, None)),
            None => Ok(JobReport::read_visible(&cluster.api, &own).await?),
        }
    })?;
    if let Some(namespaces) = namespaces {
        let names = namespaces.join(", ");
        session.printer.note(format_args!("you may not see all namespaces; these are the jobs of {names}"));
    }
    if session.output == Output::Json {
        session.printer.json(&reports)?;
        return Ok(Exit::Done);
    }
    if reports.is_empty() {
        session.printer.data(format_args!("{}: there are no jobs", cluster.name))?;
        return Ok(Exit::Done);
    }
    let heading = ["NAMESPACE", "JOB", "FRAMEWORK", "STATE", "DONE", "GPUS", "AGE"].map(str::to_owned);
    let line = |report: &JobReport| {
        [
            report.namespace.clone(),
            report.name.clone(),
            report.framework.clone(),
            report.state.name().to_owned(),
            if report.wanted > 0 { format!("{}/{}", report.done, report.wanted) } else { "-".to_owned() },
            report.gpus_held.to_string(),
            age_of(report).unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let lines: Vec<[String; 7]> = std::iter::once(heading).chain(reports.iter().map(line)).collect();
    session.printer.data(align_columns(&lines))?;
    Ok(Exit::Done)
}

fn age_of(report: &JobReport) -> Option<String> {
    Some(in_units(seconds_now().saturating_sub(parse_seconds(&report.created)?)))
}
