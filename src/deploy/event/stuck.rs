//! A stack that could not be deleted, and what holds it.

use schemars::JsonSchema;
use serde::Serialize;

/// What is left of a stack that could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stuck {
    /// The stack.
    pub stack: String,
    /// Each resource that would not go.
    pub resources: Vec<StuckResource>,
}

/// A resource that would not go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StuckResource {
    /// Its name in the template.
    pub resource: String,
    /// What AWS calls it.
    pub id: String,
    /// Why, in AWS's words.
    pub reason: String,
}
