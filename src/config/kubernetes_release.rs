//! The Kubernetes versions that can be installed: those whose downloads have known hashes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use time::Date;

use super::values::KubernetesVersion;
use crate::document::{Fault, parse_embedded_table};

time::serde::format_description!(calendar_day, Date, "[year]-[month]-[day]");

static RELEASES: LazyLock<Vec<Release>> = LazyLock::new(|| {
    [include_str!("kubernetes_releases/1.35.yaml"), include_str!("kubernetes_releases/1.36.yaml")]
        .map(parse_embedded_table)
        .into()
});

/// One minor version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// The major and minor version.
    pub minor: String,
    /// When it came out.
    #[serde(with = "calendar_day")]
    pub released: Date,
    /// The last day on which the version is supported upstream.
    #[serde(with = "calendar_day")]
    pub end_of_life: Date,
    /// The versions that can be installed.
    pub versions: Vec<Downloads>,
    /// The container images that go with it, besides Kubernetes' own, by the name that templates call them.
    pub images: BTreeMap<String, String>,
    /// The SHA-256 of the manifests of those images, where it is known.
    pub digests: BTreeMap<String, String>,
    /// The archive of CNI plugins.
    pub cni_plugins: Download,
    /// The kubelet's helper for ECR.
    pub ecr_credential_provider: Download,
}

/// A file that nodes download, and what it must be.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// Where it is.
    pub url: String,
    /// The SHA-256 of the file.
    pub sha256: String,
}

/// The SHA-256 of what a node downloads of one version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Downloads {
    /// The version.
    pub version: String,
    /// The kubelet's hash.
    pub kubelet: String,
    /// kubectl's hash.
    pub kubectl: String,
    /// The SHA-256 of the manifests of Kubernetes' own images, by the name that templates call them.
    pub images: BTreeMap<String, String>,
}

/// The release that a version belongs to, if the version can be installed.
pub fn release_of(version: KubernetesVersion) -> Result<&'static Release, Fault> {
    let text = version.to_string();
    let holds = |release: &&Release| release.versions.iter().any(|downloads| downloads.version == text);
    RELEASES.iter().find(holds).ok_or_else(|| unsupported_version(&text))
}

/// The hashes of one version's own files.
pub fn downloads_of(version: KubernetesVersion) -> Result<&'static Downloads, Fault> {
    let text = version.to_string();
    let found = release_of(version)?.versions.iter().find(|downloads| downloads.version == text);
    found.ok_or_else(|| unsupported_version(&text))
}

fn unsupported_version(text: &str) -> Fault {
    let versions =
        RELEASES.iter().flat_map(|release| &release.versions).map(|downloads| downloads.version.as_str());
    Fault::new(format!("Kubernetes {text} is not supported: the hashes of its downloads are not known"))
        .help(format!("supported: {}", versions.collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{RELEASES, downloads_of, release_of};
    use crate::document::Fault;

    /// Images whose digest is not known; docs/decisions.md says why.
    const PULLED_BY_TAG: [&str; 3] = ["efa_device_plugin", "flannel", "flannel_cni_plugin"];

    fn is_sha256(text: &str) -> bool {
        text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    #[test]
    fn every_version_of_the_table_has_its_hashes_and_is_listed_under_its_minor() -> Result<(), Fault> {
        for release in RELEASES.iter() {
            assert!(release.released < release.end_of_life);
            for file in [&release.cni_plugins, &release.ecr_credential_provider] {
                assert!(file.url.starts_with("https://") && file.sha256.len() == 64, "{file:?}");
            }
            // A template that names an image finds it in every version.
            assert_eq!(
                release.images.keys().collect::<Vec<_>>(),
                RELEASES[0].images.keys().collect::<Vec<_>>(),
                "{}",
                release.minor
            );
            for downloads in &release.versions {
                for hash in
                    [&downloads.kubelet, &downloads.kubectl].into_iter().chain(downloads.images.values())
                {
                    assert!(is_sha256(hash), "{}", downloads.version);
                }
                assert_eq!(downloads.images.len(), 4, "{}", downloads.version);
                assert_eq!(downloads_of(downloads.version.parse()?)?.version, downloads.version);
                assert!(downloads.version.starts_with(&format!("v{}.", release.minor)));
                assert_eq!(release_of(downloads.version.parse()?)?.minor, release.minor);
            }
        }
        Ok(())
    }

    #[test]
    fn every_image_has_a_digest_but_those_that_are_named() {
        for release in RELEASES.iter() {
            for name in release.images.keys() {
                let digest = release.digests.get(name);
                assert_eq!(digest.is_none(), PULLED_BY_TAG.contains(&name.as_str()), "{name}");
                assert!(digest.is_none_or(|digest| is_sha256(digest)), "{name}");
            }
            assert_eq!(release.digests.len() + PULLED_BY_TAG.len(), release.images.len());
        }
    }
}
