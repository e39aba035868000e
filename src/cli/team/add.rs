//! `infra team add`: a namespace for a team, with its limits and its part of the file system.

use clap::Args;

use super::place::{LEAVING, parse_team, place_of, show_event};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::{Interrupted, until_second_interruption};
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::people::{GpuLimit, TeamName, add_team, team_directory};

/// Create a namespace for a team, with its limits and its part of the file system
///
/// Pods there may not have rights over their machine (Pod Security `baseline`), mount other volumes than claims and those of their own, tolerate
/// taints of the control plane or name their node. The claim `efs` is the directory /teams/NAMESPACE of the file system. Run again, it
/// completes what is missing and changes the limit.
#[derive(Args, Debug)]
pub(super) struct AddArguments {
    /// The namespace, which is the name of the team
    #[arg(value_name = "NAMESPACE", value_parser = parse_team)]
    team: TeamName,
    /// The most GPUs that the team's pods may have at the same time, or none for no limit
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    gpus: Option<GpuLimit>,
}

fn parse_limit(text: &str) -> Result<GpuLimit, String> {
    match text {
        "none" => Ok(GpuLimit::None),
        number => number.parse().map(GpuLimit::Most).map_err(|_| "it is a number, or none".to_owned()),
    }
}

pub(super) fn run(arguments: &AddArguments, session: &Session) -> anyhow::Result<Exit> {
    let (cluster, blueprint) = TargetCluster::of_administrator(session)?;
    let place = place_of(&blueprint)?;
    let team = &arguments.team;
    let (interrupter, waiting) = session.begin_waiting(None);
    let work = async {
        let tell = |event| show_event(&event, session);
        add_team(&cluster.api, team, arguments.gpus, &place, &waiting, &tell).await?;
        Ok(())
    };
    let leave = || session.printer.note(LEAVING);
    block_on(until_second_interruption(work, &interrupter, leave, Interrupted::WhileChangingTeam))?;
    let storage = match place.file_system {
        Some(_) => format!("its claim efs is {} of the file system", team_directory(team.as_str())),
        None => "the cluster has no file system, so it has no claim".to_owned(),
    };
    session.printer.note(format_args!("team '{team}' is ready on cluster {}; {storage}", cluster.name));
    session.printer.note(format_args!("`infra user add NAME --team {team}` lets someone in"));
    Ok(Exit::Done)
}
