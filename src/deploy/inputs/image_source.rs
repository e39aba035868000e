//! Who publishes the images that machines start from, and under which names.

use crate::config::values::Partition;
use crate::config::{Channel, Cluster};

/// Flatcar's account in the ordinary partition. It is known to publish in no other: what `Flatcar` images there are in China belongs
/// to third parties, and nothing is known of the United States government's regions.
const FLATCAR_OWNER: &str = "075585003325";

/// Where the newest image is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageSource {
    /// The account that owns the image.
    pub owner: &'static str,
    /// A pattern for the name of the image.
    pub name_pattern: String,
}

/// Where a cluster's image is looked up; `None` if no publisher is known for the region.
#[must_use]
pub(crate) fn image_source(cluster: &Cluster) -> Option<ImageSource> {
    let owner = match cluster.region.partition() {
        Partition::Aws => FLATCAR_OWNER,
        Partition::China | Partition::UsGovernment => return None,
    };
    let channel = match cluster.channel {
        Channel::Stable => "stable",
        Channel::Beta => "beta",
        Channel::Alpha => "alpha",
    };
    Some(ImageSource { owner, name_pattern: format!("Flatcar-{channel}-*-hvm") })
}
