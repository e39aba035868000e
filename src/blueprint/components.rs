//! Every image and file that nodes download, from the mirrors of cluster.yaml where there are any.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::Cluster;
use crate::config::gpu::runtime_extension;
use crate::config::kubernetes_release::{Download, downloads_of, release_of};
use crate::config::values::KubernetesVersion;
use crate::document::Fault;

/// The images of Kubernetes itself: their tag is the version of Kubernetes.
const KUBERNETES_IMAGES: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];

/// What nodes download.
#[derive(Clone, Debug)]
pub struct Components {
    /// Container images, by their names in templates.
    pub images: BTreeMap<String, String>,
    /// The kubelet.
    pub kubelet: Download,
    /// kubectl.
    pub kubectl: Download,
    /// The archive of the CNI plugins.
    pub cni_plugins: Download,
    /// The kubelet's credential provider for ECR.
    pub ecr_credential_provider: Download,
    /// NVIDIA's container runtime.
    pub nvidia_runtime: NvidiaRuntime,
}

/// NVIDIA's container runtime as a system extension.
#[derive(Clone, Debug, Serialize)]
pub struct NvidiaRuntime {
    /// The file name.
    pub file: String,
    /// The address of the extension.
    pub url: String,
    /// The address of the list of its hashes.
    pub sums_url: String,
}

impl Components {
    pub(super) fn new(cluster: &Cluster) -> Result<Self, Fault> {
        let version = cluster.kubernetes.version;
        let (release, downloads) = (release_of(version)?, downloads_of(version)?);
        let mirrored = |download: &Download| Download {
            url: mirror_url(&download.url, cluster),
            sha256: download.sha256.clone(),
        };
        let binary = |name: &str, sha256: &str| {
            let url = format!("https://dl.k8s.io/release/{version}/bin/linux/amd64/{name}");
            Download { url: mirror_url(&url, cluster), sha256: sha256.to_owned() }
        };
        let extension = runtime_extension();
        Ok(Self {
            images: image_references(&release.images, version, cluster),
            kubelet: binary("kubelet", &downloads.kubelet),
            kubectl: binary("kubectl", &downloads.kubectl),
            cni_plugins: mirrored(&release.cni_plugins),
            ecr_credential_provider: mirrored(&release.ecr_credential_provider),
            nvidia_runtime: NvidiaRuntime {
                file: extension.file.clone(),
                url: mirror_url(&extension.url, cluster),
                sums_url: mirror_url(&extension.sums_url, cluster),
            },
        })
    }
}

/// Every container image, by its name in templates.
fn image_references(
    images: &BTreeMap<String, String>,
    version: KubernetesVersion,
    cluster: &Cluster,
) -> BTreeMap<String, String> {
    let own = KUBERNETES_IMAGES.into_iter().map(|name| {
        let reference = format!("registry.k8s.io/{name}:{version}");
        (name.replace('-', "_"), mirror_image(&reference, cluster))
    });
    let others = images.iter().map(|(name, reference)| (name.clone(), mirror_image(reference, cluster)));
    own.chain(others).collect()
}

/// A URL at the mirror of its host, if there is one.
fn mirror_url(url: &str, cluster: &Cluster) -> String {
    let rest = url.trim_start_matches("https://");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mirror = cluster.mirrors.iter().find(|(mirrored, _)| mirrored.as_str() == host);
    mirror.map_or_else(|| url.to_owned(), |(_, base)| format!("{base}/{path}"))
}

/// An image at the mirror of its registry, if there is one.
pub(super) fn mirror_image(reference: &str, cluster: &Cluster) -> String {
    mirror_url(&format!("https://{reference}"), cluster).trim_start_matches("https://").to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::Components;

    #[test]
    fn mirrors_stand_in_for_hosts_and_hashes_stay() -> Result<(), Box<dyn std::error::Error>> {
        let plain = Components::new(&cluster("")?)?;
        assert_eq!(plain.images["kube_proxy"], "registry.k8s.io/kube-proxy:v1.36.3");
        assert_eq!(plain.kubelet.url, "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet");
        let mirrors = ", mirrors: {registry.k8s.io: 'https://m.example.com:8443/k8s/', dl.k8s.io: 'https://m.example.com'}";
        let mirrored = Components::new(&cluster(mirrors)?)?;
        assert_eq!(mirrored.images["etcd"], "m.example.com:8443/k8s/etcd:3.6.8-0");
        assert_eq!(mirrored.images["flannel"], plain.images["flannel"]);
        assert_eq!(mirrored.kubelet.url, "https://m.example.com/release/v1.36.3/bin/linux/amd64/kubelet");
        assert_eq!(mirrored.kubelet.sha256, plain.kubelet.sha256);
        Ok(())
    }
}
