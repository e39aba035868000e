//! What nodes are rendered from.

use std::collections::BTreeMap;

use super::super::engine::Templates;
use crate::blueprint::Blueprint;
use crate::credentials::Credentials;

/// What nodes are rendered from.
pub(in super::super) struct NodeSources<'a> {
    pub(in super::super) blueprint: &'a Blueprint,
    pub(in super::super) credentials: &'a Credentials,
    pub(in super::super) templates: &'a Templates,
    /// Manifests that controllers apply, by file name.
    pub(in super::super) manifests: &'a BTreeMap<String, String>,
}
