//! Where things are in the directory that holds a cluster.yaml.

use std::path::{Path, PathBuf};

use super::error::ProjectError;
use crate::config::{self, Cluster};
use crate::credentials::Store;
use crate::document::{LoadError, Loaded};

/// A directory with a cluster.yaml, or one that `infra init` writes it to.
#[derive(Clone, Debug)]
pub(crate) struct AssetDirectory {
    directory: PathBuf,
    /// Where the team's own templates are, if not in templates/.
    pub(super) templates: Option<PathBuf>,
}

impl AssetDirectory {
    pub(crate) fn new(directory: &Path, templates: Option<&Path>) -> Self {
        // "./cluster.yaml" in a message would only be longer.
        let directory = if directory == Path::new(".") { PathBuf::new() } else { directory.to_owned() };
        Self { directory, templates: templates.map(Path::to_owned) }
    }

    pub(crate) fn directory(&self) -> &Path {
        if self.directory.as_os_str().is_empty() { Path::new(".") } else { &self.directory }
    }

    pub(crate) fn cluster_file(&self) -> PathBuf {
        self.file("cluster.yaml")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.file("credentials")
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.file("infra.lock")
    }

    /// A file by its path below the directory.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Reads and validates cluster.yaml.
    pub(crate) fn load_cluster(&self) -> Result<Loaded<Cluster>, LoadError> {
        config::load(&self.cluster_file())
    }

    /// Opens the credentials, which must be there already.
    pub(crate) fn open_existing_credentials(&self, on_wait: impl FnOnce()) -> Result<Store, ProjectError> {
        let directory = self.credentials();
        if !directory.is_dir() {
            return Err(ProjectError::NoCredentials { directory });
        }
        self.open_credentials(on_wait)
    }

    /// Opens the credentials and locks them. If another `infra` uses them, `on_wait` is called and this waits.
    pub(crate) fn open_credentials(&self, on_wait: impl FnOnce()) -> Result<Store, ProjectError> {
        Ok(Store::open(&self.credentials(), on_wait)?)
    }
}
