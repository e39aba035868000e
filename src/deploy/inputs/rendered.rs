//! What was rendered from cluster.yaml, and what it was rendered from.

use crate::blueprint::Blueprint;
use crate::credentials::Credentials;
use crate::render::Assets;

/// What was rendered and what it was rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Keys and certificates.
    pub credentials: &'a Credentials,
    /// Everything rendered.
    pub assets: &'a Assets,
}
