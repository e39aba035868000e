//! The mark of what `--output json` prints in a format of infra's own: `infra schema` describes every one of them.

use schemars::JsonSchema;
use serde::Serialize;

/// A document that a command prints with `--output json`. Every one of them is among the shapes of `infra schema`.
pub(super) trait Document: Serialize + JsonSchema {}
