//! What preflight is about: the cluster, and what is known about it before AWS is asked.

use time::OffsetDateTime;

use crate::blueprint::Blueprint;
use crate::config::values::S3Uri;
use crate::deploy::inputs::image_lock::LockedImage;
use crate::deploy::state::live::LiveCluster;

/// What preflight checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preflight<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Where assets will be uploaded.
    pub s3_uri: Option<&'a S3Uri>,
    /// Whether a bucket that is missing will be made.
    pub create_bucket: bool,
    /// The image that machines are to start from, if one is locked.
    pub image: Option<&'a LockedImage>,
    /// The time, by which the image is as old as it is.
    pub now: OffsetDateTime,
    /// When certificates end.
    pub certificates: &'a [CertificateExpiry],
    /// The cluster as it exists: its machines have their capacity, and a file system with its tag is its own.
    pub live: &'a LiveCluster,
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateExpiry {
    /// The name of the subject.
    pub name: String,
    /// How many whole days it has left; less than zero once it has ended.
    pub days_left: i64,
}
