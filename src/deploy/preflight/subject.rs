//! What preflight checks: the cluster, and what is known about it before AWS is called.

use time::OffsetDateTime;

use crate::blueprint::Blueprint;
use crate::config::values::S3Uri;
use crate::deploy::inputs::capacity_block::LockedBlock;
use crate::deploy::inputs::image_lock::LockedImage;
use crate::deploy::state::live::LiveCluster;

/// What preflight checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preflight<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Where assets will be uploaded.
    pub s3_uri: Option<&'a S3Uri>,
    /// Whether a bucket that is missing will be created.
    pub create_bucket: bool,
    /// The image that machines are to start from, if one is locked.
    pub image: Option<&'a LockedImage>,
    /// The capacity blocks that are locked, should AWS no longer list them.
    pub blocks: &'a [LockedBlock],
    /// The time, for the age of the image and for capacity blocks.
    pub now: OffsetDateTime,
    /// When certificates expire.
    pub certificates: &'a [CertificateExpiry],
    /// The cluster as it exists: its machines have their capacity, and a file system with its tag is its own.
    pub live: &'a LiveCluster,
}

/// When a certificate expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateExpiry {
    /// The name of the subject.
    pub name: String,
    /// How many whole days it is still valid; negative once it has expired.
    pub days_left: i64,
}
