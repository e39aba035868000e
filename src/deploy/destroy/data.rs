//! Objects, and, only if that was asked for and confirmed, data.

use std::time::Duration;

use super::found::Found;
use super::target::DestroyTarget;
use crate::aws::ObjectVersion;
use crate::deploy::failure::DeployError;
use crate::deploy::means::Means;
use crate::waiting::Pace;

/// A file system can go once its last mount target has.
const PATIENCE: Duration = Duration::from_mins(5);

/// Removes what machines booted from.
pub(super) async fn delete_boot_objects(
    means: &Means,
    target: &DestroyTarget,
    found: &Found,
) -> Result<Vec<String>, DeployError> {
    delete_objects(means, target, &found.objects, "machine configurations").await
}

/// Removes files, snapshots of etcd in the bucket, and snapshots of its disks.
pub(super) async fn delete_data(
    means: &Means,
    target: &DestroyTarget,
    found: &Found,
) -> Result<Vec<String>, DeployError> {
    let mut refused = delete_objects(means, target, &found.etcd_backups, "etcd snapshots").await?;
    for snapshot in means.clients.snapshots_of(&found.volumes, target.tag()).await? {
        means.clients.delete_snapshot(&snapshot.id).await?;
        means.progress.note(format!("deleted disk snapshot {}", snapshot.id));
    }
    for (id, _) in found.file_systems.iter().filter(|(_, made)| *made) {
        refused.extend(delete_file_system(means, id).await?);
    }
    Ok(refused)
}

/// Removes a file system with its mount targets; gives why it stays, if it does.
async fn delete_file_system(means: &Means, id: &str) -> Result<Option<String>, DeployError> {
    let mounts = match means.clients.mount_targets(id).await {
        Err(error) if error.has_code("FileSystemNotFound") => Vec::new(),
        mounts => mounts?,
    };
    for mount in mounts {
        means.clients.delete_mount_target(&mount.id).await?;
    }
    let waiting = means.waiting.at_most(PATIENCE);
    let mut pace = Pace::of_moment();
    loop {
        match means.clients.delete_file_system(id).await {
            Ok(()) => break,
            // The second is what it says while somebody else's deletion goes on.
            Err(error)
                if error.has_code("FileSystemInUse")
                    || error.has_code("IncorrectFileSystemLifeCycleState") => {}
            Err(error) => return Err(error.into()),
        }
        if waiting.pause(pace.next_pause()).await.is_err() {
            return Ok(Some(format!("file system {id}: it still has mount targets")));
        }
    }
    means.progress.note(format!("deleted file system {id} and everything in it"));
    Ok(None)
}

async fn delete_objects(
    means: &Means,
    target: &DestroyTarget,
    objects: &[ObjectVersion],
    what: &str,
) -> Result<Vec<String>, DeployError> {
    let Some(place) = &target.place else { return Ok(Vec::new()) };
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let refused = means.clients.delete_objects(place.bucket(), objects).await?;
    means.progress.note(format!(
        "deleted {} {what} from s3://{}",
        objects.len() - refused.len(),
        place.bucket()
    ));
    Ok(refused)
}
