//! Objects, and, only if that was asked for and confirmed, data. What AWS will not remove is noted, and the rest goes all the same.

use std::time::Duration;

use super::audit::Leftover;
use super::file_systems::{live_mounts, place_of};
use super::found::Found;
use super::objects::StoredObjects;
use super::removal::{file_system_removal, object_removal, snapshot_removal};
use super::target::DestroyTarget;
use crate::aws::{AwsError, Cause, ObjectVersion};
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::waiting::Pace;

/// A file system can go once its last mount target has.
const PATIENCE: Duration = Duration::from_mins(5);

/// Removes what machines booted from; gives what S3 keeps.
pub(crate) async fn delete_boot_objects(run: &Run, found: &Found) -> Result<Vec<Leftover>, DeployError> {
    let mut refused = Vec::new();
    for stored in &found.stored {
        refused.extend(delete_objects(run, stored, &stored.boot, "machine configurations").await?);
    }
    Ok(refused)
}

/// Removes files, snapshots of etcd in the bucket, and snapshots of its disks; gives what AWS keeps.
pub(crate) async fn delete_data(
    run: &Run,
    target: &DestroyTarget,
    found: &Found,
) -> Result<Vec<Leftover>, DeployError> {
    let region = run.clients.region().unwrap_or_default();
    let mut refused = Vec::new();
    for place in &target.places {
        // Members uploaded snapshots until the last of them was gone.
        let stored = StoredObjects::read(&run.clients, target, place).await?;
        refused.extend(delete_objects(run, &stored, &stored.backups, "etcd snapshots").await?);
    }
    let mut denied = None;
    for snapshot in run.clients.snapshots_of(&found.volumes, target.tag()).await? {
        match run.clients.delete_snapshot(&snapshot.id).await {
            Ok(()) => run.progress.note(format!("deleted disk snapshot {}", snapshot.id)),
            Err(error) if error.is_denied() => denied = Some(error),
            Err(error) => {
                let what = format!("disk snapshot {}: {}", snapshot.id, reason(error)?);
                refused.push(Leftover { what, remove: snapshot_removal(&snapshot.id, region) });
            }
        }
    }
    for system in found.file_systems.iter().filter(|system| system.is_made()) {
        if let Some(why) = delete_file_system(run, &system.id).await? {
            let what = format!("file system {}: {why}", system.id);
            refused.push(Leftover { what, remove: file_system_removal(&system.id, region) });
        }
    }
    denied.map_or(Ok(refused), |error| Err(error.into()))
}

/// Why AWS will not do something; a call that failed otherwise is an error.
fn reason(error: AwsError) -> Result<String, AwsError> {
    if error.cause == Cause::Refused { Ok(error.message) } else { Err(error) }
}

/// Removes a file system; gives why it stays, if it does. Its mount targets went with the storage stack or with the network: one that is
/// there still is somebody else's.
async fn delete_file_system(run: &Run, id: &str) -> Result<Option<String>, DeployError> {
    let patience = run.waiting.patience(PATIENCE);
    let mut pace = Pace::of_moment();
    loop {
        if let Some(mount) = live_mounts(&run.clients, id).await?.first() {
            return Ok(Some(format!("somebody mounts it in {}", place_of(mount))));
        }
        match run.clients.delete_file_system(id).await {
            Ok(()) => break,
            // The second is what it says while somebody else's deletion goes on.
            Err(error)
                if error.has_code("FileSystemInUse")
                    || error.has_code("IncorrectFileSystemLifeCycleState") => {}
            Err(error) if error.is_denied() => return Err(error.into()),
            Err(error) => return Ok(Some(reason(error)?)),
        }
        let ended = |end| Run::still_running(end, "the deletion of the file system's mount targets");
        if !patience.pause(pace.next_pause()).await.map_err(ended)? {
            return Ok(Some("it still has mount targets".to_owned()));
        }
    }
    run.progress.note(format!("deleted file system {id} and everything in it"));
    Ok(None)
}

async fn delete_objects(
    run: &Run,
    stored: &StoredObjects,
    objects: &[ObjectVersion],
    what: &str,
) -> Result<Vec<Leftover>, DeployError> {
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let refused = run.clients.delete_objects(&stored.bucket, objects).await?;
    run.progress.note(format!("deleted {} {what} from {}", objects.len() - refused.len(), stored.address()));
    let kept = refused.into_iter().map(|refused| Leftover {
        what: format!("s3://{}/{}: {}", stored.bucket, refused.object.key, refused.reason),
        remove: object_removal(&stored.bucket, &refused.object),
    });
    Ok(kept.collect())
}
