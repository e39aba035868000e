//! What a check finds, and the check of one asset while it is running.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::outcome::{Explain, Outcome};

/// One thing that would be refused later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The asset.
    pub asset: String,
    /// The position of the problem in the asset.
    pub position: String,
    /// What is wrong.
    pub message: String,
}

/// All findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Findings(pub Vec<Finding>);

impl std::error::Error for Findings {}

impl Explain for Findings {
    fn outcome(&self) -> Outcome {
        Outcome::Invalid
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_end}{}: {}: {}", finding.asset, finding.position, finding.message)?;
        }
        Ok(())
    }
}

/// The check of one asset; each kind of asset adds rules of its own.
pub(super) struct AssetCheck<'a> {
    asset: &'a str,
    pub(super) findings: Vec<Finding>,
}

impl<'a> AssetCheck<'a> {
    pub(super) fn new(asset: &'a str) -> Self {
        Self { asset, findings: Vec::new() }
    }

    pub(super) fn note(&mut self, position: &str, message: String) {
        self.findings.push(Finding { asset: self.asset.to_owned(), position: position.to_owned(), message });
    }
}
