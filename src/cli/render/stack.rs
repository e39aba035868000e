//! `infra render stack`: boot configs, manifests and stacks.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::session::Session;
use crate::cli::terminal::printer::Output;
use crate::credentials::CredentialStore;
use crate::plural::list_counts;
use crate::project::{Project, WrittenFiles};

/// Write CloudFormation stacks (stacks/), boot configs (userdata/) and manifests (manifests/)
///
/// The same cluster.yaml and credentials give the same bytes. Files of an earlier run that are no longer needed are deleted; snippets/,
/// templates/ and manifests/extra/ are yours and are only read.
#[derive(Args, Debug)]
pub(super) struct StackArguments {}

/// What was done to the files.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Assets")]
pub(super) struct Report {
    /// Files that are new or have changed.
    written: Vec<String>,
    /// How many files are unchanged.
    unchanged: usize,
    /// Files of an earlier run that are no longer needed.
    deleted: Vec<String>,
}

pub(super) fn run(project: &Project, store: &CredentialStore, session: &Session) -> anyhow::Result<Report> {
    let rendered = project.render(&project.read_credentials(store)?)?;
    session.print_unused_snippets(&rendered);
    let WrittenFiles { written, unchanged, deleted } = project.write(&rendered.into_valid_assets()?)?;
    let report = Report { written, unchanged, deleted };
    if session.output == Output::Text {
        print_written(&report, session);
    }
    Ok(report)
}

fn print_written(report: &Report, session: &Session) {
    for path in &report.deleted {
        session.printer.note(format_args!("deleted    {path}"));
    }
    session.printer.note(format_args!(
        "stacks, userdata, manifests: {}",
        list_counts(&[
            (report.written.len(), "written"),
            (report.unchanged, "unchanged"),
            (report.deleted.len(), "deleted")
        ])
    ));
}
