//! `infra job fetch`: downloads a job's results.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::archive_download::{READER_TIME_LIMIT, download, new_reader};
use super::target::{JobNameOptions, JobTarget, parse_run_name, removed};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::life::{FetchSource, JobReport, Reader};
use crate::job::values::RunName;
use crate::job::{OUTPUT_DIRECTORY, Unpacked, run_directory};
use crate::kube::ApiServer;
use crate::plural::count_of;

const MEBIBYTE: u64 = 1 << 20;
/// Entries that were left out are shown by name, the first of them.
const NAMES_SHOWN: usize = 5;

/// Download a job's results
///
/// A pod reads them from the claim and the API server passes them on; the pod is deleted afterwards. Nothing is overwritten. Links that
/// lead out of the directory, pipes and devices are left out and named; modes follow your umask.
#[derive(Args, Debug)]
pub(super) struct FetchArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// Write to this directory; by default results/NAME beside cluster.yaml
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Download this directory of the run instead of output; `.` means all of it
    #[arg(long, value_name = "DIR", default_value = OUTPUT_DIRECTORY, value_parser = parse_path)]
    path: String,
    /// The run; by default that of the job on the cluster
    #[arg(long, value_name = "RUN", value_parser = parse_run_name)]
    run: Option<RunName>,
    /// The image of the pod that reads, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

pub(super) fn run(arguments: &FetchArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let directory = match &arguments.to {
        Some(directory) => {
            session.assets.refuse_reserved(directory)?;
            directory.clone()
        }
        None => session.assets.results_directory(&target.name)?,
    };
    refuse_to_overwrite(&directory)?;
    let cluster = TargetCluster::find(session)?;
    let api = &cluster.api;
    block_on(async {
        let known = cluster.read_facts().await?;
        let reading = new_reader(known.facts(), arguments.image.clone(), session)?;
        let source = find_results(api, &target, arguments).await?;
        // Listens before the reader exists, so that an early Ctrl-C leaves none behind.
        let mut interruptions = signal(SignalKind::interrupt())?;
        let reader = Reader::start(api, &source, &reading).await?;
        let fetched = tokio::select! {
            fetched = fetch(&reader, &directory, session) => fetched.map(|()| Exit::Done),
            _ = interruptions.recv() => {
                Err(Interrupted::WhileFetching { left: what_is_left(&directory) }.into())
            }
        };
        removed(reader.remove().await, "the reader pod", &session.printer);
        fetched
    })
}

fn parse_path(text: &str) -> Result<String, String> {
    if text.split('/').any(|part| part == "..") {
        return Err("it is outside of the job's directory".to_owned());
    }
    Ok(text.to_owned())
}

fn what_is_left(directory: &Path) -> String {
    if directory.exists() {
        format!("what was downloaded so far is in {}; delete it before you fetch again", directory.display())
    } else {
        "nothing was downloaded".to_owned()
    }
}

fn refuse_to_overwrite(directory: &Path) -> anyhow::Result<()> {
    let is_empty = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| format!("reading {}", directory.display())),
    };
    if is_empty {
        return Ok(());
    }
    Err(Refusal::new(format!("{} is not empty", directory.display()))
        .help("`--to DIR` names another directory; nothing is overwritten")
        .into())
}

/// Finds the results: those of the job on the cluster, or of the run that is named.
async fn find_results(
    api: &ApiServer,
    target: &JobTarget,
    arguments: &FetchArguments,
) -> anyhow::Result<FetchSource> {
    let (claim, directory) = match (&target.job, &arguments.run) {
        (Some(job), Some(run)) => {
            let directory = format!("{}/{}", job.storage.path, run_directory(run.as_str()));
            (job.storage.claim.to_string(), directory)
        }
        (_, run) => {
            let report = JobReport::read(api, &target.namespace, &target.name).await?;
            match run {
                Some(run) => (report.claim, format!("{}/{}", report.path, run_directory(run.as_str()))),
                None => (report.claim, report.directory),
            }
        }
    };
    let below = arguments.path.split('/').filter(|part| !matches!(*part, "" | "."));
    let path = [directory.as_str()].into_iter().chain(below).collect::<Vec<_>>().join("/");
    Ok(FetchSource { name: target.name.clone(), namespace: target.namespace.clone(), claim, path })
}

async fn fetch(reader: &Reader<'_>, directory: &Path, session: &Session) -> anyhow::Result<()> {
    let (_interrupter, waiting) = session.begin_waiting(Some(READER_TIME_LIMIT));
    let tell = |detail: String| session.printer.note(format_args!("the reader pod is waiting: {detail}"));
    let bytes = reader.wait_until_ready(&waiting, &tell).await?;
    session.printer.note(format_args!(
        "downloading {} MiB to {}",
        bytes.div_ceil(MEBIBYTE),
        directory.display()
    ));
    match download(reader, directory, session).await {
        Ok(unpacked) => print_unpacked(&unpacked, directory, session),
        Err(error) => {
            session.printer.note(what_is_left(directory));
            return Err(error);
        }
    }
    Ok(())
}

fn print_unpacked(unpacked: &Unpacked, directory: &Path, session: &Session) {
    let Unpacked { files, outside_links, special_files } = unpacked;
    if !outside_links.is_empty() {
        session.printer.warning(format_args!(
            "left out {}, leading out of {}: {}",
            count_of(outside_links.len(), "link"),
            directory.display(),
            first_names(outside_links)
        ));
    }
    if !special_files.is_empty() {
        session.printer.warning(format_args!(
            "left out {} (pipes, devices): {}",
            count_of(special_files.len(), "special file"),
            first_names(special_files)
        ));
    }
    session.printer.note(format_args!("{} in {}", count_of(*files, "file"), directory.display()));
}

/// As many names as a line holds.
fn first_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
