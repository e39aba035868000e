//! A file of a machine that changes, as plans carry it.

use schemars::JsonSchema;
use serde::Serialize;

/// A file or unit on a machine that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileChange {
    /// The path of the file, or the name of a unit; the path of a directory ends with a slash.
    pub path: String,
    /// What changes.
    pub change: TextChange,
}

/// What changes in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "detail", rename_all = "camelCase")]
pub(crate) enum TextChange {
    /// The file is new.
    Added,
    /// The file is deleted.
    Removed,
    /// The file may hold keys: its contents are not shown.
    Masked,
    /// The file is not text.
    Binary,
    /// Deleted, added and surrounding lines, each after its `-`, `+` or space; before them other changes, such as `mode 0644 -> 0600`.
    Lines(Vec<String>),
    /// The change is unknown.
    Unknown {
        /// Why the change is unknown.
        reason: String,
    },
}
