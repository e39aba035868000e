//! What is wrong with an object, and where.

use schemars::JsonSchema;
use serde::Serialize;

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct LintFinding {
    /// The object, such as `Job train`.
    pub object: String,
    /// The field, such as `spec.completions`.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Collects what is wrong with one object.
pub(super) struct Findings {
    object: String,
    pub(super) list: Vec<LintFinding>,
}

impl Findings {
    pub(super) fn new(object: String) -> Self {
        Self { object, list: Vec::new() }
    }

    pub(super) fn add(&mut self, field: &str, message: impl Into<String>, help: Option<&str>) {
        self.list.push(LintFinding {
            object: self.object.clone(),
            field: field.to_owned(),
            message: message.into(),
            help: help.map(str::to_owned),
        });
    }
}
