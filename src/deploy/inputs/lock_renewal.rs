//! What `infra lock` writes: an existing lock keeps its image, unless it is moved to the newest one.

use super::base_image::LockedBaseImage;
use super::driver_check::{DriverDoubt, require_drivers};
use super::image_lock::{ImageLock, LockedImage};
use crate::aws::Clients;
use crate::config::Cluster;
use crate::deploy::error::DeployError;

/// A lock, brought up to date.
#[derive(Clone, Debug)]
pub(crate) struct RenewedLock {
    /// The lock to write.
    pub lock: ImageLock,
    /// The newest image, if the lock keeps an older one.
    pub newer: Option<LockedImage>,
    /// Which drivers of a new image could not be checked, and why.
    pub warnings: Vec<String>,
}

impl RenewedLock {
    /// The lock that was found with its own image, or for an upgrade the newest one.
    pub(crate) async fn renew(
        clients: &Clients,
        cluster: &Cluster,
        found: Option<&ImageLock>,
        upgrade: bool,
    ) -> Result<Self, DeployError> {
        let newest = ImageLock::resolve(clients, cluster).await?;
        let kept = found.filter(|_| !upgrade);
        let newer = kept.filter(|kept| kept.image.id != newest.image.id).map(|_| newest.image.clone());
        let mut lock = kept.cloned().unwrap_or(newest);
        if let Some(found) = found {
            lock.prices.clone_from(&found.prices);
            lock.capacity_blocks.clone_from(&found.capacity_blocks);
        }
        // The pool that boots this image may be newer than the lock.
        let locked = found.and_then(|found| found.deep_learning.as_ref());
        lock.deep_learning = LockedBaseImage::choose(clients, cluster, locked, None, upgrade).await?;
        let warnings = if found.is_some_and(|found| found.image == lock.image) {
            Vec::new()
        } else {
            check_new_image(clients, cluster, &lock).await?
        };
        Ok(Self { lock, newer, warnings })
    }

    /// The first lock of a cluster, as it was chosen.
    pub(crate) async fn first(
        clients: &Clients,
        cluster: &Cluster,
        lock: ImageLock,
    ) -> Result<Self, DeployError> {
        let warnings = check_new_image(clients, cluster, &lock).await?;
        Ok(Self { lock, newer: None, warnings })
    }
}

/// Refuses an image without the drivers of the pools; returns what could not be checked.
async fn check_new_image(
    clients: &Clients,
    cluster: &Cluster,
    lock: &ImageLock,
) -> Result<Vec<String>, DeployError> {
    let doubts = require_drivers(clients, cluster, &lock.image.name).await?;
    Ok(doubts.iter().map(DriverDoubt::what).collect())
}
