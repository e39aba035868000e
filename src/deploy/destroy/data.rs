//! Data: files, snapshots and backups, kept unless the user asked for their deletion and confirmed it. What AWS refuses to delete is
//! returned, and the rest is deleted all the same.

use std::collections::BTreeSet;
use std::time::Duration;

use super::deletion_command::{backup_deletion, file_system_deletion, snapshot_deletion};
use super::file_systems::{FileSystem, Ownership, live_mounts, location_of};
use super::plan::DestroyPlan;
use super::scope::DestroyScope;
use super::snapshot_rule::{delete_rule, rule_name};
use super::stored_objects::StoredObjects;
use crate::aws::{AwsError, Cause};
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Leftover, Resource, ResourceKind};
use crate::deploy::run::Run;
use crate::plural::count_of;
use crate::waiting::Pace;

/// A file system can be deleted once its last mount target is.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Lists the data, and what was there before the cluster.
pub(crate) fn list_data(scope: &DestroyScope, plan: &mut DestroyPlan) {
    let found = &scope.found;
    let mut data = DestroyPlan::default();
    for FileSystem { id, ownership } in &found.data.file_systems {
        match ownership {
            Ownership::Created => data.delete(ResourceKind::FileSystem, id, "holds your files"),
            Ownership::Adopted => plan.keep(ResourceKind::FileSystem, id, "existed before the cluster"),
            Ownership::InUse(location) => {
                let why =
                    format!("created by a cluster of this name, and someone else mounts it in {location}");
                plan.keep(ResourceKind::FileSystem, id, why);
            }
        }
    }
    for stored in &found.stored {
        if !stored.backups.is_empty() {
            let count = count_of(stored.backups.len(), "object");
            data.delete(ResourceKind::EtcdSnapshots, stored.snapshots.address(), count);
        }
        if stored.has_snapshot_rule {
            let why = "deletes old versions of etcd snapshots";
            data.delete(ResourceKind::LifecycleRule, rule_name(&stored.snapshots), why);
        }
        if let Some((count, example)) = stored.foreign_objects() {
            let count = count_of(count, "object");
            let why = format!("{count}, for example {example}: not uploaded by infra");
            plan.keep(ResourceKind::ForeignObjects, stored.address(), why);
        }
    }
    for snapshot in &found.data.snapshots {
        let why = format!("of etcd's volume {}", snapshot.volume);
        data.delete(ResourceKind::DiskSnapshot, &snapshot.id, why);
    }
    if scope.options.delete_data {
        plan.delete.extend(data.delete);
    } else {
        for volume in found.stacks.volumes.iter().filter(|volume| found.stacks.contains(volume)) {
            plan.keep(ResourceKind::Volume, volume, "etcd's disk, kept as a snapshot");
        }
        plan.keep.extend(data.delete);
    }
    list_shared_resources(scope, plan);
}

/// Lists what is used by more than this cluster.
fn list_shared_resources(scope: &DestroyScope, plan: &mut DestroyPlan) {
    let target = &scope.target;
    for arn in &scope.found.data.backups {
        let why = format!("a backup of your files; `{}` deletes it", backup_deletion(arn, &target.region));
        plan.keep(ResourceKind::Backup, arn, why);
    }
    let buckets: BTreeSet<&str> = target.s3_uris.iter().map(S3Uri::bucket).collect();
    for bucket in buckets {
        plan.keep(ResourceKind::Bucket, bucket, "may hold more than this cluster's objects");
    }
    let created = &scope.found.created_keys;
    for key in created {
        key.list(&target.region, plan);
    }
    if let Some(key) = target.kms_key.as_ref().filter(|arn| created.iter().all(|key| key.arn != **arn)) {
        plan.keep(ResourceKind::KmsKey, key, "existed before the cluster");
    }
    if let Some(vpc) = scope.found.vpc.as_ref().filter(|vpc| vpc.is_adopted) {
        plan.keep(ResourceKind::Vpc, &vpc.id, "existed before the cluster");
    }
}

/// Deletes files, snapshots of etcd in the bucket, and snapshots of its volumes; returns what AWS refused to delete.
pub(crate) async fn delete_data(run: &Run, scope: &DestroyScope) -> Result<Vec<Leftover>, DeployError> {
    let DestroyScope { target, found, .. } = scope;
    let mut refused = Vec::new();
    for s3_uri in &target.s3_uris {
        // etcd members uploaded snapshots until the last of them was terminated.
        let stored = StoredObjects::read(&run.clients, target, s3_uri).await?;
        refused.extend(stored.delete(run, &stored.backups, "etcd snapshots").await?);
        if stored.has_snapshot_rule {
            refused.extend(delete_rule(run, &stored.snapshots).await?);
        }
    }
    let mut denied = None;
    for snapshot in run.clients.snapshots_of(&found.stacks.volumes, target.tag()).await? {
        match run.clients.delete_snapshot(&snapshot.id).await {
            Ok(()) => run.progress.note(format!("deleted disk snapshot {}", snapshot.id)),
            Err(error) if error.is_denied() => denied = Some(error),
            Err(error) => refused.push(Leftover {
                why: Some(refusal_reason(error)?),
                fix: snapshot_deletion(&snapshot.id, &target.region),
                resource: Resource::new(ResourceKind::DiskSnapshot, snapshot.id),
            }),
        }
    }
    for system in found.data.file_systems.iter().filter(|system| system.is_own()) {
        if let Some(why) = delete_file_system(run, &system.id).await? {
            refused.push(Leftover {
                resource: Resource::new(ResourceKind::FileSystem, &system.id),
                why: Some(why),
                fix: file_system_deletion(&system.id, &target.region),
            });
        }
    }
    denied.map_or(Ok(refused), |error| Err(error.into()))
}

/// Why AWS refused; a call that failed otherwise is an error.
fn refusal_reason(error: AwsError) -> Result<String, AwsError> {
    if error.cause == Cause::Refused { Ok(error.message) } else { Err(error) }
}

/// Deletes a file system; returns why it is kept, if it is. The cluster's mount targets were deleted with the storage stack or with the
/// network: one that is left is foreign.
async fn delete_file_system(run: &Run, id: &str) -> Result<Option<String>, DeployError> {
    let wait = run.waiting.optional_wait(LONGEST_WAIT);
    let mut pace = Pace::of_moment();
    loop {
        if let Some(mount) = live_mounts(&run.clients, id).await?.first() {
            return Ok(Some(format!("someone else mounts it in {}", location_of(mount))));
        }
        match run.clients.delete_file_system(id).await {
            Ok(()) => break,
            // Mount targets are still there, or another process is deleting the file system.
            Err(error) if error.is_busy_file_system() => {}
            Err(error) if error.is_denied() => return Err(error.into()),
            Err(error) => return Ok(Some(refusal_reason(error)?)),
        }
        let ended = |end| Run::still_running(end, "the deletion of the file system's mount targets");
        if !wait.pause(pace.next_pause()).await.map_err(ended)? {
            return Ok(Some("it still has mount targets".to_owned()));
        }
    }
    run.progress.note(format!("deleted file system {id} and everything in it"));
    Ok(None)
}
