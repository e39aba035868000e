//! What the team adds to a cluster: templates, manifests and snippets of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::asset_directory::AssetDirectory;
use super::error::ProjectError;
use crate::blueprint::Role;
use crate::confined_directory::ConfinedDirectory;
use crate::document::{nearest_word, parse_untyped, read_text};
use crate::render::Asset;

const EXTRA_MANIFESTS: &str = "manifests/extra";

/// The team's own Ignition configs.
#[derive(Debug)]
pub(super) struct Snippets {
    /// The snippets of each role, in the order they are merged in.
    pub(super) by_role: BTreeMap<Role, Vec<Asset>>,
    /// The snippets that are for no role.
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
        match &self.templates {
            Some(path) if !path.is_dir() => Err(ProjectError::NoTemplates { path: path.clone() }),
            Some(path) => read_tree(&ConfinedDirectory::new(path), ""),
            None => read_tree(&self.files, "templates"),
        }
    }

    /// The team's own manifests, by file name.
    pub(super) fn read_extra_manifests(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let manifests = read_tree(&self.files, EXTRA_MANIFESTS)?;
        for (name, text) in &manifests {
            let is_yaml = Path::new(name).extension().is_some_and(|extension| extension == "yaml");
            if !is_yaml || name.contains('/') {
                return Err(ProjectError::NotAManifest { name: name.clone() });
            }
            parse_untyped(&self.files.unchecked_path(format!("{EXTRA_MANIFESTS}/{name}")), text)?;
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
        for (name, text) in read_tree(&self.files, "snippets")? {
            let Some(stem) = name.strip_suffix(".ign") else { continue };
            let begins = |prefix: &&String| {
                let rest = stem.strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_']))
            };
            let Some(prefix) = prefixes.iter().filter(begins).max_by_key(|prefix| prefix.len()) else {
                let nearest = nearest_word(stem, prefixes.iter().map(String::as_str)).map(str::to_owned);
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

/// Every file below a folder, by its path there; none if there is no such folder.
fn read_tree(files: &ConfinedDirectory, folder: &str) -> Result<BTreeMap<String, String>, ProjectError> {
    let mut found = BTreeMap::new();
    read_branch(files, Path::new(folder), "", &mut found)?;
    Ok(found)
}

fn read_branch(
    files: &ConfinedDirectory,
    directory: &Path,
    prefix: &str,
    found: &mut BTreeMap<String, String>,
) -> Result<(), ProjectError> {
    for entry in files.entries(directory)? {
        let below = directory.join(entry.file_name());
        let path = files.path(&below)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            read_branch(files, &below, &format!("{name}/"), found)?;
        } else {
            found.insert(name, read_text(&path)?);
        }
    }
    Ok(())
}
