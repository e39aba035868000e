//! The rule of the bucket that deletes old snapshots of etcd: useful as long as there are snapshots, and deleted with them. Others'
//! rules stay.

use crate::aws::{AwsError, Cause};
use crate::deploy::error::DeployError;
use crate::deploy::event::{Leftover, Resource, ResourceKind};
use crate::deploy::run::Run;
use crate::deploy::state::snapshots::SnapshotStore;

/// The rule as plans name it.
#[must_use]
pub(crate) fn rule_name(store: &SnapshotStore) -> String {
    format!("{} of {}", store.expiry().id, store.bucket)
}

/// The rule as something that is left.
#[must_use]
pub(crate) fn leftover_rule(store: &SnapshotStore, why: Option<String>) -> Leftover {
    let (id, bucket) = (store.expiry().id, &store.bucket);
    Leftover {
        resource: Resource::new(ResourceKind::LifecycleRule, rule_name(store)),
        why,
        fix: format!(
            "run `infra destroy --delete-data` again, or delete rule {id} from the lifecycle rules of bucket {bucket}"
        ),
    }
}

/// Deletes the rule; returns it if S3 refuses.
pub(crate) async fn delete_rule(run: &Run, store: &SnapshotStore) -> Result<Option<Leftover>, DeployError> {
    match delete_from_bucket(run, store).await {
        Ok(()) => {
            run.progress.note(format!("deleted lifecycle rule {}", rule_name(store)));
            Ok(None)
        }
        Err(error) if error.cause == Cause::Refused => {
            Ok(Some(leftover_rule(store, Some(error.to_string()))))
        }
        Err(error) => Err(error.into()),
    }
}

async fn delete_from_bucket(run: &Run, store: &SnapshotStore) -> Result<(), AwsError> {
    // Read again, just before: everything that was added since it was listed stays.
    let rules = run.clients.lifecycle_rules(&store.bucket).await?;
    let others = rules.without(&store.expiry().id);
    run.clients.put_lifecycle_rules(&store.bucket, others).await
}
