//! `infra team list`: the teams of the cluster.

use clap::Args;

use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::people::{TeamReport, list_teams};

/// List the teams of the cluster, with their GPUs, jobs and users
#[derive(Args, Debug)]
pub(super) struct ListArguments {}

pub(super) fn run(_arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let (cluster, _) = TargetCluster::of_administrator(session)?;
    let teams = block_on(until_interrupted(async { Ok(list_teams(&cluster.api).await?) }))?;
    match session.output {
        Output::Json => session.printer.json(&teams)?,
        Output::Text | Output::Markdown | Output::Html if teams.is_empty() => {
            session.printer.data(format_args!("{}: there are no teams", cluster.name))?;
        }
        Output::Text | Output::Markdown | Output::Html => {
            let heading = ["TEAM", "GPUS", "JOBS", "USERS"].map(str::to_owned);
            let line = |team: &TeamReport| {
                let gpus = match (team.gpus, team.gpu_limit) {
                    (Some(gpus), Some(limit)) => format!("{gpus}/{limit}"),
                    _ => "no limit".to_owned(),
                };
                [team.name.clone(), gpus, team.jobs.to_string(), team.users.join(", ")]
            };
            let lines: Vec<[String; 4]> = std::iter::once(heading).chain(teams.iter().map(line)).collect();
            session.printer.data(align_columns(&lines))?;
        }
    }
    Ok(Exit::Done)
}
