//! Which image machines boot, and what infra.lock will say about it.

use schemars::JsonSchema;
use serde::Serialize;

use super::image_lock::{ImageLock, LockedImage};
use super::image_source::ImageSource;
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
                    prices: None,
                };
                let notice = Some(ImageNotice::LockMissing(id.to_owned()));
                Ok(Self { choice: ImageChoice::Live, lock, origin, notice })
            }
        }
    }

    fn locked(lock: ImageLock, origin: Option<ImageOrigin>) -> Self {
        Self { choice: ImageChoice::Locked(lock.image.id.clone()), lock, origin, notice: None }
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
