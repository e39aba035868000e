//! `infra job list`: every job of the cluster.

use clap::Args;

use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::printer::{Output, columns};
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::life::{JobReport, ReplicaPhase, ReplicaReport};

/// List the jobs on the cluster
#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Only the jobs of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

pub(super) fn run(arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = TargetCluster::find(session)?;
    let reports = block_on(async {
        Ok(match &arguments.namespace {
            Some(namespace) => JobReport::read_all(&cluster.api, Some(namespace)).await?,
            None => JobReport::read_visible(&cluster.api, cluster.namespace.as_deref()).await?,
        })
    })?;
    if session.output == Output::Json {
        session.printer.json(&reports)?;
        return Ok(Exit::Done);
    }
    if reports.is_empty() {
        session.printer.data(format_args!("{}: there are no jobs", cluster.name))?;
        return Ok(Exit::Done);
    }
    let heading = ["NAMESPACE", "JOB", "FRAMEWORK", "STATE", "DONE", "GPUS"].map(str::to_owned);
    let line = |report: &JobReport| {
        [
            report.namespace.clone(),
            report.name.clone(),
            report.framework.clone(),
            report.state.name().to_owned(),
            if report.wanted > 0 { format!("{}/{}", report.done, report.wanted) } else { "-".to_owned() },
            held_gpus(report).to_string(),
        ]
    };
    let lines: Vec<[String; 6]> = std::iter::once(heading).chain(reports.iter().map(line)).collect();
    session.printer.data(columns(&lines))?;
    Ok(Exit::Done)
}

/// GPUs that are allocated to the job.
fn held_gpus(report: &JobReport) -> u32 {
    let holds = |replica: &&ReplicaReport| {
        let is_over = matches!(replica.phase, ReplicaPhase::Succeeded | ReplicaPhase::Failed);
        replica.node.is_some() && !is_over
    };
    report.replicas.iter().filter(holds).map(|replica| replica.gpus).sum()
}
