//! The objects below a cluster's prefix in a bucket, and which of them are the cluster's: teams keep other objects there too.

use std::collections::BTreeSet;

use super::deletion_command::object_deletion;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, ObjectVersion};
use crate::blueprint::Role;
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Leftover, Resource, ResourceKind};
use crate::deploy::run::Run;
use crate::deploy::state::snapshots::SnapshotStore;

/// The objects below a cluster's prefix in one bucket, with all their versions.
#[derive(Clone, Debug)]
pub(crate) struct StoredObjects {
    /// The bucket.
    pub bucket: String,
    /// The prefix of the keys of the cluster's objects.
    pub prefix: String,
    /// Boot configs and templates that `up` uploaded.
    pub boot: Vec<ObjectVersion>,
    /// Snapshots of etcd.
    pub backups: Vec<ObjectVersion>,
    /// Objects that infra did not upload.
    pub foreign: Vec<ObjectVersion>,
    /// Where snapshots of etcd are.
    pub snapshots: SnapshotStore,
    /// Whether the bucket has the rule that deletes old snapshots.
    pub has_snapshot_rule: bool,
}

impl StoredObjects {
    /// Reads the objects below one S3 URI; a bucket that does not exist holds none.
    pub(crate) async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        s3_uri: &S3Uri,
    ) -> Result<Self, AwsError> {
        let prefix = format!("{}{}/", s3_uri.key_prefix(), target.name);
        let all = match clients.object_versions(s3_uri.bucket(), &prefix).await {
            Err(error) if error.is_missing_bucket() => Vec::new(),
            other => other?,
        };
        let snapshots = SnapshotStore::new(s3_uri, target.name.as_str());
        let has_snapshot_rule = match clients.lifecycle_rules(s3_uri.bucket()).await {
            Ok(rules) => rules.has_form_of(&snapshots.expiry()),
            // Whoever may not read the rules has not written one.
            Err(error) if error.is_missing_bucket() || error.is_denied() => false,
            Err(error) => return Err(error),
        };
        let mut stored = Self {
            bucket: s3_uri.bucket().to_owned(),
            prefix,
            boot: Vec::new(),
            backups: Vec::new(),
            foreign: Vec::new(),
            snapshots,
            has_snapshot_rule,
        };
        for object in all {
            let key = object.key.strip_prefix(&stored.prefix).unwrap_or_default();
            match key.split_once('/') {
                Some(("snapshots", _)) => stored.backups.push(object),
                Some((folder, file)) if is_uploaded_asset(folder, file) => stored.boot.push(object),
                _ => stored.foreign.push(object),
            }
        }
        Ok(stored)
    }

    /// The S3 URI of the cluster's prefix.
    #[must_use]
    pub(crate) fn address(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// The number of foreign objects and the name of one, if there are any.
    #[must_use]
    pub(crate) fn foreign_objects(&self) -> Option<(usize, &str)> {
        let keys: BTreeSet<&str> = self.foreign.iter().map(|object| object.key.as_str()).collect();
        let first = keys.first()?;
        Some((keys.len(), first.strip_prefix(&self.prefix).unwrap_or(first)))
    }
}

impl StoredObjects {
    /// Deletes some of the objects; returns those that S3 refused to delete.
    pub(crate) async fn delete(
        &self,
        run: &Run,
        objects: &[ObjectVersion],
        what: &str,
    ) -> Result<Vec<Leftover>, DeployError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let refused = run.clients.delete_objects(&self.bucket, objects).await?;
        run.progress.note(format!(
            "deleted {} {what} from {}",
            objects.len() - refused.len(),
            self.address()
        ));
        let kept = refused.into_iter().map(|refused| Leftover {
            resource: Resource::new(
                ResourceKind::Object,
                format!("s3://{}/{}", self.bucket, refused.object.key),
            ),
            why: Some(refused.reason),
            fix: object_deletion(&self.bucket, &refused.object),
        });
        Ok(kept.collect())
    }
}

/// Whether a key is one that `up` writes: the name of each file is the digest of its content.
fn is_uploaded_asset(folder: &str, file: &str) -> bool {
    let is_digest = |text: Option<&str>, length: usize| {
        text.is_some_and(|text| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    if folder == "stacks" {
        return is_digest(file.strip_suffix(".json"), 64);
    }
    Role::is_name(folder) && is_digest(file.strip_suffix(".ign").or_else(|| file.strip_suffix(".tar")), 128)
}

#[cfg(test)]
mod tests {
    use super::is_uploaded_asset;

    #[test]
    fn only_what_up_writes_is_the_clusters() {
        let (long, short) = ("0a".repeat(64), "0a".repeat(32));
        for folder in ["etcd-0", "etcd-12", "controller", "pool-gpu", "pool-a-b2"] {
            assert!(is_uploaded_asset(folder, &format!("{long}.ign")), "{folder}");
            assert!(!is_uploaded_asset(folder, &format!("{short}.ign")), "{folder}");
            assert!(is_uploaded_asset(folder, &format!("{long}.tar")), "{folder}");
            assert!(!is_uploaded_asset(folder, "1.ign"), "{folder}");
            assert!(!is_uploaded_asset(folder, &format!("more/{long}.ign")), "{folder}");
        }
        for folder in ["etcd-", "etcd-a", "etcd-01", "controllers", "pool-", "pool-A", "datasets", ""] {
            assert!(!is_uploaded_asset(folder, &format!("{long}.ign")), "{folder}");
        }
        assert!(is_uploaded_asset("stacks", &format!("{short}.json")));
        assert!(!is_uploaded_asset("stacks", &format!("{long}.json")));
        assert!(!is_uploaded_asset("stacks", "network.json"));
    }
}
