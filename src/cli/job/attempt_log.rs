//! The logs of an attempt, which the claim keeps when its pods are gone.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;

use super::target::{random_mark, scripts_of};
use crate::cli::claim::{ClaimAccess, Mount};
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::LogPrinter;
use crate::job::data::{DataError, GetRequest, get};
use crate::job::life::{JobReport, ReplicaReport};

/// What the launchers write, the older part first.
const FILES: [&str; 2] = ["output.log.1", "output.log"];
/// How much of a file is read at once.
const PIECE: usize = 64 << 10;

/// Whose logs are wanted.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    /// That of a replica.
    One(&'a ReplicaReport),
    /// Those of all replicas, or of all of a role.
    All(Option<&'a str>),
}

impl Selection<'_> {
    /// The selected replicas in words.
    fn in_words(self) -> String {
        match self {
            Self::One(replica) => format!("the log of {} {}", replica.role, replica.index),
            Self::All(None) => "the logs of all replicas".to_owned(),
            Self::All(Some(role)) => format!("the logs of role {role}"),
        }
    }
}

/// Prints the logs of an attempt of the job's run.
pub(super) async fn print_attempt(
    cluster: &TargetCluster,
    report: &JobReport,
    selection: Selection<'_>,
    attempt: u32,
    session: &Session,
) -> anyhow::Result<Exit> {
    expect_attempt(report, selection, attempt)?;
    let mut path = format!("{}/logs/attempt-{attempt}", report.directory);
    if let Selection::One(replica) = selection {
        path = format!("{path}/{}", replica.name());
    }
    let directory = tempfile::tempdir().context("creating a temporary directory")?;
    let request = GetRequest {
        remote: format!("{path}/").parse().map_err(Refusal::invalid)?,
        directory: directory.path().to_owned(),
        include: Vec::new(),
        mark: None,
    };
    let known = cluster.read_facts().await?;
    let (scripts, mark) = (scripts_of(session)?, random_mark()?);
    let parts = (&cluster.api, known.facts(), &scripts);
    let access = ClaimAccess::new(parts, &report.namespace, &report.claim, None, mark);
    let read = access.run(Mount::ReadOnly, session, Interrupted::WhilePrinting, async |channel| {
        Ok(get(channel, &request, &|_| {}).await?)
    });
    read.await.map_err(|error| explain_missing_log(error, report, selection, attempt))?;
    print_logs(directory.path(), report, selection, session)?;
    Ok(Exit::Done)
}

/// Refuses an attempt that a group has not had, or whose log nobody kept.
fn expect_attempt(report: &JobReport, selection: Selection<'_>, attempt: u32) -> Result<(), Refusal> {
    if report.is_of_earlier_version {
        return Err(Refusal::new(format!(
            "an earlier version of infra submitted job '{}', and kept no logs of its attempts",
            report.name
        ))
        .help(suggest_pod_log(report, selection)));
    }
    let newest = match (&report.restarts, selection) {
        (None, _) => return Ok(()),
        (Some(_), Selection::One(replica)) => replica.restarts,
        (Some(restarts), Selection::All(_)) => restarts.attempt(),
    };
    if attempt <= newest {
        return Ok(());
    }
    let whose = match selection {
        Selection::One(replica) => format!("{} {} of job", replica.role, replica.index),
        Selection::All(_) => "job".to_owned(),
    };
    Err(Refusal::new(format!(
        "{whose} '{}' has had no attempt {attempt}; the newest is attempt {newest}",
        report.name
    ))
    .help("attempts are counted from 0"))
}

fn suggest_pod_log(report: &JobReport, selection: Selection<'_>) -> String {
    let (options, of_pods) = match selection {
        Selection::One(replica) => {
            (format!("--role {} --index {}", replica.role, replica.index), "the log of its pod")
        }
        Selection::All(_) => ("--all".to_owned(), "the logs of its pods"),
    };
    format!("`infra job logs {} {options}` reads {of_pods}", report.name)
}

/// What is said of a directory is said of a log.
fn explain_missing_log(
    error: anyhow::Error,
    report: &JobReport,
    selection: Selection<'_>,
    attempt: u32,
) -> anyhow::Error {
    let (what, name) = (selection.in_words(), &report.name);
    match error.downcast_ref::<DataError>() {
        Some(DataError::Missing { path, claim }) => Refusal::new(format!(
            "{what} of job '{name}' in attempt {attempt} cannot be read: there is no directory {path} on the claim {claim}"
        ))
        .help(suggest_pod_log(report, selection))
        .into(),
        _ => error,
    }
}

fn print_logs(
    unpacked: &Path,
    report: &JobReport,
    selection: Selection<'_>,
    session: &Session,
) -> anyhow::Result<()> {
    let role = match selection {
        Selection::One(_) => return print_directory(unpacked, session.printer.log()),
        Selection::All(role) => role,
    };
    let names: Vec<String> = report.replicas_of(role).into_iter().map(ReplicaReport::name).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    for name in names {
        print_directory(&unpacked.join(&name), session.printer.prefixed_log(&name, width))?;
    }
    Ok(())
}

/// Prints the log of a replica, which may have got no further than its name.
fn print_directory(directory: &Path, mut log: LogPrinter) -> anyhow::Result<()> {
    for file in FILES {
        print_file(&directory.join(file), &mut log)?;
    }
    log.finish()
}

/// Prints a file piece by piece.
fn print_file(path: &Path, log: &mut LogPrinter) -> anyhow::Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let mut buffer = vec![0; PIECE];
    loop {
        let count = file.read(&mut buffer).with_context(|| format!("reading {}", path.display()))?;
        if count == 0 {
            return Ok(());
        }
        log.print(buffer.get(..count).unwrap_or_default())?;
    }
}
