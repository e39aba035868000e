//! The log of an attempt of a replica, which the claim keeps when its pod is gone.

use std::fs;
use std::path::Path;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::archive_download::{READER_TIME_LIMIT, download, new_reader};
use super::target::removed;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::life::{FetchSource, JobError, JobReport, Reader, ReplicaReport};

/// What the launchers write, the older part first.
const FILES: [&str; 2] = ["output.log.1", "output.log"];

/// Prints the log of a replica in an attempt of the job's run.
pub(super) async fn print_attempt(
    cluster: &TargetCluster,
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
    let target = new_reader(cluster.read_facts().await?.facts(), None, session)?;
    let reader = Reader::start(&cluster.api, &source, &target).await?;
    let printed = tokio::select! {
        printed = print_files(&reader, session) => {
            printed.map_err(|error| explain_missing_log(error, report, replica, attempt))
        }
        _ = interruptions.recv() => Err(Interrupted::WhilePrinting.into()),
    };
    removed(reader.remove().await, "the reader pod", &session.printer);
    printed.map(|()| Exit::Done)
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
        .help(format!("`infra job logs {name} --role {role} --index {index}` reads the log of its pod"))
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
