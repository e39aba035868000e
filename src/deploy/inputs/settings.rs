//! What the stacks need to know besides cluster.yaml: where assets are, which image machines boot, whose keys they run on.

use std::collections::BTreeMap;

use super::credential_digests::CredentialDigests;
use crate::config::values::S3Uri;

/// What was looked up for this run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where assets are.
    pub place: S3Uri,
    /// The image that machines boot.
    pub image: ImageChoice,
    /// Whose keys the cluster runs on.
    pub credentials: CredentialDigests,
    /// For each mount target that we may have to make at a file system that was there: whether it is ours to make.
    pub missing_mount_targets: BTreeMap<usize, bool>,
}

/// Which image machines boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageChoice {
    /// This one, everywhere.
    Locked(String),
    /// Each stack's own, since no lock says otherwise; new stacks take that of the control plane.
    Live,
}
