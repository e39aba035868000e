//! The log of an attempt of a replica, which the claim keeps when its pod is gone.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::target::{random_mark, scripts_of};
use crate::blueprint::Blueprint;
use crate::cli::claim::{ClaimAccess, Mount};
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::data::{DataError, GetRequest, get};
use crate::job::life::{JobReport, ReplicaReport};
use crate::kube::ApiServer;

/// What the launchers write, the older part first.
const FILES: [&str; 2] = ["output.log.1", "output.log"];

/// Prints the log of a replica in an attempt of the job's run.
pub(super) async fn print_attempt(
    api: &ApiServer,
    blueprint: &Blueprint,
    report: &JobReport,
    replica: &ReplicaReport,
    attempt: u32,
    session: &Session,
) -> anyhow::Result<Exit> {
    expect_attempt(report, replica, attempt)?;
    let path = format!("{}/logs/attempt-{attempt}/{}-{}/", report.directory, replica.role, replica.index);
    let directory = tempfile::tempdir().context("creating a temporary directory")?;
    let request = GetRequest {
        remote: path.parse().map_err(Refusal::invalid)?,
        directory: directory.path().to_owned(),
        include: Vec::new(),
        mark: None,
    };
    let (scripts, mark) = (scripts_of(session)?, random_mark()?);
    let access = ClaimAccess {
        blueprint,
        api,
        namespace: &report.namespace,
        claim: &report.claim,
        image: None,
        scripts: &scripts,
        mark: &mark,
    };
    let read = access.run(Mount::ReadOnly, session, Interrupted::WhilePrinting, async |channel| {
        Ok(get(channel, &request, &|_| {}).await?)
    });
    read.await.map_err(|error| explain_missing_log(error, report, replica, attempt))?;
    for file in FILES {
        print_file(&directory.path().join(file), session)?;
    }
    Ok(Exit::Done)
}

/// Refuses an attempt that a group has not had; a job of an earlier version of infra is left to the claim.
fn expect_attempt(report: &JobReport, replica: &ReplicaReport, attempt: u32) -> Result<(), Refusal> {
    if report.restarts.is_none() || attempt <= replica.restarts {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "{} {} of job '{}' has had no attempt {attempt}; the newest is attempt {}",
        replica.role, replica.index, report.name, replica.restarts
    ))
    .help("attempts are counted from 0"))
}

/// What is said of a directory is said of a log.
fn explain_missing_log(
    error: anyhow::Error,
    report: &JobReport,
    replica: &ReplicaReport,
    attempt: u32,
) -> anyhow::Error {
    let (role, index, name) = (&replica.role, replica.index, &report.name);
    match error.downcast_ref::<DataError>() {
        Some(DataError::Missing { path, claim }) => Refusal::new(format!(
            "the log of {role} {index} of job '{name}' in attempt {attempt} cannot be read: there is no directory {path} on the claim {claim}"
        ))
        .help(format!("`infra job logs {name} --role {role} --index {index}` reads the log of its pod"))
        .into(),
        _ => error,
    }
}

fn print_file(path: &Path, session: &Session) -> anyhow::Result<()> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let mut log = session.printer.log();
    log.print(&text)?;
    log.finish()
}
