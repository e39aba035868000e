//! Rendered assets into findings: what Ignition, Kubernetes or AWS would refuse, before anything leaves the machine.
//!
//! In: an asset's bytes, ours or the team's. Out: what is wrong with it and where. No AWS, no disk.

mod ignition;
mod references;
mod schema;
mod stack;

pub use ignition::check_ignition;
pub use schema::{create_only_properties, handler_permissions};
pub use stack::check_stack;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// One thing that would be refused later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The asset.
    pub asset: String,
    /// The part of it.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// All findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Findings(pub Vec<Finding>);

impl std::error::Error for Findings {}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_end}{}: {}: {}", finding.asset, finding.place, finding.message)?;
        }
        Ok(())
    }
}

/// A check of one asset that is under way; each kind of asset adds its own rules to it.
struct Check<'a> {
    asset: &'a str,
    findings: Vec<Finding>,
}

impl<'a> Check<'a> {
    fn new(asset: &'a str) -> Self {
        Self { asset, findings: Vec::new() }
    }

    fn note(&mut self, place: &str, message: String) {
        self.findings.push(Finding { asset: self.asset.to_owned(), place: place.to_owned(), message });
    }
}
