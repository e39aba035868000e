//! The images that machines boot: without its image no machine can be replaced, and no other part of a status shows that it is deleted.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::shape::ImageState;
use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients, Image, Stack};
use crate::deploy::inputs::image_life::{IMAGE_FIX, ImageConcern, ImageLife};
use crate::deploy::state::live::LiveCluster;

/// An image that live stacks name, and why it should be replaced.
#[derive(Clone, Debug)]
pub(crate) struct UsedImage {
    /// The image for the report.
    pub(crate) state: ImageState,
    concern: Option<ImageConcern>,
}

/// Reads every image that the launch templates of live stacks name; usually that is one.
pub(crate) async fn read_images(
    clients: &Clients,
    live: &LiveCluster,
    now: OffsetDateTime,
    unreadable: &mut Unreadable,
) -> Result<Vec<UsedImage>, AwsError> {
    let mut images = Vec::new();
    for (id, stacks) in used_images(live.stacks.values().map(|live| &live.stack)) {
        let answer = clients.image(&id).await;
        let Some(found) = unreadable.take("the age of the image", answer)? else { continue };
        images.push(used_image(id, stacks, found.as_ref(), now));
    }
    Ok(images)
}

/// The ids of the images that stacks name, each with the names of the stacks.
#[must_use]
pub(super) fn used_images<'a>(stacks: impl Iterator<Item = &'a Stack>) -> BTreeMap<String, Vec<String>> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for stack in stacks {
        if let Some(id) = stack.parameters.get("ImageId") {
            used.entry(id.clone()).or_default().push(stack.name.clone());
        }
    }
    used
}

/// An image that stacks name, as AWS has it; none if it is gone.
#[must_use]
pub(super) fn used_image(
    id: String,
    stacks: Vec<String>,
    found: Option<&Image>,
    now: OffsetDateTime,
) -> UsedImage {
    let life = found.map(|image| ImageLife::of(image, now));
    let created = life.as_ref().and_then(|life| life.created);
    UsedImage {
        state: ImageState {
            id,
            name: found.map(|image| image.name.clone()),
            stacks,
            state: found.map_or_else(|| "gone".to_owned(), |image| image.state.clone()),
            created: created.map(|(day, _)| day.to_string()),
            age_days: created.map(|(_, days)| days),
            deprecated: life.as_ref().and_then(|life| life.deprecation).map(|day| day.to_string()),
            deleted_about: life.as_ref().and_then(|life| life.deletion).map(|day| day.to_string()),
        },
        concern: life.and_then(|life| life.concern()),
    }
}

impl UsedImage {
    /// What is wrong: no machine can be started from the image.
    #[must_use]
    pub(crate) fn problem(&self) -> Option<String> {
        let ImageState { id, stacks, state, .. } = &self.state;
        (state != "available").then(|| {
            format!(
                "the image {id} is {state}: no machine of {} can be started or replaced; {IMAGE_FIX}",
                stacks.join(", ")
            )
        })
    }

    /// What will be wrong.
    #[must_use]
    pub(crate) fn warning(&self) -> Option<String> {
        let concern = self.concern.as_ref().filter(|_| self.problem().is_none())?;
        Some(format!("{}: {}; {IMAGE_FIX}", concern.what, concern.why))
    }
}
