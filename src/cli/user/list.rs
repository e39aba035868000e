//! `infra user list`: who may use which team's part of the cluster.

use clap::Args;

use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::team::parse_team;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::people::{TeamName, UserReport, list_users};

/// List the users of the cluster's teams
#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Only the users of this team
    #[arg(long, value_name = "NAMESPACE", value_parser = parse_team)]
    team: Option<TeamName>,
}

pub(super) fn run(arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let (cluster, _) = TargetCluster::of_administrator(session)?;
    let users =
        block_on(until_interrupted(async { Ok(list_users(&cluster.api, arguments.team.as_ref()).await?) }))?;
    match session.output {
        Output::Json => session.printer.json(&users)?,
        Output::Text | Output::Markdown | Output::Html if users.is_empty() => {
            session.printer.data(format_args!("{}: there are no users", cluster.name))?;
        }
        Output::Text | Output::Markdown | Output::Html => {
            let heading = ["TEAM", "USER", "CERTIFICATE UNTIL", "NAME IN KUBERNETES"].map(str::to_owned);
            let line = |user: &UserReport| {
                [user.team.clone(), user.name.clone(), user.valid_until.clone(), user.common_name.clone()]
            };
            let lines: Vec<[String; 4]> = std::iter::once(heading).chain(users.iter().map(line)).collect();
            session.printer.data(align_columns(&lines))?;
        }
    }
    Ok(Exit::Done)
}
