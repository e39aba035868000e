//! Which image machines boot, and what infra.lock will say about it.

use super::image_lock::{ImageLock, LockedImage};
use crate::aws::Clients;
use crate::config::Cluster;
use crate::deploy::error::DeployError;

/// Which image machines boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImageChoice {
    /// This image, everywhere.
    Locked(String),
    /// The image of each live stack, since there is no lock; new stacks take that of the control plane.
    Live,
}

/// The image that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct ChosenImage {
    /// Which image machines boot.
    pub choice: ImageChoice,
    /// The lock to write.
    pub lock: ImageLock,
    /// What the user should know about the choice.
    pub notice: Option<ImageNotice>,
}

/// What the user should know about the choice of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageNotice {
    /// An upgrade was asked for, and there is nothing newer.
    #[error("{0} is the newest image already")]
    AlreadyNewest(String),
    /// infra.lock is missing.
    #[error("infra.lock is missing; machines keep the image of the live stacks, {0}")]
    LockMissing(String),
}

impl ChosenImage {
    /// The lock's image; without a lock that of the live cluster (`in_use`); without that, or for an upgrade, the newest.
    pub(crate) async fn choose(
        clients: &Clients,
        cluster: &Cluster,
        lock: Option<ImageLock>,
        in_use: Option<&str>,
        upgrade: bool,
    ) -> Result<Self, DeployError> {
        if upgrade {
            let newest = ImageLock::resolve(clients, cluster).await?;
            let before = lock.as_ref().map(|lock| lock.image.id.as_str()).or(in_use);
            let is_newest = before == Some(newest.image.id.as_str());
            let notice = is_newest.then(|| ImageNotice::AlreadyNewest(newest.image.name.clone()));
            return Ok(Self { notice, ..Self::locked(newest) });
        }
        match (lock, in_use) {
            (Some(lock), _) => Ok(Self::locked(lock)),
            (None, None) => Ok(Self::locked(ImageLock::resolve(clients, cluster).await?)),
            (None, Some(id)) => {
                let image = clients.image(id).await?;
                let name = image.map_or_else(|| "unknown".to_owned(), |image| image.name);
                let lock = ImageLock {
                    cluster: cluster.name.to_string(),
                    region: cluster.region.to_string(),
                    image: LockedImage { id: id.to_owned(), name },
                };
                let notice = Some(ImageNotice::LockMissing(id.to_owned()));
                Ok(Self { choice: ImageChoice::Live, lock, notice })
            }
        }
    }

    fn locked(lock: ImageLock) -> Self {
        Self { choice: ImageChoice::Locked(lock.image.id.clone()), lock, notice: None }
    }
}
