//! What a user wants to put on the claim: files and directories of this machine, with the paths they get there.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::error::DataError;
use super::link::stays_inside;
use super::progress::LeftOut;
use super::remote_path::RemotePath;

const OWNER_EXECUTES: u32 = 0o100;

/// Which entries of a directory are wanted.
pub(crate) trait Selection {
    /// A directory is read next; its entries are judged until it is left.
    fn enter(&mut self, directory: &Path) -> Result<(), DataError>;
    /// The directory that was entered last is done.
    fn leave(&mut self);
    /// Whether an entry of the directory is wanted, and so is what is below.
    fn is_wanted(&self, source: &Path, is_directory: bool) -> bool;
}

/// All of it.
struct Everything;

impl Selection for Everything {
    fn enter(&mut self, _: &Path) -> Result<(), DataError> {
        Ok(())
    }

    fn leave(&mut self) {}

    fn is_wanted(&self, _: &Path, _: bool) -> bool {
        true
    }
}

/// Everything to put, directories before what is in them.
#[derive(Debug, Default)]
pub(crate) struct LocalTree {
    pub(super) entries: Vec<LocalEntry>,
    pub(crate) left_out: LeftOut,
}

/// One file, directory or link.
#[derive(Debug)]
pub(super) struct LocalEntry {
    /// Where it is here.
    pub(super) source: PathBuf,
    /// The path on the claim.
    pub(super) path: String,
    pub(super) kind: LocalKind,
}

#[derive(Debug)]
pub(super) enum LocalKind {
    Directory,
    File(LocalFile),
    Link { target: String },
}

#[derive(Debug)]
pub(super) struct LocalFile {
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: u64,
    pub(super) executable: bool,
    /// Known once it was read.
    pub(super) hash: Option<String>,
}

impl LocalTree {
    /// Finds everything that is named. A source goes into the remote directory under its own name; of one that ends in a slash only what is
    /// in it does.
    pub(crate) fn read(sources: &[PathBuf], remote: &RemotePath) -> Result<Self, DataError> {
        let mut tree = Self::default();
        let mut names = BTreeSet::new();
        for source in sources {
            let text = source.as_os_str().to_string_lossy();
            let is_content = text.ends_with('/') || text.ends_with("/.") || text == ".";
            // What the user names may be a link: it is what the user means.
            let found = fs::metadata(source).map_err(DataError::local("read", source))?;
            let base = if is_content { remote.join("") } else { remote.join(name_of(source)?) };
            if !is_content && !names.insert(base.clone()) {
                return Err(DataError::Argument {
                    reason: format!("two of the files to put would become {base}"),
                    help: "put them into two directories, with two commands",
                });
            }
            if found.is_dir() {
                tree.add_directory(source, &base, Path::new(""), &mut Everything)?;
            } else if is_content {
                return Err(DataError::Argument {
                    reason: format!("{} is not a directory", source.display()),
                    help: "a slash at the end means what is in a directory",
                });
            } else {
                tree.add(source, base, Path::new(""), &found)?;
            }
        }
        Ok(tree)
    }

    /// Finds what is wanted of a directory; paths are relative to it.
    pub(crate) fn read_selected(directory: &Path, selection: &mut dyn Selection) -> Result<Self, DataError> {
        let mut tree = Self::default();
        tree.add_directory(directory, "", Path::new(""), selection)?;
        Ok(tree)
    }

    /// How many files there are, and how many bytes they have.
    #[must_use]
    pub(crate) fn size(&self) -> (u64, u64) {
        self.entries.iter().fold((0, 0), |(files, bytes), entry| match &entry.kind {
            LocalKind::File(file) => (files + 1, bytes + file.size),
            LocalKind::Directory | LocalKind::Link { .. } => (files, bytes),
        })
    }

    fn add_directory(
        &mut self,
        source: &Path,
        path: &str,
        below: &Path,
        selection: &mut dyn Selection,
    ) -> Result<(), DataError> {
        if !path.is_empty() {
            let kind = LocalKind::Directory;
            self.entries.push(LocalEntry { source: source.to_owned(), path: path.to_owned(), kind });
        }
        let entries = fs::read_dir(source).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let mut entries = entries.map_err(DataError::local("read", source))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        selection.enter(source)?;
        for entry in entries {
            let (inner, below) = (entry.path(), below.join(entry.file_name()));
            let found = fs::symlink_metadata(&inner).map_err(DataError::local("read", &inner))?;
            if !selection.is_wanted(&inner, found.is_dir()) {
                continue;
            }
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                self.left_out.special_files.push(below.display().to_string());
                continue;
            };
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            if found.is_dir() {
                self.add_directory(&inner, &path, &below, selection)?;
            } else {
                self.add(&inner, path, &below, &found)?;
            }
        }
        selection.leave();
        Ok(())
    }

    fn add(&mut self, source: &Path, path: String, below: &Path, found: &Metadata) -> Result<(), DataError> {
        let kind = if found.is_file() {
            let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            LocalKind::File(LocalFile {
                size: found.len(),
                modified: modified.map_or(0, |since| since.as_secs()),
                executable: found.permissions().mode() & OWNER_EXECUTES != 0,
                hash: None,
            })
        } else if found.is_symlink() {
            let target = fs::read_link(source).map_err(DataError::local("read", source))?;
            match target.to_str() {
                Some(text) if stays_inside(below, &target) => LocalKind::Link { target: text.to_owned() },
                _ => {
                    self.left_out.outside_links.push(format!("{} -> {}", below.display(), target.display()));
                    return Ok(());
                }
            }
        } else {
            self.left_out.special_files.push(source.display().to_string());
            return Ok(());
        };
        self.entries.push(LocalEntry { source: source.to_owned(), path, kind });
        Ok(())
    }
}

fn name_of(source: &Path) -> Result<&str, DataError> {
    source.file_name().and_then(|name| name.to_str()).ok_or_else(|| DataError::Argument {
        reason: format!("'{}' has no name that the claim could use", source.display()),
        help: "a slash at the end means what is in a directory",
    })
}
