//! Who publishes the images that machines start from, under which names, and why an image is refused.

use crate::aws::Image;
use crate::config::values::Partition;
use crate::config::{Channel, Cluster};
use crate::deploy::error::DeployError;
use crate::deploy::event::Refusal;

/// Flatcar's account in the ordinary partition. It is known to publish in no other: what `Flatcar` images there are in China belongs
/// to third parties, and nothing is known of the United States government's regions.
pub(super) const FLATCAR_OWNER: &str = "075585003325";

/// What an image's name begins and ends with, around channel and version.
const NAME_PARTS: (&str, &str) = ("Flatcar", "hvm");

/// Where images come from: an account, and names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageSource {
    /// The account that owns the image.
    pub owner: String,
    channel: &'static str,
}

impl ImageSource {
    /// Where a cluster's image comes from: from the account that cluster.yaml names, else from Flatcar's.
    pub(crate) fn of(cluster: &Cluster) -> Result<Self, ImageDoubt> {
        let owner = match (&cluster.image_owner, cluster.region.partition()) {
            (Some(owner), _) => owner.to_string(),
            (None, Partition::Aws) => FLATCAR_OWNER.to_owned(),
            (None, Partition::China | Partition::UsGovernment) => {
                return Err(ImageDoubt::UnknownPublisher { region: cluster.region.to_string() });
            }
        };
        let channel = match cluster.channel {
            Channel::Stable => "stable",
            Channel::Beta => "beta",
            Channel::Alpha => "alpha",
        };
        Ok(Self { owner, channel })
    }

    /// The names of the images, as EC2's filter takes it.
    #[must_use]
    pub(crate) fn name_pattern(&self) -> String {
        format!("{}-{}-*-{}", NAME_PARTS.0, self.channel, NAME_PARTS.1)
    }

    /// Whether an image is one of these, under the name that infra.lock gives it.
    pub(crate) fn check(&self, image: &Image, locked_name: &str) -> Result<(), ImageDoubt> {
        let Image { id, name, owner, .. } = image;
        if *owner != self.owner {
            return Err(ImageDoubt::ForeignOwner {
                id: id.clone(),
                name: name.clone(),
                owner: owner.clone(),
                publisher: self.owner.clone(),
            });
        }
        if name != locked_name {
            let (id, name, locked) = (id.clone(), name.clone(), locked_name.to_owned());
            return Err(ImageDoubt::OtherName { id, name, locked });
        }
        if !self.has_name(name) {
            let pattern = self.name_pattern();
            return Err(ImageDoubt::OtherChannel { id: id.clone(), name: name.clone(), pattern });
        }
        Ok(())
    }

    fn has_name(&self, name: &str) -> bool {
        let version = name
            .strip_prefix(NAME_PARTS.0)
            .and_then(|rest| rest.strip_prefix('-')?.strip_prefix(self.channel)?.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(NAME_PARTS.1)?.strip_suffix('-'));
        version.is_some_and(|version| !version.is_empty())
    }
}

/// The version of Flatcar in the name of an image.
#[must_use]
pub(crate) fn version_of(name: &str) -> Option<&str> {
    let is_version = |part: &&str| {
        let numbers = part.split('.');
        numbers.clone().count() > 1
            && numbers.clone().all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    name.split('-').find(is_version)
}

/// Why no machine may boot an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageDoubt {
    /// No publisher of images is known there.
    #[error("no publisher of Flatcar images is known in {region}")]
    UnknownPublisher {
        /// The region.
        region: String,
    },
    /// Another account owns the image.
    #[error("the image {id} ({name}) belongs to account {owner}, not to {publisher}")]
    ForeignOwner {
        /// The id of the image.
        id: String,
        /// The name of the image.
        name: String,
        /// The account that owns the image.
        owner: String,
        /// The account that should own it.
        publisher: String,
    },
    /// The image has another name than infra.lock says.
    #[error("infra.lock calls the image {id} '{locked}', but its name is '{name}'")]
    OtherName {
        /// The id of the image.
        id: String,
        /// The name of the image.
        name: String,
        /// The name in infra.lock.
        locked: String,
    },
    /// The image is not of the cluster's channel.
    #[error("the image {id} is called '{name}', which does not match {pattern}")]
    OtherChannel {
        /// The id of the image.
        id: String,
        /// The name of the image.
        name: String,
        /// How images of the channel are called.
        pattern: String,
    },
}

