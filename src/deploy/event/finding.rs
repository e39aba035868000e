//! A finding of preflight.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PreflightSeverity")]
pub(crate) enum Severity {
    /// The cluster would not come up, or not stay up.
    Refused,
    /// The cluster can work; the user should know all the same.
    Warning,
}

/// A finding of preflight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PreflightFinding")]
pub(crate) struct Finding {
    /// The severity of the finding.
    pub severity: Severity,
    /// The subject of the finding, in a word or two.
    pub subject: &'static str,
    /// What preflight found.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.subject, self.what)
    }
}
