//! `infra secret delete`: deletes a secret.

use clap::Args;

use super::place::{NamespaceOptions, parse_secret_name};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::values::SecretName;
use crate::people::{delete_secret, find_secret};

/// Delete a secret that infra created
///
/// Processes that run keep the values that they were started with; a job that needs the secret can no longer be submitted or restarted.
#[derive(Args, Debug)]
pub(super) struct DeleteArguments {
    /// The name of the secret
    #[arg(value_name = "NAME", value_parser = parse_secret_name)]
    name: SecretName,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

pub(super) fn run(arguments: &DeleteArguments, session: &Session) -> anyhow::Result<Exit> {
    let namespace = arguments.namespace.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let name = arguments.name.as_str();
    block_on(async {
        let Some(secret) = find_secret(&api, &namespace, name).await? else {
            session
                .printer
                .note(format_args!("there is no secret '{name}' in namespace {namespace}; nothing to do"));
            return Ok(Exit::Done);
        };
        if !session.yes {
            let question =
                format!("Secret '{name}' holds {}. It will be deleted. Continue?", secret.holds.join(", "));
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        delete_secret(&api, &secret).await?;
        session.printer.note(format_args!("secret '{name}' is deleted from namespace {namespace}"));
        Ok(Exit::Done)
    })
}
