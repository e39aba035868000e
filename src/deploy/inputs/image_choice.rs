//! Which image machines boot, and what infra.lock will say about it.

use schemars::JsonSchema;
use serde::Serialize;

use super::base_image::LockedBaseImage;
use super::image_lock::{ImageLock, LockedImage};
use super::image_source::ImageSource;
use crate::aws::Clients;
use crate::config::Cluster;
use crate::deploy::error::DeployError;

/// Which image machines boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImageChoice {
    /// These images, everywhere.
    Locked {
        /// Flatcar's.
        flatcar: String,
        /// The one of pools that boot the Deep Learning image.
        deep_learning: Option<LockedBaseImage>,
    },
    /// The image of each live stack, since there is no lock; new stacks take that of the control plane.
    Live {
        /// The one of new pools that boot the Deep Learning image.
        deep_learning: Option<LockedBaseImage>,
    },
}

/// The images of live stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImagesInUse<'a> {
    /// The control plane's.
    pub flatcar: Option<&'a str>,
    /// That of a pool that boots the Deep Learning image.
    pub deep_learning: Option<&'a str>,
}

/// The image that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct ChosenImage {
    /// Which image machines boot.
    pub choice: ImageChoice,
    /// The lock to write.
    pub lock: ImageLock,
    /// Where the image comes from; none if it no longer exists.
    pub origin: Option<ImageOrigin>,
    /// What the user should know about the choice.
    pub notice: Option<ImageNotice>,
}

/// An image and who publishes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ImageOrigin {
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: String,
    /// The account that owns the image.
    pub owner: String,
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
    /// The lock's image; without a lock that of the live cluster (`in_use`); without that, or for an upgrade, the newest. An image that
    /// is not the publisher's is refused.
    pub(crate) async fn choose(
        clients: &Clients,
        cluster: &Cluster,
        lock: Option<ImageLock>,
        in_use: ImagesInUse<'_>,
        upgrade: bool,
    ) -> Result<Self, DeployError> {
        let capacity_blocks = lock.as_ref().map(|lock| lock.capacity_blocks.clone()).unwrap_or_default();
        let locked = lock.as_ref().and_then(|lock| lock.deep_learning.as_ref());
        let deep_learning =
            LockedBaseImage::choose(clients, cluster, locked, in_use.deep_learning, upgrade).await?;
        let chosen = Self::choose_flatcar(clients, cluster, lock, in_use.flatcar, upgrade).await?;
        let choice = match chosen.choice {
            ImageChoice::Locked { flatcar, .. } => {
                ImageChoice::Locked { flatcar, deep_learning: deep_learning.clone() }
            }
            ImageChoice::Live { .. } => ImageChoice::Live { deep_learning: deep_learning.clone() },
        };
        Ok(Self { choice, lock: ImageLock { deep_learning, capacity_blocks, ..chosen.lock }, ..chosen })
    }

    async fn choose_flatcar(
        clients: &Clients,
        cluster: &Cluster,
        lock: Option<ImageLock>,
        in_use: Option<&str>,
        upgrade: bool,
    ) -> Result<Self, DeployError> {
        let source = ImageSource::of(cluster)?;
        let newest_origin = |lock: &ImageLock| {
            let LockedImage { id, name } = lock.image.clone();
            Some(ImageOrigin { id, name, owner: source.owner.clone() })
        };
        if upgrade {
            let prices = lock.as_ref().and_then(|lock| lock.prices.clone());
            let newest = ImageLock { prices, ..ImageLock::resolve(clients, cluster).await? };
            let before = lock.as_ref().map(|lock| lock.image.id.as_str()).or(in_use);
            let is_newest = before == Some(newest.image.id.as_str());
            let notice = is_newest.then(|| ImageNotice::AlreadyNewest(newest.image.name.clone()));
            let origin = newest_origin(&newest);
            return Ok(Self { notice, ..Self::locked(newest, origin) });
        }
        match (lock, in_use) {
            (Some(lock), _) => {
                let origin = read_origin(clients, &source, &lock.image.id, Some(&lock.image.name)).await?;
                Ok(Self::locked(lock, origin))
            }
            (None, None) => {
                let newest = ImageLock::resolve(clients, cluster).await?;
                let origin = newest_origin(&newest);
                Ok(Self::locked(newest, origin))
            }
            (None, Some(id)) => {
                let origin = read_origin(clients, &source, id, None).await?;
                let name = origin.as_ref().map_or_else(|| "unknown".to_owned(), |origin| origin.name.clone());
                let lock = ImageLock {
                    cluster: cluster.name.to_string(),
                    region: cluster.region.to_string(),
                    image: LockedImage { id: id.to_owned(), name },
                    deep_learning: None,
                    capacity_blocks: Vec::new(),
                    prices: None,
                };
                let notice = Some(ImageNotice::LockMissing(id.to_owned()));
                Ok(Self { choice: ImageChoice::Live { deep_learning: None }, lock, origin, notice })
            }
        }
    }

    fn locked(lock: ImageLock, origin: Option<ImageOrigin>) -> Self {
        let choice = ImageChoice::Locked { flatcar: lock.image.id.clone(), deep_learning: None };
        Self { choice, lock, origin, notice: None }
    }
}

/// Where an image comes from, unless it is gone; without a name in infra.lock its own will do.
async fn read_origin(
    clients: &Clients,
    source: &ImageSource,
    id: &str,
    locked_name: Option<&str>,
) -> Result<Option<ImageOrigin>, DeployError> {
    let Some(image) = clients.image(id).await? else { return Ok(None) };
    source.check(&image, locked_name.unwrap_or(&image.name))?;
    Ok(Some(ImageOrigin { id: image.id, name: image.name, owner: image.owner }))
}
