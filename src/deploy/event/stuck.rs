//! A stack that could not be deleted, and what holds it.

use schemars::JsonSchema;
use serde::Serialize;

/// What is left of a stack that could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stuck {
    /// The stack.
    pub stack: String,
    /// Each resource that could not be deleted.
    pub resources: Vec<StuckResource>,
}

/// A resource that could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StuckResource {
    /// The name of the resource in the template.
    pub resource: String,
    /// The id of the resource in AWS.
    pub id: String,
    /// Why, in AWS's words.
    pub reason: String,
}
