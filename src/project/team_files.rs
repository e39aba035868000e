//! What the team adds to a cluster: templates, manifests and snippets of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::asset_directory::AssetDirectory;
use super::error::ProjectError;
use crate::blueprint::Role;
use crate::document::{nearest, parse_untyped, read_text};
use crate::render::Asset;

/// The team's own Ignition configs.
#[derive(Debug)]
pub(super) struct Snippets {
    /// Those of each role, in the order they are merged in.
    pub(super) by_role: BTreeMap<Role, Vec<Asset>>,
    /// Those that are for no role.
    pub(super) unused: Vec<UnusedSnippet>,
}

/// A snippet that no machine of the cluster boots with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusedSnippet {
    name: String,
    /// The name that was probably meant.
    nearest: Option<String>,
    /// What names may begin with.
    prefixes: Vec<String>,
}

impl fmt::Display for UnusedSnippet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "snippets/{} is for no machine of this cluster: ", self.name)?;
        match &self.nearest {
            Some(near) => write!(formatter, "did you mean {near}.ign?"),
            None => write!(formatter, "the name must begin with one of {}", self.prefixes.join(", ")),
        }
    }
}

impl AssetDirectory {
    /// The team's own templates, by their path below templates/.
    pub(crate) fn read_overrides(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let path = self.templates.clone().unwrap_or_else(|| self.file("templates"));
        if self.templates.is_some() && !path.is_dir() {
            return Err(ProjectError::NoTemplates { path });
        }
        read_tree(&path)
    }

    /// The team's own manifests, by file name.
    pub(super) fn read_extra_manifests(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let directory = self.file("manifests/extra");
        let manifests = read_tree(&directory)?;
        for (name, text) in &manifests {
            let is_yaml = Path::new(name).extension().is_some_and(|extension| extension == "yaml");
            if !is_yaml || name.contains('/') {
                return Err(ProjectError::NotAManifest { name: name.clone() });
            }
            parse_untyped(&directory.join(name), text)?;
        }
        Ok(manifests)
    }

    /// The team's own Ignition configs. Each belongs to the roles with the
    /// longest name that its own begins with.
    pub(super) fn read_snippets(&self, roles: &[Role]) -> Result<Snippets, ProjectError> {
        let prefixes: BTreeSet<String> = roles.iter().map(Role::snippet_prefix).collect();
        let mut snippets: BTreeMap<Role, Vec<Asset>> =
            roles.iter().map(|role| (role.clone(), Vec::new())).collect();
        let mut unused = Vec::new();
        for (name, text) in read_tree(&self.file("snippets"))? {
            let Some(stem) = name.strip_suffix(".ign") else { continue };
            let begins = |prefix: &&String| {
                let rest = stem.strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_']))
            };
            let Some(prefix) = prefixes.iter().filter(begins).max_by_key(|prefix| prefix.len()) else {
                let nearest = nearest(stem, prefixes.iter().map(String::as_str)).map(str::to_owned);
                let prefixes = prefixes.iter().cloned().collect();
                unused.push(UnusedSnippet { name, nearest, prefixes });
                continue;
            };
            let snippet = Asset::snippet(&name, text);
            for (role, list) in &mut snippets {
                if role.snippet_prefix() == *prefix {
                    list.push(snippet.clone());
                }
            }
        }
        Ok(Snippets { by_role: snippets, unused })
    }
}

/// Every file below a directory, by its path there; none if there is no such directory.
fn read_tree(root: &Path) -> Result<BTreeMap<String, String>, ProjectError> {
    let mut found = BTreeMap::new();
    read_branch(root, "", &mut found)?;
    Ok(found)
}

fn read_branch(root: &Path, below: &str, found: &mut BTreeMap<String, String>) -> Result<(), ProjectError> {
    let directory = root.join(below);
    if !directory.is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(&directory).map_err(ProjectError::disk("read", &directory))?;
    for entry in entries {
        let entry = entry.map_err(ProjectError::disk("read", &directory))?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { file_name } else { format!("{below}/{file_name}") };
        if entry.path().is_dir() {
            read_branch(root, &name, found)?;
        } else {
            found.insert(name, read_text(&entry.path())?);
        }
    }
    Ok(())
}
