//! Writes files so that each is either the old one or the new one, even if the process is killed or the disk is full.
//!
//! Bytes go to a temporary name in the same directory, which only its owner can read from the moment it exists, are synced,
//! get their mode, and are renamed. What a killed run leaves behind is a temporary file that the next run removes.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

const TEMPORARY_PREFIX: &str = ".infra-";
const TEMPORARY_SUFFIX: &str = ".part";
/// The permissions of a file's group and of all others.
const GROUP_AND_OTHERS: u32 = 0o077;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The owner only.
    Private,
    /// Every user.
    Public,
}

impl Access {
    /// The permission bits.
    #[must_use]
    pub fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Public => 0o644,
        }
    }
}

/// Why a file was not written; no part of it is left.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file exists already.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot write {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
}

/// Writes a file, or replaces the one that exists.
pub(crate) fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), WriteError> {
    let refused = |reason| WriteError::Refused { path: path.to_owned(), reason };
    let file = write_temporary(path, bytes, access).map_err(refused)?;
    file.persist(path).map_err(|error| refused(error.error))?;
    sync_directory(parent_directory(path)).map_err(refused)
}

/// Writes a file unless it has the same bytes and, if it is private, is closed to others; returns whether it was written.
pub(crate) fn ensure(path: &Path, bytes: &[u8], access: Access) -> Result<bool, WriteError> {
    let is_closed =
        || std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & GROUP_AND_OTHERS == 0);
    let is_there = std::fs::read(path).is_ok_and(|found| found == bytes);
    if is_there && (access == Access::Public || is_closed()) {
        return Ok(false);
    }
    replace(path, bytes, access).map(|()| true)
}

/// Writes a file that must not be there yet.
pub(crate) fn create(path: &Path, bytes: &[u8], access: Access) -> Result<(), WriteError> {
    let refused = |reason: io::Error| match reason.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.to_owned() },
        _ => WriteError::Refused { path: path.to_owned(), reason },
    };
    let file = write_temporary(path, bytes, access).map_err(refused)?;
    file.persist_noclobber(path).map_err(|error| refused(error.error))?;
    sync_directory(parent_directory(path)).map_err(refused)
}

/// Removes what killed runs left in a directory; only for one that no other run is writing to.
pub(crate) fn remove_leftovers(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn write_temporary(path: &Path, bytes: &[u8], access: Access) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .suffix(TEMPORARY_SUFFIX)
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(parent_directory(path))?;
    file.write_all(bytes)?;
    if access != Access::Private {
        file.as_file().set_permissions(Permissions::from_mode(access.mode()))?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

/// A rename is on disk only when its directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
