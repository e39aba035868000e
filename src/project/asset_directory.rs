//! Where things are in the directory that holds a cluster.yaml. No symbolic link below it is followed.

use std::io;
use std::path::{Component, Path, PathBuf};

use time::OffsetDateTime;

use super::error::ProjectError;
use crate::config::{self, Cluster};
use crate::confined_directory::ConfinedDirectory;
use crate::credentials::{CredentialStore, InventoryEntry, list_certificates};
use crate::document::{Loaded, read_text};

const CLUSTER_FILE: &str = "cluster.yaml";
pub(super) const LOCK_FILE: &str = "infra.lock";
const CREDENTIALS: &str = "credentials";
const USERS: &str = "users";
pub(super) const KUBECONFIG: &str = "kubeconfig";
const RESULTS: &str = "results";
/// What machines, stacks and pods are made from, and the keys.
const RESERVED: [&str; 6] = [CREDENTIALS, "manifests", "snippets", "stacks", "templates", "userdata"];

/// A directory with a cluster.yaml, or one that `infra init` writes it to.
#[derive(Clone, Debug)]
pub(crate) struct AssetDirectory {
    directory: PathBuf,
    /// The only way to what is below the directory.
    pub(super) files: ConfinedDirectory,
    /// Where the team's own templates are, if not in templates/.
    pub(super) templates: Option<PathBuf>,
}

impl AssetDirectory {
    pub(crate) fn new(directory: &Path, templates: Option<&Path>) -> Self {
        // In messages, "cluster.yaml" is shorter than "./cluster.yaml".
        let directory = if directory == Path::new(".") { PathBuf::new() } else { directory.to_owned() };
        let files = ConfinedDirectory::new(&directory);
        Self { directory, files, templates: templates.map(Path::to_owned) }
    }

    pub(crate) fn directory(&self) -> &Path {
        if self.directory.as_os_str().is_empty() { Path::new(".") } else { &self.directory }
    }

    /// The path of cluster.yaml, for messages.
    pub(crate) fn cluster_file(&self) -> PathBuf {
        self.files.unchecked_path(CLUSTER_FILE)
    }

    /// The path and text of infra.lock, if there is one.
    pub(crate) fn read_lock(&self) -> Result<Option<(PathBuf, String)>, ProjectError> {
        if self.files.metadata(LOCK_FILE)?.is_none() {
            return Ok(None);
        }
        let path = self.files.path(LOCK_FILE)?;
        let text = read_text(&path)?;
        Ok(Some((path, text)))
    }

    /// The path of the kubeconfig, for messages.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.files.unchecked_path(KUBECONFIG)
    }

    /// The path of the credentials, for messages.
    pub(crate) fn credentials(&self) -> PathBuf {
        self.files.unchecked_path(CREDENTIALS)
    }

    /// Where a file is that the user names. A relative name is relative to the directory, and no link on the way is followed; any other
    /// name may be anywhere.
    pub(crate) fn named_file(&self, file: &Path) -> Result<PathBuf, ProjectError> {
        let is_below = file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        Ok(if is_below { self.files.path(file)? } else { self.files.unchecked_path(file) })
    }

    /// Where the results of a job go, unless the user says otherwise.
    pub(crate) fn results_directory(&self, job: &str) -> Result<PathBuf, ProjectError> {
        Ok(self.files.path(Path::new(RESULTS).join(job))?)
    }

    /// Refuses a directory that is one of this directory's own: results of a job in it would become part of the cluster.
    pub(crate) fn refuse_reserved(&self, path: &Path) -> Result<(), ProjectError> {
        let real = real_path(path).map_err(ProjectError::disk("read", path))?;
        let own = real_path(self.directory()).map_err(ProjectError::disk("read", self.directory()))?;
        let name = real.strip_prefix(own).ok().and_then(|below| below.components().next());
        match RESERVED.into_iter().find(|reserved| name.is_some_and(|name| name.as_os_str() == *reserved)) {
            Some(reserved) => Err(ProjectError::Reserved { path: path.to_owned(), reserved }),
            None => Ok(()),
        }
    }

    /// Where the kubeconfig of a user goes, unless the administrator says otherwise: beside the keys, which no repository gets.
    pub(crate) fn user_kubeconfig(&self, team: &str, user: &str) -> Result<PathBuf, ProjectError> {
        let directory = Path::new(CREDENTIALS).join(USERS);
        self.files.create_directory(&directory, 0o700)?;
        Ok(self.files.path(directory.join(format!("{team}-{user}.kubeconfig")))?)
    }

    /// Whether there is a cluster.yaml.
    pub(crate) fn has_cluster_file(&self) -> Result<bool, ProjectError> {
        Ok(self.files.metadata(CLUSTER_FILE)?.is_some())
    }

    /// Reads and validates cluster.yaml.
    pub(crate) fn load_cluster(&self) -> Result<Loaded<Cluster>, ProjectError> {
        Ok(config::load(&self.files.path(CLUSTER_FILE)?)?)
    }

    /// Whether there are credentials.
    pub(crate) fn has_credentials(&self) -> Result<bool, ProjectError> {
        Ok(self.files.metadata(CREDENTIALS)?.is_some_and(|found| found.is_dir()))
    }

    /// Every certificate on disk, by file name; `None` if there are no credentials.
    pub(crate) fn list_certificates(
        &self,
        now: OffsetDateTime,
    ) -> Result<Option<Vec<InventoryEntry>>, ProjectError> {
        Ok(list_certificates(&self.files.path(CREDENTIALS)?, now)?)
    }

    /// Opens the credentials, which must be there already.
    pub(crate) fn open_existing_credentials(
        &self,
        on_wait: impl FnOnce(),
    ) -> Result<CredentialStore, ProjectError> {
        if !self.has_credentials()? {
            return Err(ProjectError::NoCredentials { directory: self.credentials() });
        }
        self.open_credentials(on_wait)
    }

    /// Opens the credentials and locks them. If another `infra` uses them, `on_wait` is called and this waits.
    pub(crate) fn open_credentials(&self, on_wait: impl FnOnce()) -> Result<CredentialStore, ProjectError> {
        Ok(CredentialStore::open(&self.files.path(CREDENTIALS)?, on_wait)?)
    }
}

/// A path without links, as far as it exists.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
            return Ok(if missing.as_os_str().is_empty() { real } else { real.join(missing) });
        }
    }
    Ok(path)
}
