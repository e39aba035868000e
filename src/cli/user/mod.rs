//! `infra user`: people who may use a team's part of the cluster, one file per command.

mod add;
mod list;
mod name;
mod remove;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::session::Session;

/// Let people run jobs in a team's namespace, and nowhere else: add, list, remove
///
/// For the administrator: these commands work with the credentials of the asset directory.
#[derive(Args, Debug)]
pub(super) struct UserArguments {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    Add(add::AddArguments),
    List(list::ListArguments),
    Remove(remove::RemoveArguments),
}

pub(super) fn run(arguments: &UserArguments, session: &Session) -> anyhow::Result<Exit> {
    match &arguments.command {
        UserCommand::Add(arguments) => add::run(arguments, session),
        UserCommand::List(arguments) => list::run(arguments, session),
        UserCommand::Remove(arguments) => remove::run(arguments, session),
    }
}
