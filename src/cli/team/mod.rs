//! `infra team`: teams that share a cluster, one file per command.

mod add;
mod list;
mod place;
mod remove;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::session::Session;

pub(super) use place::parse_team;

/// Let teams share the cluster, each in a namespace of its own: add, list, remove
///
/// For the administrator: these commands work with the credentials of the asset directory.
#[derive(Args, Debug)]
pub(super) struct TeamArguments {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Debug, Subcommand)]
enum TeamCommand {
    Add(add::AddArguments),
    List(list::ListArguments),
    Remove(remove::RemoveArguments),
}

pub(super) fn run(arguments: &TeamArguments, session: &Session) -> anyhow::Result<Exit> {
    match &arguments.command {
        TeamCommand::Add(arguments) => add::run(arguments, session),
        TeamCommand::List(arguments) => list::run(arguments, session),
        TeamCommand::Remove(arguments) => remove::run(arguments, session),
    }
}
