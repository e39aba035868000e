//! A directory below which no symbolic link is followed: not to read, not to write, not to delete.
//!
//! The directory itself may be a link, or be reached through one: whoever names it means it. What is below may come from a pull request
//! or an archive, whose author would otherwise choose any file of this machine.

use std::fs::{DirBuilder, DirEntry, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use crate::durable_file::{self, Access, WriteError};
use crate::outcome::{Explain, Outcome};

/// A directory whose links are not followed.
#[derive(Clone, Debug)]
pub(crate) struct ConfinedDirectory {
    root: PathBuf,
}

/// Why something below the directory was not touched.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedError {
    /// The path, or a directory on the way to it, is a link.
    #[error("{} is a symbolic link, which infra does not follow", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The path is not below the directory.
    #[error("'{}' is outside of the directory", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Explain for ConfinedError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Link { .. } => Some(
                "put the file or directory itself there; if you did not create the link, find out who did"
                    .to_owned(),
            ),
            Self::Outside { .. } | Self::Disk { .. } | Self::Write(_) => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Link { .. } | Self::Outside { .. } => Outcome::Invalid,
            Self::Disk { .. } | Self::Write(_) => Outcome::Failed,
        }
    }
}

impl ConfinedDirectory {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where a path below the directory is, without a check: for messages.
    pub(crate) fn unchecked_path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Where a path below the directory is; neither it nor a directory on the way to it is a link. It need not exist.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> Result<PathBuf, ConfinedError> {
        let below = below.as_ref();
        let mut path = self.root.clone();
        for component in below.components() {
            match component {
                Component::CurDir => continue,
                Component::Normal(name) => path.push(name),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(ConfinedError::Outside { path: below.to_owned() });
                }
            }
            // What cannot be looked at cannot be opened either, and the reason is reported then.
            if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                return Err(ConfinedError::Link { path });
            }
        }
        Ok(path)
    }

    /// What is at a path, if there is anything.
    pub(crate) fn metadata(&self, below: impl AsRef<Path>) -> Result<Option<Metadata>, ConfinedError> {
        let path = self.path(below)?;
        match path.symlink_metadata() {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(ConfinedError::Disk { doing: "read", path, reason }),
        }
    }

    /// What is in a directory, in the order of the names; nothing if there is no such directory.
    pub(crate) fn entries(&self, below: impl AsRef<Path>) -> Result<Vec<DirEntry>, ConfinedError> {
        let path = self.path(below)?;
        if !path.is_dir() {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>);
        let mut entries = entries.map_err(|reason| ConfinedError::Disk { doing: "read", path, reason })?;
        entries.sort_by_key(DirEntry::file_name);
        Ok(entries)
    }

    /// The bytes of a file, if it exists.
    pub(crate) fn read(&self, below: impl AsRef<Path>) -> Result<Option<Vec<u8>>, ConfinedError> {
        let path = self.path(below)?;
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(ConfinedError::Disk { doing: "read", path, reason }),
        }
    }

    /// Creates a directory, and those above it that are missing, with this mode at most.
    pub(crate) fn create_directory(&self, below: impl AsRef<Path>, mode: u32) -> Result<(), ConfinedError> {
        let path = self.path(below)?;
        match DirBuilder::new().mode(mode).recursive(true).create(&path) {
            Ok(()) => Ok(()),
            Err(reason) => Err(ConfinedError::Disk { doing: "create", path, reason }),
        }
    }

    /// Writes a file unless it is as it should be; returns whether it was written. Its directory must exist.
    pub(crate) fn ensure_file(
        &self,
        below: impl AsRef<Path>,
        bytes: &[u8],
        access: Access,
    ) -> Result<bool, ConfinedError> {
        Ok(durable_file::ensure(&self.path(below)?, bytes, access)?)
    }

    /// Deletes a file.
    pub(crate) fn delete_file(&self, below: impl AsRef<Path>) -> Result<(), ConfinedError> {
        let path = self.path(below)?;
        std::fs::remove_file(&path).map_err(|reason| ConfinedError::Disk { doing: "delete", path, reason })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{ConfinedDirectory, ConfinedError};

    #[test]
    fn links_and_paths_out_of_the_directory_are_refused() -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let outside = temporary.path().join("outside");
        std::fs::create_dir(&outside)?;
        std::fs::write(outside.join("file"), "kept")?;
        let root = temporary.path().join("root");
        std::fs::create_dir(&root)?;
        symlink(&outside, root.join("link"))?;
        symlink(&root, temporary.path().join("way"))?;
        // The directory itself may be reached through a link.
        let directory = ConfinedDirectory::new(&temporary.path().join("way"));
        for path in ["link", "link/file", "link/new"] {
            assert!(matches!(directory.path(path), Err(ConfinedError::Link { .. })), "{path}");
        }
        for path in ["..", "a/../..", "/etc/passwd"] {
            assert!(matches!(directory.path(path), Err(ConfinedError::Outside { .. })), "{path}");
        }
        assert!(directory.entries("link").is_err() && directory.delete_file("link/file").is_err());
        assert!(directory.create_directory("link/new", 0o755).is_err());
        assert!(directory.read("link/file").is_err() && directory.read("none")?.is_none());
        directory.create_directory("a/b", 0o755)?;
        assert!(directory.path("./a/b")?.is_dir());
        assert_eq!(std::fs::read_dir(&outside)?.count(), 1);
        Ok(())
    }
}
