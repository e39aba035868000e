//! `infra data`: files between this machine and the cluster's file system, one file per command.

mod get;
mod ls;
mod options;
mod put;
mod rm;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::session::Session;
use crate::cli::cluster_options::ClusterOptions;

const EXAMPLES: &str = "\
Examples:
  infra data put data.tar.gz import       becomes import/data.tar.gz
  infra data put corpus/ import/corpus    what is in corpus/ goes into import/corpus
  infra data ls import                    shows what is there
  infra data get import/corpus .          becomes ./corpus
  infra data rm import/corpus             asks first";

/// Move files between this machine and the cluster's file system
///
/// A short-lived pod mounts the namespace's claim, and everything goes through the Kubernetes API: nothing else needs to be reachable.
/// Paths on the claim are relative to its root. Files are compared by content, so that a second run moves only what changed, and a
/// run that was interrupted continues (exit 5).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DataArguments {
    #[command(flatten)]
    cluster: ClusterOptions,
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    Put(put::PutArguments),
    Get(get::GetArguments),
    Ls(ls::LsArguments),
    Rm(rm::RmArguments),
}

pub(super) fn run(arguments: &DataArguments, session: &Session) -> anyhow::Result<Exit> {
    let session = &session.with_cluster(&arguments.cluster);
    match &arguments.command {
        DataCommand::Put(arguments) => put::run(arguments, session),
        DataCommand::Get(arguments) => get::run(arguments, session),
        DataCommand::Ls(arguments) => ls::run(arguments, session),
        DataCommand::Rm(arguments) => rm::run(arguments, session),
    }
}
