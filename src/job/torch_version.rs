//! The version of PyTorch in an image, where its name contains it, and the grace period that torchrun of that version gives.

use super::values::ImageReference;
use crate::document::{At, Fault, Problems};

/// The first version of PyTorch whose torchrun takes the grace period from an option.
const WITH_SHUTDOWN_TIME: (u16, u16) = (2, 12);
/// How long an older torchrun waits before it kills its processes.
const FIXED_SECONDS: u64 = 30;
/// Images whose tags begin with the version of PyTorch: its own, and those of AWS. Others of a similar name count by themselves.
const OF_PYTORCH: [&str; 3] = ["pytorch", "pytorch-training", "pytorch-inference"];
/// NVIDIA's images, whose tags are a year and a month.
const DATED_IMAGES: &str = "nvcr.io/nvidia/";

/// Warns of a grace period, also the default one, that torchrun of this image cuts short.
pub(super) fn check_shutdown_time(image: &ImageReference, grace: &At<u64>, problems: &mut Problems) {
    let Some((major, minor)) = torch_version(image).filter(|version| *version < WITH_SHUTDOWN_TIME) else {
        return;
    };
    if grace.value <= FIXED_SECONDS {
        return;
    }
    let fault = Fault::new(format!(
        "grace is {}s, but torchrun of PyTorch {major}.{minor} kills its processes after {FIXED_SECONDS}s",
        grace.value
    ));
    let (major, minor) = WITH_SHUTDOWN_TIME;
    let help = format!(
        "save within {FIXED_SECONDS}s and write grace: {FIXED_SECONDS}s, or use an image with PyTorch {major}.{minor} or newer"
    );
    problems.warn(grace.position, fault.help(help));
}

/// The version in the tag of an image: behind `torch`, as in `pytorch_lightning:2.5.0-py3.12-torch2.5`, or that of the tag of an image of
/// PyTorch itself, as in `pytorch/pytorch:2.7.1-cuda12.8`.
fn torch_version(image: &ImageReference) -> Option<(u16, u16)> {
    let text = image.as_str();
    let name = text.split('@').next().unwrap_or(text);
    let (repository, tag) = name.rsplit('/').next()?.split_once(':')?;
    let mut words = tag.split(['-', '_']);
    let named = words.clone().find_map(|word| two_numbers(word.strip_prefix("torch")?));
    if named.is_some() || text.starts_with(DATED_IMAGES) || !OF_PYTORCH.contains(&repository) {
        return named;
    }
    two_numbers(words.next()?)
}

fn two_numbers(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::torch_version;
    use crate::document::Fault;

    #[test]
    fn tags_of_pytorch_say_its_version() -> Result<(), Fault> {
        for (image, version) in [
            ("pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime", Some((2, 7))),
            ("docker.io/pytorch/pytorch:2.15.0", Some((2, 15))),
            ("763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.6.0-gpu-py312", Some((2, 6))),
            ("nvcr.io/nvidia/pytorch:25.10-py3", None),
            ("registry.example.com:5000/train:1.2", None),
            ("pytorch/pytorch", None),
            ("pytorch/pytorch:nightly", None),
            ("pytorchlightning/pytorch_lightning:2.5.0-py3.12-torch2.4-cuda12.1", Some((2, 4))),
            ("pytorchlightning/pytorch_lightning:base-cuda-py3.10-torch2.2-cuda12.1", Some((2, 2))),
            ("pytorchlightning/pytorch_lightning:2.5.0", None),
            ("registry.example.com/pytorch-models:1.4", None),
            ("rayproject/ray-ml:2.9.0-torch", None),
        ] {
            assert_eq!(torch_version(&image.parse()?), version, "{image}");
        }
        Ok(())
    }
}
