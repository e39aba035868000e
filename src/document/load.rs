//! A document from its file to a validated value: reading, structure, rules.
//!
//! In: a path or a text, and the rules that turn the document's shape into a value. Out: the value with its warnings, or every problem.

use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Problems, ReadError, parse_yaml, read_text};
use crate::outcome::{Explain, Outcome};

/// Why a document could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file was read, and something in it is wrong.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

impl Explain for LoadError {
    fn help(&self) -> Option<String> {
        let Self::Unreadable(ReadError::Missing { path }) = self else { return None };
        let text = if path.ends_with("cluster.yaml") {
            "`infra init` writes one; `-C DIR` names the directory it is in"
        } else {
            "`infra job init` writes one; `-f FILE` names another"
        };
        Some(text.to_owned())
    }

    fn outcome(&self) -> Outcome {
        Outcome::Invalid
    }
}

/// A valid document and what its author should know about it all the same.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// The validated value.
    pub value: T,
    /// Warnings; never errors.
    pub warnings: Problems,
}

/// Reads and validates the document at `path`.
pub(crate) fn load<F, T>(
    path: &Path,
    build: impl FnOnce(&F, &mut Problems) -> Option<T>,
) -> Result<Loaded<T>, LoadError>
where
    F: DeserializeOwned + JsonSchema,
{
    Ok(validate(path, &read_text(path)?, build)?)
}

/// Validates the text of a document of the shape `F`; `path` is only used to name it.
pub(crate) fn validate<F, T>(
    path: &Path,
    text: &str,
    build: impl FnOnce(&F, &mut Problems) -> Option<T>,
) -> Result<Loaded<T>, Problems>
where
    F: DeserializeOwned + JsonSchema,
{
    let file: F = parse_yaml(path, text)?;
    let mut problems = Problems::new(path);
    match build(&file, &mut problems) {
        Some(value) if problems.can_be_used() => Ok(Loaded { value, warnings: problems }),
        _ => Err(problems),
    }
}
