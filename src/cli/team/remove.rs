//! `infra team remove`: deletes a team's namespace; its files stay.

use clap::Args;

use super::place::{LEAVING, parse_team, place_of, show_event};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::{Interrupted, until_second_interruption};
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::people::{TeamName, TeamRemoval, team_directory};

/// Delete a team's namespace with everything in it, and end the rights of its users; files stay
///
/// Refuses while jobs are not finished, and while there are files, unless a flag allows it.
#[derive(Args, Debug)]
pub(super) struct RemoveArguments {
    /// The team
    #[arg(value_name = "NAMESPACE", value_parser = parse_team)]
    team: TeamName,
    /// Delete jobs that are not finished too
    #[arg(long)]
    delete_jobs: bool,
    /// Go on although there are files, which stay on the file system
    #[arg(long)]
    keep_files: bool,
}

pub(super) fn run(arguments: &RemoveArguments, session: &Session) -> anyhow::Result<Exit> {
    let (cluster, blueprint) = TargetCluster::of_administrator(session)?;
    let (api, place, team) = (&cluster.api, place_of(&blueprint)?, &arguments.team);
    let directory = team_directory(team.as_str());
    let (interrupter, waiting) = session.begin_waiting(None);
    let work = async {
        let tell = |event| show_event(&event, session);
        let removal = TeamRemoval::plan(api, team, &place, &waiting, &tell).await?;
        if removal.is_empty() {
            session.printer.note(format_args!("there is no team '{team}'; nothing to do"));
            return Ok(());
        }
        refuse_losses(&removal, arguments)?;
        if !session.yes {
            let users: Vec<&str> = removal.users.iter().map(|user| user.name.as_str()).collect();
            let users = if users.is_empty() {
                String::new()
            } else {
                format!(" {} will lose access.", users.join(", "))
            };
            let question = format!(
                "The namespace {team} of cluster {} and everything in it will be deleted.{users} Continue?",
                cluster.name
            );
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        removal.carry_out(api, team, &place, &waiting, &tell).await?;
        session.printer.note(format_args!("team '{team}' is removed"));
        if removal.files > 0 {
            session.printer.note(format_args!(
                "its files stay in {directory} of the file system; a team of the same name finds them again"
            ));
        }
        Ok(())
    };
    let leave = || session.printer.note(LEAVING);
    block_on(until_second_interruption(work, &interrupter, leave, Interrupted::WhileChangingTeam))?;
    Ok(Exit::Done)
}

fn refuse_losses(removal: &TeamRemoval, arguments: &RemoveArguments) -> Result<(), Refusal> {
    let team = &arguments.team;
    if !removal.jobs.is_empty() && !arguments.delete_jobs {
        let jobs = removal.jobs.join(", ");
        return Err(Refusal::new(format!(
            "team '{team}' has {} not finished: {jobs}",
            if removal.jobs.len() == 1 { "a job that is" } else { "jobs that are" }
        ))
        .help("`--delete-jobs` deletes them with the team"));
    }
    if removal.files > 0 && !arguments.keep_files {
        return Err(Refusal::new(format!(
            "{} of the file system holds {}",
            team_directory(team.as_str()),
            match removal.files {
                1 => "1 file or directory".to_owned(),
                files => format!("{files} files and directories"),
            }
        ))
        .help("`--keep-files` removes the team and leaves them there"));
    }
    Ok(())
}
