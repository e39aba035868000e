//! The .gitignore that keeps private keys out of a repository.

use std::path::PathBuf;

use super::asset_directory::AssetDirectory;
use super::error::ProjectError;
use crate::durable_file::{self, Access, WriteError};
use crate::render::render_gitignore;

const GITIGNORE: &str = ".gitignore";

/// What happened to the .gitignore.
#[derive(Debug)]
pub(crate) enum Gitignore {
    Written(PathBuf),
    /// There was one, which was not touched, and these lines are missing in it.
    Kept {
        path: PathBuf,
        missing: Vec<&'static str>,
    },
}

impl AssetDirectory {
    /// Writes a .gitignore unless there is one.
    pub(crate) fn write_gitignore(&self) -> Result<Gitignore, ProjectError> {
        let path = self.files.unchecked_path(GITIGNORE);
        match durable_file::create(&path, render_gitignore().as_bytes(), Access::Public) {
            Ok(()) => Ok(Gitignore::Written(path)),
            Err(WriteError::Exists { .. }) => {
                // A link is not followed: Git does not follow it either.
                let found = self.files.read(GITIGNORE).ok().flatten().unwrap_or_default();
                let found = String::from_utf8_lossy(&found);
                let wanted = render_gitignore().lines().filter(|line| line.starts_with('/'));
                let missing = wanted.filter(|line| !found.lines().any(|there| there.trim() == *line));
                Ok(Gitignore::Kept { path, missing: missing.collect() })
            }
            Err(error) => Err(error.into()),
        }
    }
}
