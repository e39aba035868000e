//! The CUDA release that an image is built on, as far as its name says so, and whether the drivers of pools run it.

use super::values::ImageReference;
use crate::config::Pool;
use crate::config::values::oldest_branch_for_cuda;
use crate::document::{At, Fault, Problems};

/// Images that bring NVIDIA's package cuda-compat, and with it run on older drivers: NVIDIA's own (cuda-compat is in the base image of
/// gitlab.com/nvidia/container-images/cuda, and those on nvcr.io build on it).
const WITH_COMPATIBILITY: [&str; 3] = ["nvcr.io/nvidia/", "nvidia/cuda", "docker.io/nvidia/cuda"];

/// A release of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CudaVersion {
    major: u16,
    minor: Option<u16>,
}

impl std::fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.minor {
            Some(minor) => write!(formatter, "{}.{minor}", self.major),
            None => write!(formatter, "{}", self.major),
        }
    }
}

/// Warns of an image that needs a newer driver than a pool has. Only the release counts: a driver runs every minor version of it.
pub(super) fn check_cuda(image: &At<ImageReference>, pools: &[&Pool], problems: &mut Problems) {
    let Some(version) = cuda_version(&image.value) else { return };
    let Some(oldest) = oldest_branch_for_cuda(version.major) else { return };
    for pool in pools {
        let Some(driver) = pool.gpus.as_ref().map(|gpus| gpus.driver) else { continue };
        let Some(newest) = driver.newest_cuda().filter(|_| driver.branch < oldest) else { continue };
        let fault = Fault::new(format!(
            "the image is built on CUDA {version}, but driver {driver} of pool {} runs CUDA {newest} at most",
            pool.name
        ));
        problems.warn(
            image.position,
            fault.help(format!(
                "use an image for CUDA {newest}, or one with NVIDIA's package cuda-compat; CUDA {} needs driver {oldest} or newer \
                 (nvidiaDriver of the pool)",
                version.major
            )),
        );
    }
}

/// The release that the name of an image says it is built on; none if it says nothing, or two different ones.
fn cuda_version(image: &ImageReference) -> Option<CudaVersion> {
    let text = image.as_str();
    if WITH_COMPATIBILITY.iter().any(|name| text.starts_with(name)) {
        return None;
    }
    let name = text.split('@').next().unwrap_or(text);
    let last = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let words: Vec<&str> = last.split(['-', '_', ':']).collect();
    let mut found: Option<CudaVersion> = None;
    for (number, word) in words.iter().enumerate() {
        let next = words.get(number + 1).copied().unwrap_or_default();
        let Some(version) = version_of_word(word, next) else { continue };
        if found.is_some_and(|earlier| earlier.major != version.major) {
            return None;
        }
        found = found.filter(|earlier| earlier.minor.is_some()).or(Some(version));
    }
    found
}

/// `cuda13.0`, `cuda13`, `cu130`, `cu13`, or `cuda` before `13.0`.
fn version_of_word(word: &str, next: &str) -> Option<CudaVersion> {
    let digits = match word.strip_prefix("cuda").or_else(|| word.strip_prefix("cu"))? {
        "" if word == "cuda" && next.contains('.') => next,
        digits => digits,
    };
    let number = |text: &str| -> Option<u16> {
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let version = match digits.split_once('.') {
        Some((major, rest)) => {
            let minor = rest.split('.').next().unwrap_or_default();
            CudaVersion { major: number(major)?, minor: Some(number(minor)?) }
        }
        // As in cu130, which is 13.0.
        None if digits.len() == 3 => {
            let both = number(digits)?;
            CudaVersion { major: both / 10, minor: Some(both % 10) }
        }
        None => CudaVersion { major: number(digits)?, minor: None },
    };
    (10..30).contains(&version.major).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::cuda_version;
    use crate::document::Fault;

    fn version(image: &str) -> Result<Option<String>, Fault> {
        Ok(cuda_version(&image.parse()?).map(|version| version.to_string()))
    }

    #[test]
    fn names_of_images_say_which_cuda_they_are_built_on() -> Result<(), Fault> {
        for (image, expected) in [
            ("pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime", "13.0"),
            ("pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime", "12.8"),
            ("vllm/vllm-openai:v0.11.0-cu130", "13.0"),
            (
                "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.9.0-gpu-py312-cu130-ubuntu22.04-ec2",
                "13.0",
            ),
            ("registry.example.com/team/train-cuda13:latest", "13"),
            ("registry.example.com:5000/team/train:CUDA-13.1", "13.1"),
            ("train:cuda13-cu130", "13.0"),
            ("train:cu13", "13"),
            ("train:cuda_12.9.1_x", "12.9"),
        ] {
            assert_eq!(version(image)?.as_deref(), Some(expected), "{image}");
        }
        Ok(())
    }

    #[test]
    fn where_a_name_says_nothing_certain_nothing_is_read_from_it() -> Result<(), Fault> {
        let digest = format!("train@sha256:{}", "13".repeat(32));
        for image in [
            "pytorch/pytorch:2.7.1",
            "tensorflow/tensorflow:2.16.1-gpu",
            "train:13.0",
            "train:0.13.0-cudnn13",
            "train:cuda",
            "train:cuda-13",
            "train:cube130",
            "train:cu92",
            "train:cu1301",
            "train:cuda12.8-or-cuda13.0",
            "cuda13.example.com/team/train:1",
            // They bring cuda-compat.
            "nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04",
            "nvcr.io/nvidia/pytorch:25.10-py3-cuda13.0",
            &digest,
        ] {
            assert_eq!(version(image)?, None, "{image}");
        }
        Ok(())
    }
}
