//! The image of each stack's machines as parameters of the stack.

use std::collections::BTreeMap;

use super::live::LiveCluster;
use crate::blueprint::StackPart;
use crate::config::{Cluster, Pool, PoolImage};
use crate::deploy::inputs::image_choice::{ImageChoice, ImagesInUse};

/// The parameter with the device name of the root disk, in stacks of pools that boot the Deep Learning image.
const ROOT_DEVICE: &str = "RootDevice";

/// The images of live stacks.
#[must_use]
pub(crate) fn images_in_use<'a>(cluster: &Cluster, live: &'a LiveCluster) -> ImagesInUse<'a> {
    ImagesInUse {
        flatcar: live.parameter(&StackPart::ControlPlane, "ImageId"),
        deep_learning: base_image_in_use(cluster, live),
    }
}

/// The Deep Learning image of the first live pool that boots it.
fn base_image_in_use<'a>(cluster: &Cluster, live: &'a LiveCluster) -> Option<&'a str> {
    let parts = cluster.pools.iter().map(|pool| StackPart::Pool(pool.name.clone()));
    parts
        .filter(|part| live.parameter(part, ROOT_DEVICE).is_some())
        .find_map(|part| live.parameter(&part, "ImageId"))
}

/// The image that the machines of a stack boot, and its root disk where that depends on the image.
pub(super) fn image_parameters(
    part: &StackPart,
    pool: Option<&Pool>,
    choice: &ImageChoice,
    live: &LiveCluster,
) -> BTreeMap<String, String> {
    let of_stack = |part: &StackPart, name: &str| live.parameter(part, name).map(str::to_owned);
    let (image, root_device) = if pool.is_some_and(|pool| pool.image == PoolImage::DeepLearning) {
        let (own, chosen) = match choice {
            ImageChoice::Locked { deep_learning, .. } => (None, deep_learning),
            // A stack without the other parameter has booted Flatcar until now.
            ImageChoice::Live { deep_learning } => {
                (of_stack(part, "ImageId").zip(of_stack(part, ROOT_DEVICE)), deep_learning)
            }
        };
        let chosen = chosen.as_ref().map(|image| (image.id.clone(), image.root_device.clone()));
        own.or(chosen).unzip()
    } else {
        let image = match choice {
            ImageChoice::Locked { flatcar, .. } => Some(flatcar.clone()),
            ImageChoice::Live { .. } => of_stack(part, "ImageId")
                .filter(|_| of_stack(part, ROOT_DEVICE).is_none())
                .or_else(|| of_stack(&StackPart::ControlPlane, "ImageId")),
        };
        (image, None)
    };
    let mut parameters = BTreeMap::from([("ImageId".to_owned(), image.unwrap_or_default())]);
    parameters.extend(root_device.map(|device| (ROOT_DEVICE.to_owned(), device)));
    parameters
}
