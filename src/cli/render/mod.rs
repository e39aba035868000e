//! `infra render`: writes what a cluster is made of to the asset directory.

mod credentials;
mod stack;

use clap::{Args, Subcommand};
use serde_json::json;

pub(super) use stack::render_in_memory;

use super::Session;
use super::exit::Exit;
use super::printer::Output;

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
    let report = match &arguments.part {
        Some(Part::Credentials(arguments)) => json!({"credentials": credentials::run(arguments, session)?}),
        Some(Part::Stack(_)) => json!({"assets": stack::run(session)?}),
        None => {
            let credentials = credentials::run(&arguments.credentials, session)?;
            json!({"credentials": credentials, "assets": stack::run(session)?})
        }
    };
    if session.output == Output::Json {
        session.printer.json(&report)?;
    }
    Ok(Exit::Done)
}
