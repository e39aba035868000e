//! `infra render`: writes everything a cluster is created from to the asset directory.

mod credentials;
mod stack;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use super::exit::Exit;
use super::session::Session;
use crate::cli::terminal::printer::Output;

/// Write everything the cluster is created from: keys, certificates, kubeconfig, stacks, boot configs, manifests
///
/// Without a subcommand it runs `credentials`, with the same flags, and then `stack`. Needs no network and no AWS account.
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
    /// What was done for each identity; not with `render stack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<Vec<credentials::Row>>,
    /// What was done to the files; not with `render credentials`.
    #[serde(skip_serializing_if = "Option::is_none")]
    assets: Option<stack::Report>,
}

pub(super) fn run(arguments: &RenderArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project()?;
    let report = match &arguments.part {
        Some(Part::Credentials(arguments)) => {
            let (rows, _) = credentials::run(arguments, &project, session)?;
            RenderDocument { credentials: Some(rows), assets: None }
        }
        Some(Part::Stack(_)) => {
            let store = session.open_existing_credentials()?;
            RenderDocument { credentials: None, assets: Some(stack::run(&project, &store, session)?) }
        }
        None => {
            let (rows, store) = credentials::run(&arguments.credentials, &project, session)?;
            let assets = stack::run(&project, &store, session)?;
            RenderDocument { credentials: Some(rows), assets: Some(assets) }
        }
    };
    if session.output == Output::Json {
        session.printer.json(&report)?;
    }
    Ok(Exit::Done)
}
