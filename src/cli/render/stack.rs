//! `infra render stack`: machine configurations, manifests and stacks.

use std::collections::BTreeSet;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::deployment::Deployment;
use super::super::printer::Output;
use super::super::session::Session;
use crate::blueprint::Blueprint;
use crate::check::{Findings, check_assets};
use crate::credentials::Credentials;
use crate::durable_file;
use crate::render::{AssetSources, Assets, Templates, render_assets};

/// Write CloudFormation stacks (stacks/), machine configurations (userdata/) and manifests (manifests/)
///
/// The same cluster.yaml and credentials give the same bytes. Files of an earlier run that are no longer needed are removed; snippets/,
/// templates/ and manifests/extra/ are yours and are only read.
#[derive(Args, Debug)]
pub(super) struct StackArguments {}

/// What was done to the files.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Assets")]
pub(super) struct Report {
    /// Files that are new or have changed.
    written: Vec<String>,
    /// How many are as they were.
    unchanged: usize,
    /// Files of an earlier run that are no longer needed.
    removed: Vec<String>,
}

pub(super) fn run(session: &Session) -> anyhow::Result<Report> {
    let rendered = Deployment::render(session)?;
    let report = write(&rendered.assets, session)?;
    if session.output != Output::Json {
        print(&report, session);
    }
    Ok(report)
}

/// What would be written, and what AWS or a machine would refuse of it.
pub(in super::super) struct Rendered {
    pub(in super::super) assets: Assets,
    pub(in super::super) findings: Findings,
}

/// Renders and checks everything without writing anything.
pub(in super::super) fn render_in_memory(
    blueprint: &Blueprint,
    credentials: &Credentials,
    session: &Session,
) -> anyhow::Result<Rendered> {
    let snippets = session.assets.read_snippets(&blueprint.roles, &session.printer)?;
    let assets = render_assets(&AssetSources {
        blueprint,
        credentials,
        templates: &Templates::new(&session.assets.read_overrides()?)?,
        extra_manifests: &session.assets.read_extra_manifests()?,
        snippets: &snippets,
    })?;
    let findings = check_assets(&assets, &blueprint.rules);
    Ok(Rendered { assets, findings })
}

fn write(assets: &Assets, session: &Session) -> anyhow::Result<Report> {
    let mut report = Report { written: Vec::new(), unchanged: 0, removed: Vec::new() };
    let wanted: BTreeSet<&str> = assets.files().map(|asset| asset.path.as_str()).collect();
    for asset in assets.files() {
        let path = session.assets.prepare(&asset.path)?;
        if durable_file::ensure(&path, &asset.bytes, asset.access)? {
            report.written.push(asset.path.clone());
        } else {
            report.unchanged += 1;
        }
    }
    for stale in session.assets.rendered_files()?.into_iter().filter(|path| !wanted.contains(path.as_str())) {
        std::fs::remove_file(session.assets.file(&stale))?;
        report.removed.push(stale);
    }
    Ok(report)
}

fn print(report: &Report, session: &Session) {
    for path in &report.removed {
        session.printer.note(format_args!("removed   {path}"));
    }
    session.printer.note(format_args!(
        "stacks, userdata, manifests: {} written, {} unchanged, {} removed",
        report.written.len(),
        report.unchanged,
        report.removed.len()
    ));
}
