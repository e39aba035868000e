//! The entries of one or several kubeconfig files, found by name.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::{Zeroize, Zeroizing};

use super::error::KubeconfigError;
use super::sections::{ClusterSection, ConfigFile, ContextSection, UserSection};
use crate::credentials::SecretText;
use crate::document::{ReadError, parse_untyped, read_text};
use crate::kube::Named;

/// All files, in order.
pub(super) struct KubeconfigEntries {
    files: Vec<(PathBuf, ConfigFile)>,
}

/// An entry, its name, and the file it is in.
pub(super) struct FoundEntry<'a, Section> {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) section: &'a Section,
    kind: &'static str,
}

impl KubeconfigEntries {
    /// Reads every file. Of several, those that do not exist are passed over, as kubectl does.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, KubeconfigError> {
        let mut files = Vec::new();
        for path in paths {
            match read_file(path) {
                Ok(file) => files.push((path.clone(), file)),
                Err(KubeconfigError::Unreadable(ReadError::Missing { .. })) if paths.len() > 1 => {}
                Err(error) => return Err(error),
            }
        }
        if files.is_empty() {
            return Err(KubeconfigError::NoFile { files: paths.to_vec() });
        }
        Ok(Self { files })
    }

    /// The context of that name, or the current one.
    pub(super) fn context(
        &self,
        name: Option<&str>,
    ) -> Result<FoundEntry<'_, ContextSection>, KubeconfigError> {
        let current = || {
            let mut currents = self.files.iter().filter_map(|(_, file)| file.current_context.as_deref());
            currents.find(|name| !name.is_empty())
        };
        let Some(name) = name.or_else(current) else {
            return Err(KubeconfigError::NoCurrentContext { known: self.context_names() });
        };
        let entries = self.files.iter().flat_map(|(path, file)| {
            file.contexts.iter().flatten().map(move |entry| (path, &entry.name, &entry.context))
        });
        find_entry(entries, name, "context")
            .ok_or_else(|| KubeconfigError::NoContext { name: name.to_owned(), known: self.context_names() })
    }

    /// The cluster of a context.
    pub(super) fn cluster(
        &self,
        context: &FoundEntry<'_, ContextSection>,
    ) -> Result<FoundEntry<'_, ClusterSection>, KubeconfigError> {
        let entries = self.files.iter().flat_map(|(path, file)| {
            file.clusters.iter().flatten().map(move |entry| (path, &entry.name, &entry.cluster))
        });
        let name = context.section.cluster.as_deref().unwrap_or_default();
        find_entry(entries, name, "cluster").ok_or_else(|| dangling_entry_error(context, "cluster", name))
    }

    /// The user of a context.
    pub(super) fn user(
        &self,
        context: &FoundEntry<'_, ContextSection>,
    ) -> Result<FoundEntry<'_, UserSection>, KubeconfigError> {
        let entries = self.files.iter().flat_map(|(path, file)| {
            let users = file.users.iter().flatten();
            users.filter_map(move |entry| Some((path, &entry.name, entry.user.as_ref()?)))
        });
        let name = context.section.user.as_deref().unwrap_or_default();
        find_entry(entries, name, "user").ok_or_else(|| dangling_entry_error(context, "user", name))
    }

    fn context_names(&self) -> Vec<String> {
        let contexts = self.files.iter().flat_map(|(_, file)| file.contexts.iter().flatten());
        contexts.map(|entry| entry.name.clone()).collect()
    }
}

fn read_file(path: &Path) -> Result<ConfigFile, KubeconfigError> {
    let text = Zeroizing::new(read_text(path)?);
    let value = parse_untyped(path, &text)?;
    let shape = |reason: &str| KubeconfigError::Shape { path: path.to_owned(), reason: reason.to_owned() };
    if value.is_null() {
        return Ok(ConfigFile::default());
    }
    if !value.is_object() || value["kind"].as_str().is_some_and(|kind| kind != "Config") {
        return Err(shape("it has no clusters, contexts and users"));
    }
    // The parser's own words may quote a value.
    serde_json::from_value(value)
        .map_err(|_| shape("a field of its clusters, contexts or users has the wrong type"))
}

fn find_entry<'a, Section>(
    mut entries: impl Iterator<Item = (&'a PathBuf, &'a String, &'a Section)>,
    wanted: &str,
    kind: &'static str,
) -> Option<FoundEntry<'a, Section>> {
    let (file, name, section) = entries.find(|(_, name, _)| *name == wanted)?;
    Some(FoundEntry { name: name.clone(), file: file.clone(), section, kind })
}

fn dangling_entry_error(
    context: &FoundEntry<'_, ContextSection>,
    kind: &'static str,
    name: &str,
) -> KubeconfigError {
    KubeconfigError::Dangling { context: context.name.clone(), kind, name: name.to_owned() }
}

impl<Section> FoundEntry<'_, Section> {
    fn entry(&self) -> String {
        format!("{} '{}'", self.kind, self.name)
    }

    fn named<T>(&self, field: &str, text: T) -> Named<T> {
        Named { what: format!("{field} of the {}", self.entry()), text }
    }

    /// A text that is in the file as base64, or in a file of its own.
    pub(super) fn public_text(
        &self,
        field: &str,
        data: Option<&str>,
        file: Option<&str>,
    ) -> Result<Option<Named<String>>, KubeconfigError> {
        let text = match (non_empty(data), non_empty(file)) {
            (Some(data), _) => {
                let text = STANDARD.decode(data.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                text.ok_or_else(|| self.bad_encoding(field))?
            }
            (None, Some(file)) => self.read(field, file)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(self.named(field, text)))
    }

    /// As [`FoundEntry::public_text`], for a key.
    pub(super) fn secret_text(
        &self,
        field: &str,
        data: Option<&SecretText>,
        file: Option<&str>,
    ) -> Result<Option<Named<SecretText>>, KubeconfigError> {
        let text = match (non_empty(data.map(SecretText::expose)), non_empty(file)) {
            (Some(data), _) => {
                let bytes = STANDARD.decode(data.trim()).map_err(|_| self.bad_encoding(field))?;
                String::from_utf8(bytes).map(SecretText::new).map_err(|error| {
                    error.into_bytes().zeroize();
                    self.bad_encoding(field)
                })?
            }
            (None, Some(file)) => SecretText::new(self.read(field, file)?),
            (None, None) => return Ok(None),
        };
        Ok(Some(self.named(field, text)))
    }

    /// A token, as it is in the file, or in a file of its own.
    pub(super) fn token_text(
        &self,
        token: Option<&SecretText>,
        file: Option<&str>,
    ) -> Result<Option<SecretText>, KubeconfigError> {
        let token = token.filter(|token| !token.expose().is_empty());
        match (token, non_empty(file)) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(file)) => {
                let text = Zeroizing::new(self.read("tokenFile", file)?);
                Ok(Some(SecretText::new(text.trim().to_owned())))
            }
            (None, None) => Ok(None),
        }
    }

    /// A file that the kubeconfig names, relative to the kubeconfig.
    fn read(&self, field: &str, file: &str) -> Result<String, KubeconfigError> {
        let path = self.file.parent().unwrap_or(Path::new("")).join(file);
        read_text(&path).map_err(|reason| KubeconfigError::File {
            entry: self.entry(),
            field: field.to_owned(),
            reason,
        })
    }

    fn bad_encoding(&self, field: &str) -> KubeconfigError {
        KubeconfigError::Encoding { entry: self.entry(), field: format!("{field}-data") }
    }
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
