//! A file of a machine that changes, as plans carry it.

use schemars::JsonSchema;
use serde::Serialize;

/// A file or unit on a machine that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileChange {
    /// Its path; a unit's name; a directory's path ends with a slash.
    pub path: String,
    /// What changes.
    pub change: TextChange,
}

/// What changes in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "detail", rename_all = "camelCase")]
pub(crate) enum TextChange {
    /// It is new.
    Added,
    /// It goes.
    Removed,
    /// It holds keys, or may: only that it changes is told.
    Masked,
    /// It is no text.
    Binary,
    /// Lines that go, come and stand around, each behind its `-`, `+` or space; before them other changes, as `mode 0644 -> 0600`.
    Lines(Vec<String>),
    /// What changes cannot be told.
    Unknown {
        /// Why.
        reason: String,
    },
}
