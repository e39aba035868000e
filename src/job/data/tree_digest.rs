//! A whole tree as one digest: paths, contents, links and executable bits. `tree_of` in `templates/jobs/read_files.py` computes the same.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::error::DataError;
use super::hash::{Hash, hash_file};
use super::local_tree::{LocalEntry, LocalKind, LocalTree};

impl LocalTree {
    /// Every file with its size.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            LocalKind::File(file) => Some((entry.path.as_str(), file.size)),
            LocalKind::Directory | LocalKind::Link { .. } => None,
        })
    }

    /// Leaves out directories without a file or a link below, as git does.
    pub(crate) fn remove_empty_directories(&mut self) {
        let is_directory = |entry: &LocalEntry| matches!(entry.kind, LocalKind::Directory);
        let mut needed = BTreeSet::new();
        for entry in self.entries.iter().filter(|entry| !is_directory(entry)) {
            needed.extend(entry.path.match_indices('/').map(|(at, _)| entry.path[..at].to_owned()));
        }
        self.entries.retain(|entry| !is_directory(entry) || needed.contains(&entry.path));
    }

    /// Adds a directory, and those above it, unless they are there; otherwise the path of what is in its place.
    pub(crate) fn ensure_directory(&mut self, path: &str) -> Result<(), String> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let path = &path[..end];
            match self.entries.iter().find(|entry| entry.path == path).map(|entry| &entry.kind) {
                Some(LocalKind::Directory) => {}
                Some(LocalKind::File(_) | LocalKind::Link { .. }) => return Err(path.to_owned()),
                None => {
                    let (path, kind) = (path.to_owned(), LocalKind::Directory);
                    self.entries.push(LocalEntry { source: PathBuf::new(), path, kind });
                }
            }
        }
        Ok(())
    }

    /// The digest of all of it, after every file was read. Directories come before what is in them afterwards.
    pub(crate) fn digest(&mut self) -> Result<String, DataError> {
        self.entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut digest = Hash::new();
        for entry in &mut self.entries {
            let fields: [&str; 3] = match &mut entry.kind {
                LocalKind::Directory => ["directory", "", ""],
                LocalKind::Link { target } => ["link", "", target],
                LocalKind::File(file) => {
                    let hash = file.hash.insert(hash_file(&entry.source)?);
                    ["file", if file.executable { "x" } else { "" }, hash]
                }
            };
            for field in fields.into_iter().chain([entry.path.as_str()]) {
                digest.update(field.as_bytes());
                digest.update(&[0]);
            }
        }
        Ok(digest.finish())
    }

    /// Everything goes below a directory of the claim.
    pub(crate) fn move_below(&mut self, directory: &str) {
        for entry in &mut self.entries {
            entry.path = format!("{directory}/{}", entry.path);
        }
    }
}
