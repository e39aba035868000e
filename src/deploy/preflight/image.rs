//! The image that machines start from.

use super::finding::SubjectFindings;
use super::{Finding, Preflight, driver};
use crate::aws::{AwsError, Clients, Image};
use crate::deploy::inputs::image_life::{IMAGE_FIX, ImageLife};
use crate::deploy::inputs::image_lock::LockedImage;
use crate::deploy::inputs::image_source::{ImageDoubt, ImageSource};

/// The device that launch templates size as the root disk.
const ROOT_DEVICE: &str = "/dev/xvda";

pub(crate) async fn check_os_image(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("image");
    let source = match ImageSource::of(&preflight.blueprint.cluster) {
        Ok(source) => source,
        Err(doubt) => {
            refuse_doubtful(&doubt, &mut findings);
            return Ok(findings.into_list());
        }
    };
    let image = match preflight.image {
        Some(locked) => check_locked_image(locked, &source, clients, &mut findings).await?,
        None => check_newest_image(preflight, &source, clients, &mut findings).await?,
    };
    let Some(image) = image else { return Ok(findings.into_list()) };
    check_image(&image, &mut findings);
    if let Some(concern) = ImageLife::of(&image, preflight.now).concern() {
        findings.warn(concern.what, concern.why, IMAGE_FIX);
    }
    let drivers = driver::check_driver_releases(&preflight.blueprint.cluster, clients, &image.name).await;
    Ok([findings.into_list(), drivers].concat())
}

async fn check_locked_image(
    LockedImage { id, name }: &LockedImage,
    source: &ImageSource,
    clients: &Clients,
    findings: &mut SubjectFindings,
) -> Result<Option<Image>, AwsError> {
    let Some(image) = findings.take(clients.image(id).await)? else { return Ok(None) };
    if let Some(Err(doubt)) = image.as_ref().map(|image| source.check(image, name)) {
        refuse_doubtful(&doubt, findings);
    }
    if image.is_none() {
        findings.refuse(
            format!("the image {id}, which infra.lock names, no longer exists"),
            "Flatcar deletes images after about nine months, and no machine can start from a deleted one",
            IMAGE_FIX,
        );
    }
    Ok(image)
}

async fn check_newest_image(
    preflight: &Preflight<'_>,
    source: &ImageSource,
    clients: &Clients,
    findings: &mut SubjectFindings,
) -> Result<Option<Image>, AwsError> {
    let (owner, pattern) = (&source.owner, source.name_pattern());
    let found = findings.take(clients.newest_image(owner, &pattern).await)?;
    let Some(image) = found else { return Ok(None) };
    if image.is_none() {
        let region = &preflight.blueprint.cluster.region;
        findings.refuse(
            format!("there is no image {pattern} of account {owner} in {region}"),
            "machines start from an image of their own region",
            "use another channel or region; copies of Flatcar's images in an account of yours are found with os.imageOwner",
        );
    }
    Ok(image)
}

fn refuse_doubtful(doubt: &ImageDoubt, findings: &mut SubjectFindings) {
    findings.refuse(doubt.to_string(), doubt.why(), doubt.fix());
}

fn check_image(image: &Image, findings: &mut SubjectFindings) {
    let Image { id, name, state, architecture, root_device, .. } = image;
    if state != "available" {
        findings.refuse(
            format!("the image {id} ({name}) is {state}"),
            "machines start only from an image that is available",
            IMAGE_FIX,
        );
    }
    if architecture != "x86_64" {
        findings.refuse(
            format!("the image {id} ({name}) is for {architecture}"),
            "every machine of a cluster is x86_64",
            "put an image for x86_64 into infra.lock, or run `infra up --upgrade-os`",
        );
    }
    if root_device != ROOT_DEVICE {
        findings.refuse(
            format!("the root disk of image {id} ({name}) is {root_device}"),
            format!(
                "disks are sized and encrypted as {ROOT_DEVICE}: machines would get a second disk instead"
            ),
            "put an image of Flatcar into infra.lock, or run `infra up --upgrade-os`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::SubjectFindings;
    use super::check_image;
    use crate::aws::Image;

    #[test]
    fn an_image_must_fit_the_launch_templates() {
        let mut image = Image {
            id: "ami-1".to_owned(),
            name: "Flatcar-stable-4593.2.5-hvm".to_owned(),
            owner: "075585003325".to_owned(),
            created: None,
            deprecated: None,
            root_device: "/dev/xvda".to_owned(),
            smallest_gib: None,
            architecture: "x86_64".to_owned(),
            state: "available".to_owned(),
        };
        let count = |image: &Image| {
            let mut findings = SubjectFindings::about("image");
            check_image(image, &mut findings);
            findings.into_list().len()
        };
        assert_eq!(count(&image), 0);
        image.root_device = "/dev/sda1".to_owned();
        image.architecture = "arm64".to_owned();
        image.state = "disabled".to_owned();
        assert_eq!(count(&image), 3);
    }
}
