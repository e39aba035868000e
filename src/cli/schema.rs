//! `infra schema`: the JSON Schema of cluster.yaml.

use clap::Args;

use super::Session;
use super::exit::Exit;
use crate::config;

/// Print the JSON Schema of cluster.yaml, for editors and other tools
///
/// For the YAML language server, save it as cluster.schema.json and let cluster.yaml begin with
/// `# yaml-language-server: $schema=cluster.schema.json`.
#[derive(Args, Debug)]
pub(super) struct SchemaArguments {}

pub(super) fn run(_: &SchemaArguments, session: &Session) -> anyhow::Result<Exit> {
    session.printer.json(&config::schema())?;
    Ok(Exit::Done)
}
