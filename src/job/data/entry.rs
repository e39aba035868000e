//! What is on the claim.

use serde::{Deserialize, Serialize};

/// What a name on the claim stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EntryKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link.
    Link,
    /// A pipe, a device, or something whose name is no text.
    Special,
}

/// One name on the claim.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteEntry {
    /// The path, relative to the path that was asked for; empty for that path itself.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// The size of a file in bytes.
    pub size: u64,
    /// When it was last modified, in seconds since 1970.
    pub modified: u64,
    /// Whether a file is executable.
    pub executable: bool,
    /// The target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
