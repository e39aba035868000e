//! Files of this machine onto the claim.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use super::channel::Channel;
use super::error::DataError;
use super::hash::hash_file;
use super::local_tree::{LocalEntry, LocalFile, LocalKind, LocalTree};
use super::progress::{Moved, Progress};
use super::window::Window;

/// Entries that are compared at once.
const BATCH: usize = 500;
/// Files up to this size are packed together.
const LARGEST_SMALL: u64 = 256 << 10;
/// As much as one message holds.
const PIECE: usize = 1 << 20;

/// Puts everything onto the claim, but not what is there already. After a break the same call continues.
pub(crate) async fn put(
    channel: &mut Channel,
    tree: &mut LocalTree,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Moved, DataError> {
    let (files, bytes) = tree.size();
    let mut upload = Upload {
        channel,
        window: Window::default(),
        progress: Progress { files, bytes, ..Progress::default() },
        moved: Moved { files, bytes, left_out: tree.left_out.clone(), ..Moved::default() },
        tell,
    };
    (upload.tell)(upload.progress);
    for batch in tree.entries.chunks_mut(BATCH) {
        hash_batch(batch).await?;
        upload.put_batch(batch).await?;
    }
    Ok(upload.moved)
}

/// Reads what was not read yet. That waits for the disk, and must not block the network.
async fn hash_batch(batch: &mut [LocalEntry]) -> Result<(), DataError> {
    for entry in batch {
        let LocalKind::File(file) = &mut entry.kind else { continue };
        if file.hash.is_none() {
            let source = entry.source.clone();
            file.hash = Some(run_blocking(move || hash_file(&source)).await?);
        }
    }
    Ok(())
}

struct Upload<'a> {
    channel: &'a mut Channel,
    window: Window,
    progress: Progress,
    moved: Moved,
    tell: &'a (dyn Fn(Progress) + Sync),
}

impl Upload<'_> {
    async fn put_batch(&mut self, batch: &[LocalEntry]) -> Result<(), DataError> {
        let entries: Vec<Value> = batch.iter().map(entry_for_pod).collect();
        self.channel.send(&json!({"do": "check", "entries": entries}), &[]).await?;
        let (answer, _) = self.channel.receive().await?;
        let mut unchanged = vec![true; batch.len()];
        answer.needed.iter().for_each(|(number, _)| {
            if let Some(unchanged) = unchanged.get_mut(*number) {
                *unchanged = false;
            }
        });
        for (entry, _) in batch.iter().zip(unchanged).filter(|(_, unchanged)| *unchanged) {
            if let LocalKind::File(file) = &entry.kind {
                self.advance((1, file.size));
            }
        }
        let mut small: Vec<(&LocalEntry, &LocalFile)> = Vec::new();
        for (number, offset) in answer.needed {
            let Some(entry) = batch.get(number) else { continue };
            let LocalKind::File(file) = &entry.kind else { continue };
            if file.size > LARGEST_SMALL {
                self.put_parts(entry, file, offset).await?;
                continue;
            }
            let packed: u64 = small.iter().map(|(_, file)| file.size).sum();
            if packed + file.size > PIECE as u64 {
                self.put_small(&std::mem::take(&mut small)).await?;
            }
            small.push((entry, file));
        }
        self.put_small(&small).await?;
        while !self.window.is_empty() {
            let done = self.window.wait_for_one(self.channel).await?;
            self.advance(done);
        }
        Ok(())
    }

    async fn put_small(&mut self, files: &[(&LocalEntry, &LocalFile)]) -> Result<(), DataError> {
        if files.is_empty() {
            return Ok(());
        }
        let mut content = Vec::new();
        for (entry, file) in files {
            let before = content.len() as u64;
            let read =
                File::open(&entry.source).and_then(|opened| opened.take(file.size).read_to_end(&mut content));
            read.map_err(DataError::local("read", &entry.source))?;
            if content.len() as u64 - before != file.size {
                return Err(changed_file_error(&entry.source));
            }
        }
        let described: Vec<Value> = files.iter().map(|(entry, _)| entry_for_pod(entry)).collect();
        let moves = (files.len() as u64, content.len() as u64);
        self.moved.moved_files += moves.0;
        self.moved.moved_bytes += moves.1;
        let request = json!({"do": "write", "files": described});
        let done = self.window.send(self.channel, &request, &content, moves).await?;
        self.advance(done);
        Ok(())
    }

    async fn put_parts(&mut self, entry: &LocalEntry, file: &LocalFile, from: u64) -> Result<(), DataError> {
        let mut opened = File::open(&entry.source).map_err(DataError::local("read", &entry.source))?;
        opened.seek(SeekFrom::Start(from)).map_err(DataError::local("read", &entry.source))?;
        self.advance((0, from));
        let mut offset = from;
        while offset < file.size {
            let (piece, back) = read_piece(opened, file.size - offset, &entry.source).await?;
            opened = back;
            let request = json!({"do": "part", "hash": file.hash, "offset": offset});
            let length = piece.len() as u64;
            self.moved.moved_bytes += length;
            let done = self.window.send(self.channel, &request, &piece, (0, length)).await?;
            self.advance(done);
            offset += length;
        }
        self.moved.moved_files += 1;
        let request = json!({"do": "finish", "file": entry_for_pod(entry)});
        let done = self.window.send(self.channel, &request, &[], (1, 0)).await?;
        self.advance(done);
        Ok(())
    }

    fn advance(&mut self, (files, bytes): (u64, u64)) {
        self.progress.done_files += files;
        self.progress.done_bytes += bytes;
        (self.tell)(self.progress);
    }
}

/// The next piece of a file, read on a thread that may wait for the disk.
async fn read_piece(file: File, left: u64, source: &Path) -> Result<(Vec<u8>, File), DataError> {
    let path = source.to_owned();
    run_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE);
        let limit = left.min(PIECE as u64);
        (&file).take(limit).read_to_end(&mut piece).map_err(DataError::local("read", &path))?;
        if piece.len() as u64 == limit { Ok((piece, file)) } else { Err(changed_file_error(&path)) }
    })
    .await
}

/// Work that waits for a disk.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DataError> + Send + 'static,
) -> Result<T, DataError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(DataError::Local {
            doing: "use",
            path: "this machine's disk".into(),
            reason: io::Error::other(error),
        })
    })
}

fn changed_file_error(path: &Path) -> DataError {
    DataError::Local {
        doing: "read",
        path: path.to_owned(),
        reason: io::Error::other("it changed meanwhile"),
    }
}

/// An entry as the program in the pod reads it.
pub(super) fn entry_for_pod(entry: &LocalEntry) -> Value {
    let path = &entry.path;
    match &entry.kind {
        LocalKind::Directory => json!({"kind": "directory", "path": path}),
        LocalKind::Link { target } => json!({"kind": "link", "path": path, "target": target}),
        LocalKind::File(LocalFile { size, modified, executable, hash }) => {
            json!({"kind": "file", "path": path, "size": size, "modified": modified, "executable": executable, "hash": hash})
        }
    }
}
