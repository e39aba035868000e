//! Images that machines are started from.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::actions;
use super::machines::{ec2_filter, sdk_text};
use super::{AwsError, Clients};

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The id of the image.
    pub id: String,
    /// The name of the image, which its owner chooses.
    pub name: String,
    /// The account that owns the image.
    pub owner: String,
    /// When the image was created.
    pub created: Option<OffsetDateTime>,
    /// When it becomes or became deprecated.
    pub deprecated: Option<OffsetDateTime>,
    /// The device name of its root disk.
    pub root_device: String,
    /// The size of the smallest root disk, if EC2 says it.
    pub smallest_gib: Option<u32>,
    /// The architecture, as EC2 spells it (`x86_64`).
    pub architecture: String,
    /// The state of the image; `available` is the good one.
    pub state: String,
}

/// How many values EC2 takes in one filter.
const FILTER_VALUES: usize = 200;

impl Clients {
    /// The images of these ids that exist, deprecated or not. Ids in a filter, unlike a list of ids, may be unknown.
    pub(crate) async fn images(&self, ids: &[String]) -> Result<Vec<Image>, AwsError> {
        let mut found = Vec::new();
        for ids in ids.chunks(FILTER_VALUES) {
            let call = self.ec2.describe_images().include_deprecated(true);
            let call = call.filters(ec2_filter("image-id", ids.iter().map(String::as_str)));
            let images = call.into_paginator().items().send().try_collect().await;
            let images = images.map_err(AwsError::of(actions::EC2_DESCRIBE_IMAGES))?;
            found.extend(images.into_iter().map(image_of));
        }
        Ok(found)
    }

    /// The newest image of `owner` whose name has the pattern and that ordinary machines can start from.
    pub(crate) async fn newest_image(
        &self,
        owner: &str,
        name_pattern: &str,
    ) -> Result<Option<Image>, AwsError> {
        let images = self
            .ec2
            .describe_images()
            .owners(owner)
            .include_deprecated(false)
            .filters(ec2_filter("name", [name_pattern]))
            .filters(ec2_filter("architecture", ["x86_64"]))
            .filters(ec2_filter("virtualization-type", ["hvm"]))
            .filters(ec2_filter("root-device-type", ["ebs"]))
            .filters(ec2_filter("state", ["available"]))
            .into_paginator()
            .items()
            .send()
            .try_collect()
            .await
            .map_err(AwsError::of(actions::EC2_DESCRIBE_IMAGES))?;
        Ok(newest_of_images(images.into_iter().map(image_of)))
    }

    /// An image by its id, deprecated or not.
    pub(crate) async fn image(&self, id: &str) -> Result<Option<Image>, AwsError> {
        let answer = self.ec2.describe_images().image_ids(id).include_deprecated(true).send().await;
        match answer.map_err(AwsError::of(actions::EC2_DESCRIBE_IMAGES)) {
            Ok(answer) => Ok(answer.images.unwrap_or_default().into_iter().next().map(image_of)),
            Err(error)
                if error.has_code("InvalidAMIID.NotFound") || error.has_code("InvalidAMIID.Unavailable") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn image_of(image: aws_sdk_ec2::types::Image) -> Image {
    let mappings = image.block_device_mappings.unwrap_or_default().into_iter();
    let mut roots = mappings.filter(|mapping| mapping.device_name == image.root_device_name);
    let root_gib = roots.find_map(|mapping| mapping.ebs?.volume_size);
    Image {
        smallest_gib: root_gib.and_then(|gib| u32::try_from(gib).ok()),
        architecture: sdk_text(image.architecture.as_ref()),
        state: sdk_text(image.state.as_ref()),
        id: image.image_id.unwrap_or_default(),
        name: image.name.unwrap_or_default(),
        owner: image.owner_id.unwrap_or_default(),
        created: time_in(image.creation_date.as_deref()),
        deprecated: time_in(image.deprecation_time.as_deref()),
        root_device: image.root_device_name.unwrap_or_default(),
    }
}

/// EC2 writes these two times as text.
fn time_in(text: Option<&str>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text?, &Rfc3339).ok()
}

/// The newest by the version in its name: a fix for an old version may be created later than the first image of a new one.
fn newest_of_images(images: impl Iterator<Item = Image>) -> Option<Image> {
    images.max_by_key(|image| (version_of(&image.name), image.created))
}

/// The numbers of the first part of a name that is a version; none if it has no such part.
fn version_of(name: &str) -> Vec<u64> {
    let numbers = |part: &str| -> Option<Vec<u64>> {
        part.split('.').map(|number| number.parse::<u64>().ok()).collect()
    };
    name.split('-').filter_map(numbers).find(|version| version.len() > 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Image, newest_of_images, time_in, version_of};

    fn image(name: &str, created: &str) -> Image {
        Image {
            id: format!("ami-{created}"),
            name: name.to_owned(),
            owner: "111122223333".to_owned(),
            created: time_in(Some(&format!("{created}T12:00:00.000Z"))),
            deprecated: None,
            root_device: "/dev/xvda".to_owned(),
            smallest_gib: None,
            architecture: "x86_64".to_owned(),
            state: "available".to_owned(),
        }
    }

    #[test]
    fn the_version_decides_and_not_the_day() {
        let images = [
            image("Flatcar-stable-4593.2.5-hvm", "2026-05-01"),
            image("Flatcar-stable-4593.10.0-hvm", "2026-04-01"),
            image("Flatcar-stable-999.9.9-hvm", "2026-06-01"),
        ];
        let found = newest_of_images(images.into_iter()).map(|image| image.name);
        assert_eq!(found.as_deref(), Some("Flatcar-stable-4593.10.0-hvm"));
    }

    #[test]
    fn without_versions_the_day_decides() {
        let images = [image("ours", "2026-05-01"), image("theirs", "2026-04-01")];
        assert_eq!(newest_of_images(images.into_iter()).map(|image| image.name).as_deref(), Some("ours"));
        assert_eq!(newest_of_images([].into_iter()), None);
        assert_eq!(version_of("my-image-2"), Vec::<u64>::new());
    }
}
