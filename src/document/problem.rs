//! Everything that is wrong with one document, in the order it is read.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::{At, Fault, Position};
use crate::outcome::{Explain, Outcome};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// The document can be used, and its author should know this.
    Warning,
}

/// One thing that is wrong at one position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    #[serde(flatten)]
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// All problems of one document. As an error it prints each as `file:line:column: what` with its help below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problems {
    /// The document, as the user would name it.
    pub file: PathBuf,
    /// The problems, in reading order.
    #[serde(rename = "findings")]
    list: Vec<Problem>,
}

impl Problems {
    /// No problems yet.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), list: Vec::new() }
    }

    /// Adds an error at a position; a default value is reported at the start of the document.
    pub fn add(&mut self, position: Option<Position>, fault: Fault) {
        self.push(Severity::Error, position, fault);
    }

    /// Adds something that does not stop the document from being used.
    pub fn warn(&mut self, position: Option<Position>, fault: Fault) {
        self.push(Severity::Warning, position, fault);
    }

    /// Takes the value out of a result, or records why there is none.
    pub fn take<T>(&mut self, position: Option<Position>, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                self.add(position, fault);
                None
            }
        }
    }

    /// Parses a text into its type, or records why that fails.
    pub fn parse<T: std::str::FromStr<Err = Fault>>(&mut self, text: &At<String>) -> Option<T> {
        self.take(text.position, text.value.parse())
    }

    /// Parses every text of a list; the invalid ones are recorded and left out.
    pub fn parse_all<T: std::str::FromStr<Err = Fault>>(&mut self, texts: &[At<String>]) -> Vec<At<T>> {
        texts
            .iter()
            .filter_map(|text| self.parse(text).map(|value| At { value, position: text.position }))
            .collect()
    }

    /// Whether nothing stops the document from being used.
    #[must_use]
    pub fn can_be_used(&self) -> bool {
        self.errors() == 0
    }

    /// How many problems stop the document from being used.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// The same problems, for a document that begins this many lines further down.
    #[must_use]
    pub fn moved_down(mut self, lines: u64) -> Self {
        for problem in &mut self.list {
            problem.position.line += lines;
        }
        self
    }

    /// The problems in reading order.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    fn push(&mut self, severity: Severity, position: Option<Position>, fault: Fault) {
        let position = position.unwrap_or(Position::START);
        let message = shorten_text(fault.message);
        let place = self.list.partition_point(|other| other.position <= position);
        self.list.insert(place, Problem { severity, position, message, help: fault.help });
    }
}

/// Messages quote the text, which may be very long.
fn shorten_text(message: String) -> String {
    const LONGEST: usize = 400;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message,
    }
}

impl std::error::Error for Problems {}

impl Explain for Problems {
    fn outcome(&self) -> Outcome {
        Outcome::Invalid
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(formatter)?;
            }
            let mark = match problem.severity {
                Severity::Error => "",
                Severity::Warning => "warning: ",
            };
            write!(formatter, "{}:{}: {mark}{}", self.file.display(), problem.position, problem.message)?;
            if let Some(help) = &problem.help {
                write!(formatter, "\n  help: {help}")?;
            }
        }
        Ok(())
    }
}
