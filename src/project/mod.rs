//! The asset directory of a cluster: what is read from it, and what is written to it.
//!
//! In: a directory with a cluster.yaml, the team's own templates, snippets and manifests, infra.lock and credentials. Out: a loaded
//! [`Project`], everything rendered and checked in memory, and the rendered files on disk. No AWS, and nothing is printed: warnings
//! are values that the caller shows.

mod asset_directory;
mod certificates;
mod error;
mod gitignore;
mod kubeconfig;
mod rendered_files;
mod team_files;

use std::path::PathBuf;

use crate::blueprint::Blueprint;
use crate::check::{Findings, check_assets};
use crate::config::values::PoolName;
use crate::credentials::{CredentialStore, Credentials};
use crate::document::{Loaded, Problems};
use crate::durable_file::Access;
use crate::render::{AssetSources, Assets, Templates, render_assets};

pub(crate) use asset_directory::AssetDirectory;
pub(crate) use error::ProjectError;
pub(crate) use gitignore::Gitignore;
pub(crate) use rendered_files::WrittenFiles;
pub(crate) use team_files::UnusedSnippet;

/// A cluster.yaml that was read and validated once, and the directory it is in.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) blueprint: Blueprint,
    directory: AssetDirectory,
}

/// Everything rendered in memory, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct RenderedProject {
    pub(crate) assets: Assets,
    /// What AWS or a machine would refuse.
    pub(crate) findings: Findings,
    /// Snippets that no machine of the cluster boots with.
    pub(crate) unused_snippets: Vec<UnusedSnippet>,
}

impl Project {
    /// Reads and validates cluster.yaml; also returns its warnings.
    pub(crate) fn load(directory: &AssetDirectory) -> Result<(Self, Problems), ProjectError> {
        let Loaded { value: cluster, warnings } = directory.load_cluster()?;
        let project = Self { blueprint: Blueprint::new(cluster)?, directory: directory.clone() };
        Ok((project, warnings))
    }

    /// Reads the keys and certificates of the cluster.
    pub(crate) fn read_credentials(&self, store: &CredentialStore) -> Result<Credentials, ProjectError> {
        Ok(Credentials::read(store, &self.blueprint.identities)?)
    }

    /// Renders and checks everything in memory.
    pub(crate) fn render(&self, credentials: &Credentials) -> Result<RenderedProject, ProjectError> {
        let snippets = self.directory.read_snippets(&self.blueprint.roles)?;
        let assets = render_assets(&AssetSources {
            blueprint: &self.blueprint,
            credentials,
            templates: &Templates::new(&self.directory.read_overrides()?)?,
            extra_manifests: &self.directory.read_extra_manifests()?,
            snippets: &snippets.by_role,
        })?;
        let findings = check_assets(&assets, &self.blueprint.rules);
        Ok(RenderedProject { assets, findings, unused_snippets: snippets.unused })
    }

    /// Refuses the name of a pool that cluster.yaml does not have.
    pub(crate) fn check_pool_exists(&self, name: &PoolName) -> Result<(), ProjectError> {
        let cluster = &self.blueprint.cluster;
        if cluster.pool(name).is_some() {
            return Ok(());
        }
        let known = cluster.pools.iter().map(|pool| pool.name.to_string()).collect();
        Err(ProjectError::UnknownPool { name: name.clone(), known })
    }

    /// The path and text of infra.lock, if there is one.
    pub(crate) fn read_lock(&self) -> Result<Option<(PathBuf, String)>, ProjectError> {
        self.directory.read_lock()
    }

    /// Writes infra.lock unless it has this text already; returns whether it was written.
    pub(crate) fn write_lock(&self, text: &str) -> Result<bool, ProjectError> {
        Ok(self.directory.files.ensure_file(asset_directory::LOCK_FILE, text.as_bytes(), Access::Public)?)
    }
}

impl RenderedProject {
    /// The assets, if nothing would refuse them.
    pub(crate) fn into_valid_assets(self) -> Result<Assets, ProjectError> {
        if self.findings.0.is_empty() { Ok(self.assets) } else { Err(self.findings.into()) }
    }
}
