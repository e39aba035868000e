//! `infra render`: writes what a cluster is made of to the asset directory.

mod credentials;
mod stack;

use clap::{Args, Subcommand};

pub(super) use stack::render_in_memory;

use super::Session;
use super::exit::Exit;

/// Write what the cluster is made of: keys, certificates, kubeconfig, machine configurations, manifests
///
/// Without a part it does `credentials`, with the same flags, and then `stack`. Needs no network and no AWS account.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RenderArguments {
    #[command(flatten)]
    credentials: credentials::CredentialsArguments,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, Subcommand)]
enum Part {
    Credentials(credentials::CredentialsArguments),
    Stack(stack::StackArguments),
}

pub(super) fn run(arguments: &RenderArguments, session: &Session) -> anyhow::Result<Exit> {
    match &arguments.part {
        Some(Part::Credentials(arguments)) => credentials::run(arguments, session),
        Some(Part::Stack(_)) => stack::run(session),
        None => {
            credentials::run(&arguments.credentials, session)?;
            stack::run(session)
        }
    }
}
