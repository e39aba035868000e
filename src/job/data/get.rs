//! Files of the claim onto this machine.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use super::channel::Channel;
use super::entry::{EntryKind, RemoteEntry};
use super::error::DataError;
use super::link::stays_inside;
use super::parts::{Download, FileMarks, Part};
use super::pattern::Pattern;
use super::progress::{Moved, Progress};
use super::put::run_blocking;
use super::remote_path::RemotePath;
use crate::confined_directory::ConfinedError;

/// Hashes that are asked for at once.
const BATCH: usize = 200;
/// Files that are asked for before the first has come.
const MOST_UNDER_WAY: usize = 32;

/// What to download, and to which directory.
#[derive(Clone, Debug)]
pub(crate) struct GetRequest {
    /// The path on the claim.
    pub remote: RemotePath,
    /// The directory here.
    pub directory: PathBuf,
    /// Only files that one of these means; all if there are none.
    pub include: Vec<Pattern>,
    /// The name and the text of a file that says where the others are from.
    pub mark: Option<(&'static str, String)>,
}

/// Downloads everything that is not here already. After a break the same call continues.
pub(crate) async fn get(
    channel: &mut Channel,
    request: &GetRequest,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Moved, DataError> {
    let remote = request.remote.as_request();
    let mut found = channel.list(&remote, true).await?;
    // What a path with a name means goes into a directory of that name.
    let prefix = match (request.remote.name(), request.remote.is_content) {
        (Some(name), false) => Some(name),
        _ => None,
    };
    let root = found.first().map(|entry| entry.kind);
    if root == Some(EntryKind::Link) {
        return Err(DataError::Refused {
            reason: format!("{} is a link, which is not followed", request.remote),
        });
    }
    if root != Some(EntryKind::Directory) && request.remote.is_content {
        return Err(DataError::Refused { reason: format!("{} is not a directory", request.remote) });
    }
    let target = Download::new(&request.directory)?;
    if let Some((name, text)) = &request.mark {
        target.mark(name, text)?;
    }
    let mut moved = Moved::default();
    let is_wanted =
        |path: &str| request.include.is_empty() || request.include.iter().any(|one| one.matches(path));
    found.retain(|entry| entry.kind == EntryKind::Directory || is_wanted(name_in(&remote, entry)));
    let mut files = Vec::new();
    for entry in found {
        let local = [prefix, (!entry.path.is_empty()).then_some(entry.path.as_str())];
        let local = local.into_iter().flatten().collect::<Vec<_>>().join("/");
        if !is_below(Path::new(&local)) {
            return Err(ConfinedError::Outside { path: entry.path.into() }.into());
        }
        match entry.kind {
            // With a selection, only the directories of what was selected appear.
            EntryKind::Directory if !request.include.is_empty() || local.is_empty() => {}
            EntryKind::Directory => target.create_directory(&local)?,
            EntryKind::Link => {
                let to = entry.target.unwrap_or_default();
                if stays_inside(Path::new(&local), Path::new(&to)) {
                    target.create_link(&local, &to)?;
                } else {
                    moved.left_out.outside_links.push(format!("{} -> {to}", entry.path));
                }
            }
            EntryKind::Special => moved.left_out.special_files.push(entry.path),
            EntryKind::File => files.push(Wanted { remote: request.remote.join(&entry.path), local, entry }),
        }
    }
    moved.files = files.len() as u64;
    moved.bytes = files.iter().map(|file| file.entry.size).sum();
    let progress = Progress { files: moved.files, bytes: moved.bytes, ..Progress::default() };
    let mut downloading = Downloading { channel, target, moved, progress, tell };
    downloading.tell_progress();
    let files = downloading.without_same(files).await?;
    downloading.fetch(files).await?;
    downloading.target.clean_up();
    Ok(downloading.moved)
}

/// Whether a path of the other side stays below the directory, whatever its program says.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// The name by which a user would select an entry.
fn name_in<'a>(remote: &'a str, entry: &'a RemoteEntry) -> &'a str {
    if entry.path.is_empty() { remote.rsplit('/').next().unwrap_or_default() } else { &entry.path }
}

/// A file to download.
struct Wanted {
    /// The path on the claim.
    remote: String,
    /// The path below the directory.
    local: String,
    entry: RemoteEntry,
}

struct Downloading<'a> {
    channel: &'a mut Channel,
    target: Download,
    moved: Moved,
    progress: Progress,
    tell: &'a (dyn Fn(Progress) + Sync),
}

impl Downloading<'_> {
    /// Leaves out files that are the same here.
    async fn without_same(&mut self, files: Vec<Wanted>) -> Result<Vec<Wanted>, DataError> {
        let mut wanted = Vec::new();
        let mut similar = Vec::new();
        for file in files {
            let (target, local, entry) = (self.target.clone(), file.local.clone(), file.entry.clone());
            match run_blocking(move || target.hash_of(&local, entry.size, entry.executable)).await? {
                Some(hash) => similar.push((file, hash)),
                None => wanted.push(file),
            }
        }
        let mut similar = similar.into_iter().peekable();
        while similar.peek().is_some() {
            let batch: Vec<(Wanted, String)> = similar.by_ref().take(BATCH).collect();
            let paths: Vec<&str> = batch.iter().map(|(file, _)| file.remote.as_str()).collect();
            self.channel.send(&json!({"do": "hashes", "paths": paths}), &[]).await?;
            let (answer, _) = self.channel.receive().await?;
            let hashes = answer.hashes.into_iter().chain(std::iter::repeat(None));
            for ((file, here), there) in batch.into_iter().zip(hashes) {
                if there.as_deref() == Some(here.as_str()) {
                    self.advance(1, file.entry.size);
                } else {
                    wanted.push(file);
                }
            }
        }
        Ok(wanted)
    }

