//! infra.lock: what was looked up once and is used from then on.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base_image::LockedBaseImage;
use super::capacity_block::LockedBlock;
use super::image_source::ImageSource;
use crate::aws::Clients;
use crate::blueprint::{BlockIds, Prices};
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::document::parse_yaml;

/// The content of infra.lock.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageLock {
    /// The cluster that the lock belongs to.
    pub cluster: String,
    /// The region of the image; every region has its own.
    pub region: String,
    /// The image that every other machine boots.
    pub image: LockedImage,
    /// The image of pools with `image: deep-learning`, if there are any.
    #[serde(default)]
    pub deep_learning: Option<LockedBaseImage>,
    /// The capacity blocks that pools name, and when they begin and end.
    #[serde(default)]
    pub capacity_blocks: Vec<LockedBlock>,
    /// Prices of the region, if they were looked up.
    #[serde(default)]
    pub prices: Option<Prices>,
}

/// An image, and its name, which contains the version.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LockedImage {
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: String,
}

impl ImageLock {
    /// Parses the text of the file; a lock of another cluster or region is refused.
    pub(crate) fn parse(file: &Path, text: &str, cluster: &Cluster) -> Result<Self, DeployError> {
        let lock: Self = parse_yaml(file, text)?;
        lock.check(cluster)?;
        Ok(lock)
    }

    /// Parses the text of the file, whichever cluster it belongs to.
    pub(crate) fn parse_any(file: &Path, text: &str) -> Result<Self, DeployError> {
        Ok(parse_yaml(file, text)?)
    }

    /// The text of the file.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let prices = self.prices.as_ref().map(|prices| {
            format!("# What AWS charged on that day; `infra cost --online` and `infra lock` look it up again.\n{}", prices.lines())
        });
        let prices = prices.unwrap_or_default();
        let deep_learning = self.deep_learning.as_ref().map(LockedBaseImage::lines).unwrap_or_default();
        let blocks = LockedBlock::lines(&self.capacity_blocks);
        format!(
            "# Looked up once by `infra lock` or the first `infra up`. Commit it: machines that start later boot the same image.\n\
             # `infra up --upgrade-os` moves it to the newest one.\n\
             cluster: {}\nregion: {}\nimage:\n  id: {}\n  name: {}\n{deep_learning}{blocks}{prices}",
            self.cluster, self.region, self.image.id, self.image.name
        )
    }

    /// The ids of the capacity blocks.
    #[must_use]
    pub(crate) fn block_ids(&self) -> BlockIds {
        self.capacity_blocks.iter().map(|block| block.id.clone()).collect()
    }

    fn check(&self, cluster: &Cluster) -> Result<(), DeployError> {
        let mismatch = |key: &'static str, locked: &str, wanted: &str| DeployError::LockMismatch {
            key,
            locked: locked.to_owned(),
            wanted: wanted.to_owned(),
        };
        if self.cluster != cluster.name.as_str() {
            return Err(mismatch("clusterName", &self.cluster, cluster.name.as_str()));
        }
        if self.region != cluster.region.as_str() {
            return Err(mismatch("region", &self.region, cluster.region.as_str()));
        }
        Ok(())
    }

    /// Looks up the newest image of the cluster's channel; the Deep Learning image is chosen apart.
    pub(crate) async fn resolve(clients: &Clients, cluster: &Cluster) -> Result<Self, DeployError> {
        let source = ImageSource::of(cluster)?;
        let image = clients.newest_image(&source.owner, &source.name_pattern()).await?;
        let none = || DeployError::NoImage {
            owner: source.owner.clone(),
            pattern: source.name_pattern(),
            region: cluster.region.to_string(),
        };
        let image = image.ok_or_else(none)?;
        Ok(Self {
            cluster: cluster.name.to_string(),
            region: cluster.region.to_string(),
            image: LockedImage { id: image.id, name: image.name },
            deep_learning: None,
            capacity_blocks: Vec::new(),
            prices: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use time::macros::{date, datetime};

    use super::{ImageLock, LockedBaseImage, LockedBlock, LockedImage};
    use crate::blueprint::{Currency, Prices};
    use crate::config::values::Money;
    use crate::deploy::error::DeployError;

    #[test]
    fn what_is_written_is_read_back_and_a_lock_of_another_cluster_is_refused()
    -> Result<(), Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd'}";
        let cluster = crate::config::validate(Path::new("cluster.yaml"), text)?.value;
        let file = Path::new("infra.lock");
        let lock = ImageLock {
            cluster: "paddle".to_owned(),
            region: "us-west-2".to_owned(),
            image: LockedImage { id: "ami-1".to_owned(), name: "Flatcar-stable-4459.2.1-hvm".to_owned() },
            deep_learning: None,
            capacity_blocks: Vec::new(),
            prices: None,
        };
        assert_eq!(ImageLock::parse(file, &lock.text(), &cluster)?, lock);
        let amount = |text: &str| text.parse::<Money>().unwrap_or_default();
        let mut prices = Prices::none(date!(2026 - 11 - 01), Currency::Usd);
        let whole = ImageLock { prices: Some(prices.clone()), ..lock.clone() };
        assert_eq!(ImageLock::parse(file, &whole.text(), &cluster)?, whole, "without a single price");
        prices.machines = [("m5.large".to_owned(), amount("0.0960000000"))].into();
        prices.spot = [("g5.xlarge".to_owned(), [("us-west-2a".to_owned(), amount("0.4021"))].into())].into();
        prices.units = [("natGatewayHour".to_owned(), amount("0.045"))].into();
        let whole = ImageLock { prices: Some(prices), ..lock.clone() };
        assert_eq!(ImageLock::parse(file, &whole.text(), &cluster)?, whole);
        for (good, bad) in [("2026-11-01", "yesterday"), ("\"0.045\"", "\"4 cents\""), ("USD", "EUR")] {
            let refused = ImageLock::parse(file, &whole.text().replace(good, bad), &cluster);
            assert!(matches!(refused, Err(DeployError::InvalidLock(_))), "{bad}: {refused:?}");
        }
        let base = LockedBaseImage {
            id: "ami-2".to_owned(),
            name: "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20261009".to_owned(),
            root_device: "/dev/sda1".to_owned(),
            smallest_gib: 75,
        };
        let block = LockedBlock {
            id: "cr-0123456789abcdef0".to_owned(),
            begins: datetime!(2026-11-18 11:30 UTC),
            ends: datetime!(2026-11-20 11:30 UTC),
        };
        let both = ImageLock { deep_learning: Some(base), capacity_blocks: vec![block], ..whole };
        assert!(both.text().contains("  begins: 2026-11-18T11:30:00Z\n"), "{}", both.text());
        assert_eq!(ImageLock::parse(file, &both.text(), &cluster)?, both);
        let other = ImageLock { cluster: "other".to_owned(), ..lock };
        let refused = ImageLock::parse(file, &other.text(), &cluster);
        assert!(matches!(refused, Err(DeployError::LockMismatch { key: "clusterName", .. })), "{refused:?}");
        let refused = ImageLock::parse(file, "cluster: [", &cluster);
        assert!(matches!(refused, Err(DeployError::InvalidLock(_))), "{refused:?}");
        Ok(())
    }
}
