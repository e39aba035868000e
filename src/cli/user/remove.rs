//! `infra user remove`: ends the rights of a user.

use clap::Args;

use super::name::parse_user;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::team::parse_team;
use crate::people::{TeamName, UserName, find_user};

/// End the rights of a user at once; jobs and files stay
///
/// Kubernetes has no list of revoked certificates: the certificate stays valid until its day, and has no rights. A user of the same name
/// who is added later has another certificate, and the old one stays without rights.
#[derive(Args, Debug)]
pub(super) struct RemoveArguments {
    /// The name of the user
    #[arg(value_name = "NAME", value_parser = parse_user)]
    name: UserName,
    /// The team
    #[arg(long, value_name = "NAMESPACE", value_parser = parse_team)]
    team: TeamName,
}

pub(super) fn run(arguments: &RemoveArguments, session: &Session) -> anyhow::Result<Exit> {
    let (name, team) = (&arguments.name, &arguments.team);
    let (cluster, _) = TargetCluster::of_administrator(session)?;
    let api = &cluster.api;
    block_on(async {
        let Some(user) = find_user(api, team, name).await? else {
            session.printer.note(format_args!("team '{team}' has no user '{name}'; nothing to do"));
            return Ok(Exit::Done);
        };
        if !session.yes {
            let question = format!(
                "User '{name}' will lose all rights in team '{team}' of cluster {}. Continue?",
                cluster.name
            );
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        user.delete_rights(api).await?;
        session
            .printer
            .note(format_args!("user '{name}' has no rights in team '{team}' any more; jobs and files stay"));
        session.printer.note(format_args!(
            "the certificate {} is valid until {}, and opens nothing; change secrets of the team that the user may have read",
            user.common_name, user.valid_until
        ));
        session.printer.note("a shell or a followed log that is open now lasts until it ends");
        Ok(Exit::Done)
    })
}
