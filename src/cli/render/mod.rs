//! `infra render`: writes what a cluster is made of to the asset directory.

mod credentials;
mod stack;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use stack::render_in_memory;

use super::exit::Exit;
use super::printer::Output;
use super::session::Session;

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

/// What was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct RenderDocument {
    /// What was done to each identity; not with `render stack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<Vec<credentials::Row>>,
    /// What was done to the files; not with `render credentials`.
    #[serde(skip_serializing_if = "Option::is_none")]
    assets: Option<stack::Report>,
}

pub(super) fn run(arguments: &RenderArguments, session: &Session) -> anyhow::Result<Exit> {
    let report = match &arguments.part {
        Some(Part::Credentials(arguments)) => {
            RenderDocument { credentials: Some(credentials::run(arguments, session)?), assets: None }
        }
        Some(Part::Stack(_)) => RenderDocument { credentials: None, assets: Some(stack::run(session)?) },
        None => RenderDocument {
            credentials: Some(credentials::run(&arguments.credentials, session)?),
            assets: Some(stack::run(session)?),
        },
    };
    if session.output == Output::Json {
        session.printer.json(&report)?;
    }
    Ok(Exit::Done)
}
