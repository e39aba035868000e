//! AWS's Deep Learning Base image, which GPU pools boot with `image: deep-learning`: who publishes it, and what infra.lock says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::image_life::IMAGE_FIX;
use crate::aws::{Clients, Image};
use crate::config::values::Partition;
use crate::config::{Cluster, Pool, PoolImage};
use crate::deploy::error::DeployError;
use crate::deploy::event::Refusal;

/// The account that publishes AWS's Deep Learning images in the partition `aws`; the accounts of other partitions are not known.
const OWNER: &str = "898082745236";
/// How the name of the image begins; the day of its release follows.
const NAME: &str = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) ";

/// The Deep Learning image, and the disk that it needs.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LockedBaseImage {
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: String,
    /// The device name of the root disk.
    pub root_device: String,
    /// The size of the smallest root disk.
    #[serde(rename = "smallestGiB")]
    pub smallest_gib: u32,
}

impl LockedBaseImage {
    /// The image of the pools that boot it: what infra.lock names; without a lock that of live stacks; without that, or for an upgrade,
    /// the newest. None if no pool boots it.
    pub(crate) async fn choose(
        clients: &Clients,
        cluster: &Cluster,
        locked: Option<&Self>,
        in_use: Option<&str>,
        upgrade: bool,
    ) -> Result<Option<Self>, DeployError> {
        if deep_learning_pools(cluster).next().is_none() {
            return Ok(None);
        }
        let image = match (locked, in_use) {
            (Some(locked), _) if !upgrade => {
                let image = read_base_image(clients, &locked.id).await?;
                if image != *locked {
                    return Err(base_image_refusal(
                        format!("infra.lock describes the image {} differently than AWS does", locked.id),
                        "find out who changed infra.lock; `infra up --upgrade-os` locks the newest image",
                    ));
                }
                image
            }
            (None, Some(id)) if !upgrade => read_base_image(clients, id).await?,
            _ => newest_base_image(clients, cluster).await?,
        };
        image.check_disks(cluster)?;
        Ok(Some(image))
    }

    /// The lines of infra.lock.
    #[must_use]
    pub(crate) fn lines(&self) -> String {
        let Self { id, name, root_device, smallest_gib } = self;
        format!(
            "deepLearning:\n  id: {id}\n  name: {name}\n  rootDevice: {root_device}\n  smallestGiB: {smallest_gib}\n"
        )
    }

    fn of(image: Image) -> Result<Self, DeployError> {
        let Image { id, name, owner, root_device, smallest_gib, .. } = image;
        if owner != OWNER || !name.starts_with(NAME) {
            return Err(base_image_refusal(
                format!("the image {id} ({name}) of account {owner} is not AWS's Deep Learning Base image"),
                "find out who changed infra.lock; `infra up --upgrade-os` locks the newest image",
            ));
        }
        let Some(smallest_gib) = smallest_gib else {
            return Err(base_image_refusal(
                format!("AWS does not say how large the root disk of image {id} ({name}) is"),
                IMAGE_FIX,
            ));
        };
        Ok(Self { id, name, root_device, smallest_gib })
    }

    /// EC2 refuses a disk that is smaller than the image.
    fn check_disks(&self, cluster: &Cluster) -> Result<(), DeployError> {
        let small = deep_learning_pools(cluster).filter(|pool| pool.root_volume_gib < self.smallest_gib);
        let refusals: Vec<Refusal> = small
            .map(|pool| {
                Refusal::new(
                    format!(
                        "rootVolumeGiB of pool {} is {}, and the image {} needs {} GiB",
                        pool.name, pool.root_volume_gib, self.name, self.smallest_gib
                    ),
                    format!("set rootVolumeGiB to {} or more", self.smallest_gib),
                )
            })
            .collect();
        if refusals.is_empty() { Ok(()) } else { Err(DeployError::Refused(refusals)) }
    }
}

fn deep_learning_pools(cluster: &Cluster) -> impl Iterator<Item = &Pool> {
    cluster.pools.iter().filter(|pool| pool.image == PoolImage::DeepLearning)
}

async fn read_base_image(clients: &Clients, id: &str) -> Result<LockedBaseImage, DeployError> {
    let gone = || base_image_refusal(format!("the Deep Learning image {id} no longer exists"), IMAGE_FIX);
    LockedBaseImage::of(clients.image(id).await?.ok_or_else(gone)?)
}

async fn newest_base_image(clients: &Clients, cluster: &Cluster) -> Result<LockedBaseImage, DeployError> {
    let region = &cluster.region;
    if region.partition() != Partition::Aws {
        return Err(base_image_refusal(
            format!("infra does not know which account publishes AWS's Deep Learning images in {region}"),
            "remove `image: deep-learning` from the pools",
        ));
    }
    let pattern = format!("{NAME}????????");
    let found = clients.newest_image(OWNER, &pattern).await?;
    let none =
        || DeployError::NoImage { owner: OWNER.to_owned(), pattern, region: cluster.region.to_string() };
    LockedBaseImage::of(found.ok_or_else(none)?)
}

fn base_image_refusal(what: String, fix: impl Into<String>) -> DeployError {
    DeployError::Refused(vec![Refusal::new(what, fix.into())])
}
