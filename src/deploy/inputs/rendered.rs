//! What was rendered from cluster.yaml, and what it was rendered from.

use std::collections::BTreeMap;

use crate::blueprint::{Blueprint, Role};
use crate::credentials::Credentials;
use crate::render::Asset;

/// What was rendered and what it was rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Keys and certificates.
    pub credentials: &'a Credentials,
    /// Everything rendered.
    pub assets: &'a [Asset],
    /// The team's own configs for each role.
    pub snippets: &'a BTreeMap<Role, Vec<Asset>>,
}
