//! What brings a cluster up: the means of any run, the decided cluster, and where its assets are.

use super::run::Run;
use crate::blueprint::Blueprint;
use crate::config::values::S3Uri;

/// A run that brings a cluster up.
#[derive(Clone, Debug)]
pub struct Work {
    /// The means of the run.
    pub run: Run,
    /// The cluster.
    pub blueprint: Blueprint,
    /// Where assets are.
    pub place: S3Uri,
}
