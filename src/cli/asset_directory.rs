//! Where things are in the directory that holds a cluster.yaml.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::printer::Printer;
use crate::config::{self, Cluster, ConfigError, Loaded};
use crate::credentials::Store;

/// A directory with a cluster.yaml.
#[derive(Debug)]
pub(super) struct AssetDirectory {
    directory: PathBuf,
}

impl AssetDirectory {
    pub(super) fn new(directory: &Path) -> Self {
        // "./cluster.yaml" in a message would only be longer.
        let directory = if directory == Path::new(".") { PathBuf::new() } else { directory.to_owned() };
        Self { directory }
    }

    pub(super) fn directory(&self) -> &Path {
        if self.directory.as_os_str().is_empty() { Path::new(".") } else { &self.directory }
    }

    pub(super) fn cluster_file(&self) -> PathBuf {
        self.directory.join("cluster.yaml")
    }

    pub(super) fn gitignore(&self) -> PathBuf {
        self.directory.join(".gitignore")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    pub(super) fn credentials(&self) -> PathBuf {
        self.directory.join("credentials")
    }

    /// The cluster, with its warnings still to be shown.
    pub(super) fn load(&self) -> Result<Loaded, ConfigError> {
        config::load(&self.cluster_file())
    }

    /// The cluster, after its warnings were shown.
    pub(super) fn load_cluster(&self, printer: &Printer) -> Result<Cluster, ConfigError> {
        let loaded = self.load()?;
        if !loaded.warnings.list().is_empty() {
            printer.note(&loaded.warnings);
        }
        Ok(loaded.cluster)
    }

    /// The credentials, locked for this run.
    pub(super) fn open_credentials(&self, printer: &Printer) -> anyhow::Result<Store> {
        let directory = self.credentials();
        let waiting =
            || printer.note(format_args!("waiting for another infra that uses {} …", directory.display()));
        Store::open(&directory, waiting).context("opening the credentials")
    }
}
