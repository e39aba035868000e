//! Free `key: value` lines: tags, labels, mirrors.

use std::collections::BTreeMap;

use crate::document::At;

/// Free `key: value` lines, each with its position.
pub(crate) type Entries = BTreeMap<At<String>, At<String>>;
