//! Where things are in the directory that holds a cluster.yaml.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::failure::Refusal;
use super::printer::Printer;
use crate::blueprint::Role;
use crate::config::{self, Cluster};
use crate::credentials::Store;
use crate::document::{LoadError, Loaded, nearest, parse_untyped, read_text};
use crate::render::Asset;

/// A directory with a cluster.yaml.
#[derive(Debug)]
pub(super) struct AssetDirectory {
    directory: PathBuf,
    templates: Option<PathBuf>,
}

impl AssetDirectory {
    pub(super) fn new(directory: &Path, templates: Option<&Path>) -> Self {
        // "./cluster.yaml" in a message would only be longer.
        let directory = if directory == Path::new(".") { PathBuf::new() } else { directory.to_owned() };
        Self { directory, templates: templates.map(Path::to_owned) }
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

    /// A file by its path below the directory.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// A file's path, after the directory it stands in was made.
    pub(super) fn prepare(&self, path: &str) -> anyhow::Result<PathBuf> {
        let full = self.file(path);
        if let Some(parent) = full.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        }
        Ok(full)
    }

    /// The team's own templates, by their path below templates/.
    pub(super) fn read_overrides(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let root = self.templates.clone().unwrap_or_else(|| self.directory.join("templates"));
        if self.templates.is_some() && !root.is_dir() {
            return Err(Refusal::invalid(format!("there is no directory {}", root.display())).into());
        }
        let mut overrides = BTreeMap::new();
        read_tree(&root, "", &mut overrides)?;
        Ok(overrides)
    }

    /// The team's own manifests, by file name.
    pub(super) fn read_extra_manifests(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut manifests = BTreeMap::new();
        read_tree(&self.file("manifests/extra"), "", &mut manifests)?;
        for (name, text) in &manifests {
            let is_yaml = Path::new(name).extension().is_some_and(|extension| extension == "yaml");
            if !is_yaml || name.contains('/') {
                return Err(Refusal::invalid(format!("manifests/extra/{name} is not a .yaml file")).into());
            }
            parse_untyped(&self.file("manifests/extra").join(name), text)?;
        }
        Ok(manifests)
    }

    /// The team's own Ignition configs for each role, in order: each goes to the roles with the longest name that its own begins
    /// with. One that is for nobody is named.
    pub(super) fn read_snippets(
        &self,
        roles: &[Role],
        printer: &Printer,
    ) -> anyhow::Result<BTreeMap<Role, Vec<Asset>>> {
        let mut files = BTreeMap::new();
        read_tree(&self.file("snippets"), "", &mut files)?;
        let prefixes: BTreeSet<String> = roles.iter().map(Role::snippet_prefix).collect();
        let mut snippets: BTreeMap<Role, Vec<Asset>> =
            roles.iter().map(|role| (role.clone(), Vec::new())).collect();
        for (name, text) in files {
            let Some(stem) = name.strip_suffix(".ign") else { continue };
            let begins = |prefix: &&String| {
                let rest = stem.strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_']))
            };
            let Some(prefix) = prefixes.iter().filter(begins).max_by_key(|prefix| prefix.len()) else {
                let known: Vec<&str> = prefixes.iter().map(String::as_str).collect();
                let help = match nearest(stem, known.iter().copied()) {
                    Some(near) => format!("did you mean {near}.ign?"),
                    None => format!("its name must begin with one of {}", known.join(", ")),
                };
                printer.warning(format_args!("snippets/{name} is for no machine of this cluster: {help}"));
                continue;
            };
            let snippet = Asset::snippet(&name, text);
            for (role, list) in &mut snippets {
                if role.snippet_prefix() == *prefix {
                    list.push(snippet.clone());
                }
            }
        }
        Ok(snippets)
    }

    /// What an earlier render wrote, by path below the directory.
    pub(super) fn rendered_files(&self) -> anyhow::Result<Vec<String>> {
        let mut files = Vec::new();
        for (directory, extension) in [("stacks", "json"), ("userdata", "ign"), ("manifests", "yaml")] {
            let path = self.file(directory);
            if !path.is_dir() {
                continue;
            }
            for entry in std::fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))? {
                let entry = entry?;
                let is_ours = entry.path().extension().is_some_and(|found| found == extension);
                if is_ours && entry.file_type()?.is_file() {
                    files.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        Ok(files)
    }

    /// The cluster, with its warnings still to be shown.
    pub(super) fn load(&self) -> Result<Loaded<Cluster>, LoadError> {
        config::load(&self.cluster_file())
    }

    /// The cluster, after its warnings were shown.
    pub(super) fn load_cluster(&self, printer: &Printer) -> Result<Cluster, LoadError> {
        let loaded = self.load()?;
        if !loaded.warnings.list().is_empty() {
            printer.note(&loaded.warnings);
        }
        Ok(loaded.value)
    }

    /// The credentials, which must be there already.
    pub(super) fn open_existing_credentials(&self, printer: &Printer) -> anyhow::Result<Store> {
        let directory = self.credentials();
        if !directory.is_dir() {
            return Err(Refusal::new(format!("there are no credentials in {}", directory.display()))
                .help("`infra render credentials --generate-ca` makes them")
                .into());
        }
        self.open_credentials(printer)
    }

    /// The credentials, locked for this run.
    pub(super) fn open_credentials(&self, printer: &Printer) -> anyhow::Result<Store> {
        let directory = self.credentials();
        let waiting =
            || printer.note(format_args!("waiting for another infra that uses {} …", directory.display()));
        Store::open(&directory, waiting).context("opening the credentials")
    }
}

/// Every file below a directory, by its path there; nothing if there is no such directory.
fn read_tree(root: &Path, below: &str, found: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let directory = root.join(below);
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
        let entry = entry?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { file_name } else { format!("{below}/{file_name}") };
        if entry.path().is_dir() {
            read_tree(root, &name, found)?;
        } else {
            found.insert(name, read_text(&entry.path())?);
        }
    }
    Ok(())
}
