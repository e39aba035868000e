//! `infra secret`: tokens and logins that jobs use, one file per command.

mod delete;
mod list;
mod place;
mod set;
mod value;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::session::Session;
use crate::cli::cluster_options::ClusterOptions;

/// Store tokens and registry logins for jobs: set, list, delete
///
/// A secret is a Secret of Kubernetes, in the namespace of the job. Values are never printed, and never taken from the command line, which
/// other users of this machine can read.
#[derive(Args, Debug)]
pub(super) struct SecretArguments {
    #[command(flatten)]
    cluster: ClusterOptions,
    #[command(subcommand)]
    command: SecretCommand,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    Set(set::SetArguments),
    List(list::ListArguments),
    Delete(delete::DeleteArguments),
}

pub(super) fn run(arguments: &SecretArguments, session: &Session) -> anyhow::Result<Exit> {
    let session = &session.with_cluster(&arguments.cluster);
    match &arguments.command {
        SecretCommand::Set(arguments) => set::run(arguments, session),
        SecretCommand::List(arguments) => list::run(arguments, session),
        SecretCommand::Delete(arguments) => delete::run(arguments, session),
    }
}
