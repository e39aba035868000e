//! The log of an attempt of a replica, which the claim keeps when its pod is gone.

use std::fs;
use std::path::Path;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::archive_download::{READER_TIME_LIMIT, download, new_reader};
use super::target::removed;
use crate::blueprint::Blueprint;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::life::{FetchSource, JobError, JobReport, Reader, ReplicaReport};
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
    let path = format!("{}/logs/attempt-{attempt}/{}-{}", report.directory, replica.role, replica.index);
    let source = FetchSource {
        name: report.name.clone(),
        namespace: report.namespace.clone(),
        claim: report.claim.clone(),
        path,
    };
    // Listens before the reader exists, so that an early Ctrl-C leaves none behind.
    let mut interruptions = signal(SignalKind::interrupt())?;
    let reader = Reader::start(api, &source, &new_reader(blueprint, None, session)?).await?;
    let printed = tokio::select! {
        printed = print_files(&reader, session) => {
            printed.map_err(|error| explain_missing_log(error, report, replica, attempt))
        }
        _ = interruptions.recv() => Err(Interrupted::WhilePrinting.into()),
    };
    removed(reader.remove().await, "the reader pod", &session.printer);
    printed.map(|()| Exit::Done)
}

/// Refuses an attempt that a group has not had, or whose log nobody kept.
fn expect_attempt(report: &JobReport, replica: &ReplicaReport, attempt: u32) -> Result<(), Refusal> {
    if report.is_of_earlier_version {
        return Err(Refusal::new(format!(
            "an earlier version of infra submitted job '{}', and kept no logs of its attempts",
            report.name
        ))
        .help(suggest_pod_log(report, replica)));
    }
    if attempt <= replica.restarts {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "{} {} of job '{}' has had no attempt {attempt}; the newest is attempt {}",
        replica.role, replica.index, report.name, replica.restarts
    ))
    .help("attempts are counted from 0"))
}

fn suggest_pod_log(report: &JobReport, replica: &ReplicaReport) -> String {
    format!(
        "`infra job logs {} --role {} --index {}` reads the log of its pod",
        report.name, replica.role, replica.index
    )
}

/// What a reader says of results is said of a log.
fn explain_missing_log(
    error: anyhow::Error,
    report: &JobReport,
    replica: &ReplicaReport,
    attempt: u32,
) -> anyhow::Error {
    let (role, index, name) = (&replica.role, replica.index, &report.name);
    match error.downcast_ref::<JobError>() {
        Some(JobError::Results { reason, .. }) => Refusal::new(format!(
            "the log of {role} {index} of job '{name}' in attempt {attempt} cannot be read: {reason}"
        ))
        .help(suggest_pod_log(report, replica))
        .into(),
        _ => error,
    }
}

async fn print_files(reader: &Reader<'_>, session: &Session) -> anyhow::Result<()> {
    let (_interrupter, waiting) = session.begin_waiting(Some(READER_TIME_LIMIT));
    let tell = |detail: String| session.printer.note(format_args!("the reader pod is waiting: {detail}"));
    reader.wait_until_ready(&waiting, &tell).await?;
    let directory = tempfile::tempdir().context("creating a temporary directory")?;
    let unpacked = directory.path().join("log");
    download(reader, &unpacked, session).await?;
    for file in FILES {
        print_file(&unpacked.join(file), session)?;
    }
    Ok(())
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