    async fn fetch(&mut self, files: Vec<Wanted>) -> Result<(), DataError> {
        let mut waiting: VecDeque<(Wanted, bool)> = files.into_iter().map(|file| (file, true)).collect();
        let mut under_way: VecDeque<(Wanted, Part, bool)> = VecDeque::new();
        loop {
            while under_way.len() < MOST_UNDER_WAY
                && let Some((file, may_retry)) = waiting.pop_front()
            {
                let (target, local, size) = (self.target.clone(), file.local.clone(), file.entry.size);
                let part = run_blocking(move || target.open_part(&local, size)).await?;
                self.channel
                    .send(&json!({"do": "read", "path": file.remote, "offset": part.length}), &[])
                    .await?;
                under_way.push_back((file, part, may_retry));
            }
            let Some((file, part, may_retry)) = under_way.pop_front() else { return Ok(()) };
            if let Some(file) = self.receive_file(file, part, may_retry).await? {
                waiting.push_back((file, false));
            }
        }
    }

    /// Receives the file that was asked for first; returns it if it must be asked for again.
    async fn receive_file(
        &mut self,
        file: Wanted,
        mut part: Part,
        may_retry: bool,
    ) -> Result<Option<Wanted>, DataError> {
        let before = part.length;
        self.advance(0, before);
        let answer = loop {
            let (answer, content) = self.channel.receive().await?;
            let length = content.len() as u64;
            part = run_blocking(move || part.append(&content).map(|()| part)).await?;
            self.moved.moved_bytes += length;
            self.advance(0, length);
            if answer.end {
                break answer;
            }
        };
        if answer.gone {
            part.discard()?;
            self.moved.left_out.gone.push(file.entry.path);
            return Ok(None);
        }
        if part.hash() != answer.hash || answer.offset != before {
            part.discard()?;
            self.progress.done_bytes = self.progress.done_bytes.saturating_sub(part.length);
            return if may_retry { Ok(Some(file)) } else { Err(DataError::Damaged { path: file.remote }) };
        }
        let marks = FileMarks { modified: answer.modified, executable: answer.executable };
        let (target, local) = (self.target.clone(), file.local.clone());
        run_blocking(move || target.finish(&part, &local, marks)).await?;
        self.moved.moved_files += 1;
        self.advance(1, 0);
        Ok(None)
    }

    fn advance(&mut self, files: u64, bytes: u64) {
        self.progress.done_files += files;
        self.progress.done_bytes += bytes;
        self.tell_progress();
    }

    fn tell_progress(&self) {
        (self.tell)(self.progress);
    }
}
