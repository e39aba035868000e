//! The only file that names the YAML library: parsing with limits, positions of values, error texts, and writing.

use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_saphyr::{Error, Options, Spanned};

use super::node::Node;
use super::structure::check_structure;
use super::{At, Fault, Position, Problems};

/// Reads `text` as a `T`. Problems of structure (unknown keys, wrong kinds of values) are all found before any value is
/// read; `file` is only used to name the document.
pub(crate) fn parse_yaml<T: DeserializeOwned + JsonSchema>(file: &Path, text: &str) -> Result<T, Problems> {
    let mut problems = Problems::new(file);
    let tree: At<Node> = match serde_saphyr::from_str_with_options(text, parser_options()) {
        Ok(tree) => tree,
        Err(error) => return Err(syntax_problem(problems, &error)),
    };
    check_structure(&tree, &schemars::schema_for!(T), &mut problems);
    if !problems.can_be_used() {
        return Err(problems);
    }
    serde_saphyr::from_str_with_options(text, parser_options())
        .map_err(|error| syntax_problem(problems, &error))
}

/// Reads `text` as untyped values, for documents whose shape is not ours.
pub(crate) fn parse_untyped(file: &Path, text: &str) -> Result<serde_json::Value, Problems> {
    serde_saphyr::from_str_with_options(text, parser_options())
        .map_err(|error| syntax_problem(Problems::new(file), &error))
}

/// Reads a document that is part of this program.
///
/// # Panics
/// If the document does not have the shape of `T`; a test reads every embedded document.
#[must_use]
pub(crate) fn parse_embedded_table<T: DeserializeOwned>(text: &str) -> T {
    #[expect(clippy::panic, reason = "a mistake in a file compiled into the program, found by its tests")]
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("an embedded document is broken: {error}"))
}

/// Writes a value as YAML.
pub(crate) fn write_yaml<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_saphyr::to_string(value).map_err(|error| Fault::new(format!("cannot be written as YAML: {error}")))
}

/// Only the YAML library knows where a value is.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        let place = spanned.referenced;
        let position = (place.line() > 0).then(|| Position { line: place.line(), column: place.column() });
        Ok(Self { value: spanned.value, position })
    }
}

/// More than the largest cluster needs, and read in an instant.
const MOST_VALUES: usize = 20_000;

/// YAML 1.2 as written: `yes` is text, and aliases cannot multiply a small file into a large one.
fn parser_options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        reject_unsupported_tags: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_VALUES },
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: MOST_VALUES,
            max_documents: 2,
        },
    }
}

/// How the parser says that it gave up.
const LIMITS: [&str; 3] = ["budget breached", "limit exceeded", "depth exceeded"];

/// What the parser says about the commonest slips, and what they usually are.
const SYNTAX_HELP: [(&str, &str); 5] = [
    ("did not find expected key", "keys of one section begin in the same column"),
    ("mapping values are not allowed", "a value with ': ' in it needs quotes"),
    ("unclosed", "close it before the next key begins"),
    ("illegal placement of ':'", "a list or section in brackets is not closed above"),
    ("tab", "use spaces: YAML does not take tabs for indentation"),
];

fn syntax_problem(mut problems: Problems, error: &Error) -> Problems {
    let position = error.location().map(|place| Position { line: place.line(), column: place.column() });
    let text = error.without_snippet().to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let fault = match error {
        Error::DuplicateMappingKey { key, .. } => {
            let name = key.as_deref().unwrap_or("this key");
            Fault::new(format!("'{name}' is written twice"))
                .help("keep one of the two; YAML has no way to say which counts")
        }
        Error::MultipleDocuments { .. } => Fault::new("a second document begins here")
            .help("one file describes one thing: remove '---' and what follows"),
        _ if LIMITS.iter().any(|limit| text.contains(limit)) => {
            Fault::new("the file is nested too deeply or has too many values")
                .help(format!("it may have {MOST_VALUES} values, counting those that aliases repeat"))
        }
        _ => match SYNTAX_HELP.iter().find(|(part, _)| text.contains(part)) {
            Some((_, help)) => Fault::new(text.to_owned()).help(*help),
            None => Fault::new(text.to_owned()),
        },
    };
    problems.add(position, fault);
    problems
}
