//! `infra job fetch`: downloads a job's results.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::target::{JobNameOptions, JobTarget, connect, random_mark, random_token, removed, scripts_of};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::life::{FetchSource, FetchTarget, JobReport, Reader};
use crate::job::{HELPER_IMAGE, Unpacked, tolerations_of_all_pools, unpack};
use crate::kube::{ApiServer, Body};
use crate::plural::count_of;

/// A reader pod needs a machine and an image.
const READER_TIME_LIMIT: Duration = Duration::from_mins(10);
/// Pieces that wait to be written; more would only use memory.
const PIECES: usize = 16;
const MEBIBYTE: u64 = 1 << 20;
/// The longest silence: a slow file system needs a moment, a machine that slept has lost its connection.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);
/// Bytes between two lines of progress.
const PROGRESS_BYTES: u64 = 256 * MEBIBYTE;
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
    /// Download this directory of the job instead of output; `.` means all of it
    #[arg(long, value_name = "DIR", default_value = "output", value_parser = parse_path)]
    path: String,
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
    let (blueprint, api) = connect(session)?;
    let usual = || blueprint.mirrored_image(HELPER_IMAGE);
    let reading = FetchTarget {
        image: arguments.image.clone().unwrap_or_else(usual),
        script: scripts_of(session)?.archive_server(),
        mark: random_mark()?,
        token: random_token()?,
        tolerations: tolerations_of_all_pools(&blueprint),
    };
    block_on(async {
        let source = find_results(&api, &target, &arguments.path).await?;
        // Listens before the reader exists, so that an early Ctrl-C leaves none behind.
        let mut interruptions = signal(SignalKind::interrupt())?;
        let reader = Reader::start(&api, &source, &reading).await?;
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

/// Finds the results: by the job file, or by the job itself.
async fn find_results(api: &ApiServer, target: &JobTarget, below: &str) -> anyhow::Result<FetchSource> {
    let (claim, path) = match &target.job {
        Some(job) => (job.storage.claim.to_string(), job.storage.path.to_string()),
        None => {
            let report = JobReport::read(api, &target.namespace, &target.name).await?;
            (report.claim, report.path)
        }
    };
    let below = below.split('/').filter(|part| !matches!(*part, "" | "."));
    let path = [path.as_str()].into_iter().chain(below).collect::<Vec<_>>().join("/");
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
    let body = reader.open().await?;
    let (sender, receiver) = sync_channel(PIECES);
    let target = directory.to_owned();
    // Unpacking waits for the disk, and must not block the network.
    let unpacking = tokio::task::spawn_blocking(move || {
        unpack(Pieces { receiver, piece: io::Cursor::default() }, &target)
    });
    let pumped = pump_archive(body, sender, session).await;
    let unpacked = unpacking.await.context("unpacking")?;
    match pumped.and(unpacked.map_err(anyhow::Error::from)) {
        Ok(unpacked) => print_unpacked(&unpacked, directory, session),
        Err(error) => {
            session.printer.note(what_is_left(directory));
            return Err(error);
        }
    }
    Ok(())
}

async fn pump_archive(mut body: Body, sender: SyncSender<Vec<u8>>, session: &Session) -> anyhow::Result<()> {
    let (mut done, mut told) = (0, 0);
    while let Some(chunk) = body.chunk_within(LONGEST_SILENCE).await.context("the archive ended early")? {
        done += chunk.len() as u64;
        if done - told >= PROGRESS_BYTES {
            session.printer.note(format_args!("  {} MiB", done / MEBIBYTE));
            told = done;
        }
        let sending = sender.clone();
        // Unpacking ended early, and reports why.
        if tokio::task::spawn_blocking(move || sending.send(chunk.to_vec())).await?.is_err() {
            return Ok(());
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

/// Bytes that come piece by piece from another task.
struct Pieces {
    receiver: Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.receiver.recv() {
                Ok(piece) => self.piece = io::Cursor::new(piece),
                Err(_) => return Ok(0),
            }
        }
    }
}
