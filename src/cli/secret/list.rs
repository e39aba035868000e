//! `infra secret list`: which secrets there are, and what they are for.

use clap::Args;

use super::place::NamespaceOptions;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::people::{SecretReport, list_secrets};

/// List the secrets that infra created in a namespace, never their values
#[derive(Args, Debug)]
pub(super) struct ListArguments {
    #[command(flatten)]
    namespace: NamespaceOptions,
}

pub(super) fn run(arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let namespace = arguments.namespace.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let secrets = block_on(until_interrupted(async { Ok(list_secrets(&api, &namespace).await?) }))?;
    match session.output {
        Output::Json => session.printer.json(&secrets)?,
        Output::Text | Output::Markdown | Output::Html if secrets.is_empty() => {
            session.printer.data(format_args!("there are no secrets in namespace {namespace}"))?;
        }
        Output::Text | Output::Markdown | Output::Html => {
            let heading = ["SECRET", "USE", "HOLDS", "CREATED"].map(str::to_owned);
            let line = |secret: &SecretReport| {
                let holds = secret.holds.join(", ");
                [secret.name.clone(), secret.used_as.name().to_owned(), holds, secret.created.clone()]
            };
            let lines: Vec<[String; 4]> = std::iter::once(heading).chain(secrets.iter().map(line)).collect();
            session.printer.data(align_columns(&lines))?;
        }
    }
    Ok(Exit::Done)
}
