//! `infra job schema`: the JSON Schema of a job file.

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::job;

/// Print the JSON Schema of a job file, for editors and other tools
#[derive(Args, Debug)]
pub(super) struct SchemaArguments {}

pub(super) fn run(_: &SchemaArguments, session: &Session) -> anyhow::Result<Exit> {
    session.printer.foreign_json(&job::schema())?;
    Ok(Exit::Done)
}
