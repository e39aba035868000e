//! Where a cluster's snapshots of etcd are, and the rule of the bucket that deletes old ones.

use crate::aws::VersionExpiry;
use crate::config::values::S3Uri;

/// A version that is no longer the newest is deleted after this many days …
const DAYS: i32 = 30;
/// … unless it is one of the newest: when uploads stop, the last good snapshots stay. Two days of one an hour.
const KEPT: i32 = 48;

/// The snapshots of etcd below an S3 URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotStore {
    /// The bucket.
    pub bucket: String,
    /// The prefix of the keys of the snapshots.
    pub prefix: String,
    cluster: String,
}

impl SnapshotStore {
    /// The snapshots of a cluster.
    #[must_use]
    pub(crate) fn new(uri: &S3Uri, cluster: &str) -> Self {
        Self {
            bucket: uri.bucket().to_owned(),
            prefix: format!("{}{cluster}/snapshots/", uri.key_prefix()),
            cluster: cluster.to_owned(),
        }
    }

    /// The S3 URI of the snapshots.
    #[must_use]
    pub(crate) fn address(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// The rule for a bucket that keeps versions, where every snapshot has the same key.
    #[must_use]
    pub(crate) fn expiry(&self) -> VersionExpiry {
        VersionExpiry {
            id: format!("infra-{}-snapshots", self.cluster),
            prefix: self.prefix.clone(),
            days: DAYS,
            kept: KEPT,
        }
    }
}