impl ImageDoubt {
    /// Why it matters.
    #[must_use]
    pub(crate) fn why(&self) -> &'static str {
        match self {
            Self::UnknownPublisher { .. } => {
                "machines start from an image of their own region, and get the cluster's keys"
            }
            Self::ForeignOwner { .. } | Self::OtherName { .. } => {
                "every machine gets keys of the cluster, and whoever made its image can read them"
            }
            Self::OtherChannel { .. } => "machines boot Flatcar's images of the channel in cluster.yaml",
        }
    }

    /// What to do next.
    #[must_use]
    pub(crate) fn fix(&self) -> &'static str {
        match self {
            Self::UnknownPublisher { .. } => {
                "import Flatcar's image for EC2 into an account of yours under Flatcar's name for it, and set os.imageOwner to that account"
            }
            Self::ForeignOwner { .. } => {
                "find out who changed infra.lock; `infra up --upgrade-os` locks the newest image; for copies in another account set \
                 os.imageOwner"
            }
            Self::OtherName { .. } => {
                "find out who changed infra.lock; `infra up --upgrade-os` locks the newest image"
            }
            Self::OtherChannel { .. } => {
                "put the channel back into os.channel, or run `infra up --upgrade-os`, which moves to the channel; a copy keeps the name \
                 that Flatcar gave it"
            }
        }
    }
}

impl From<ImageDoubt> for DeployError {
    fn from(doubt: ImageDoubt) -> Self {
        Self::Refused(vec![Refusal::new(doubt.to_string(), doubt.fix())])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ImageDoubt, ImageSource, version_of};
    use crate::aws::Image;
    use crate::config::Cluster;

    const NAME: &str = "Flatcar-stable-4459.2.1-hvm";

    fn cluster(region: &str, partition: &str, more: &str) -> Result<Cluster, Box<dyn std::error::Error>> {
        let text = format!(
            "{{clusterName: a, externalDNSName: a.example.com, region: {region}, availabilityZones: [{region}a], \
             kmsKeyArn: 'arn:{partition}:kms:{region}:111122223333:key/1'{more}}}"
        );
        Ok(crate::config::validate(Path::new("cluster.yaml"), &text)?.value)
    }

    fn image(name: &str, owner: &str) -> Image {
        Image {
            id: "ami-1".to_owned(),
            name: name.to_owned(),
            owner: owner.to_owned(),
            created: None,
            deprecated: None,
            root_device: String::new(),
            smallest_gib: None,
            architecture: String::new(),
            state: String::new(),
        }
    }

    #[test]
    fn owner_and_name_must_be_the_publishers() -> Result<(), Box<dyn std::error::Error>> {
        let source = ImageSource::of(&cluster("us-west-2", "aws", "")?)?;
        assert_eq!(source.name_pattern(), "Flatcar-stable-*-hvm");
        source.check(&image(NAME, "075585003325"), NAME)?;
        let refused = source.check(&image(NAME, "666666666666"), NAME);
        assert!(matches!(refused, Err(ImageDoubt::ForeignOwner { .. })), "{refused:?}");
        let refused = source.check(&image("Flatcar-stable-1.0.0-hvm", "075585003325"), NAME);
        assert!(matches!(refused, Err(ImageDoubt::OtherName { .. })), "{refused:?}");
        for name in [
            "Flatcar-beta-1.0.0-hvm",
            "ours",
            "Flatcar-stable--hvm",
            "Flatcar-stable-hvm",
            "Flatcar-stable-1.0.0",
        ] {
            let refused = source.check(&image(name, "075585003325"), name);
            assert!(matches!(refused, Err(ImageDoubt::OtherChannel { .. })), "{name}: {refused:?}");
        }
        Ok(())
    }

    #[test]
    fn the_version_is_read_from_the_name() {
        assert_eq!(version_of(NAME), Some("4459.2.1"));
        for name in
            ["unknown", "Flatcar-stable-4459-hvm", "Flatcar-stable-4459..1-hvm", "Flatcar-stable-../a-hvm"]
        {
            assert_eq!(version_of(name), None, "{name}");
        }
    }

    #[test]
    fn another_partition_or_own_copies_take_an_owner() -> Result<(), Box<dyn std::error::Error>> {
        let refused = ImageSource::of(&cluster("cn-north-1", "aws-cn", "")?);
        assert!(matches!(refused, Err(ImageDoubt::UnknownPublisher { .. })), "{refused:?}");
        let owner = ", os: {imageOwner: '222233334444'}";
        for (region, partition) in [("cn-north-1", "aws-cn"), ("us-west-2", "aws")] {
            let source = ImageSource::of(&cluster(region, partition, owner)?)?;
            source.check(&image(NAME, "222233334444"), NAME)?;
            assert!(source.check(&image(NAME, "075585003325"), NAME).is_err());
        }
        Ok(())
    }
}
