//! Files from the claim: a pod that reads them, and an archive that is unpacked as it arrives.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;

use super::target::{random_mark, random_token, scripts_of};
use crate::cli::session::Session;
use crate::job::life::{FetchTarget, Reader};
use crate::job::{ClusterFacts, HELPER_IMAGE, Unpacked, tolerations_of_all_pools, unpack};
use crate::kube::Body;

/// A reader pod needs a machine and an image.
pub(super) const READER_TIME_LIMIT: Duration = Duration::from_mins(10);
/// Pieces that wait to be written; more would only use memory.
const PIECES: usize = 16;
const MEBIBYTE: u64 = 1 << 20;
/// The longest silence: a slow file system needs a moment, a machine that slept has lost its connection.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);
/// Bytes between two lines of progress.
const PROGRESS_BYTES: u64 = 256 * MEBIBYTE;

/// A reader that any node may run, with the usual image if none is named.
pub(super) fn new_reader(
    facts: ClusterFacts<'_>,
    image: Option<String>,
    session: &Session,
) -> anyhow::Result<FetchTarget> {
    Ok(FetchTarget {
        image: image.unwrap_or_else(|| facts.mirrored_image(HELPER_IMAGE)),
        script: scripts_of(session)?.archive_server(),
        mark: random_mark()?,
        token: random_token()?,
        tolerations: tolerations_of_all_pools(facts),
    })
}

/// Unpacks what a reader has to a directory.
pub(super) async fn download(
    reader: &Reader<'_>,
    directory: &Path,
    session: &Session,
) -> anyhow::Result<Unpacked> {
    let body = reader.open().await?;
    let (sender, receiver) = sync_channel(PIECES);
    let target = directory.to_owned();
    // Unpacking waits for the disk, and must not block the network.
    let unpacking = tokio::task::spawn_blocking(move || {
        unpack(Pieces { receiver, piece: io::Cursor::default() }, &target)
    });
    let pumped = pump_archive(body, sender, session).await;
    let unpacked = unpacking.await.context("unpacking")?;
    pumped.and(unpacked.map_err(anyhow::Error::from))
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
