//! Every image and file that nodes download, from the mirrors of cluster.yaml where there are any.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::Cluster;
use crate::config::gpu::nvidia_runtime_extension;
use crate::config::kubernetes_release::{Download, Downloads, Release, downloads_of, release_of};
use crate::document::Fault;
use crate::well_known::{KUBERNETES_DOWNLOADS, KUBERNETES_REGISTRY};

/// The images of Kubernetes itself: their tag is the version of Kubernetes.
const KUBERNETES_IMAGES: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];

/// The image of the container that holds a pod's namespaces.
const SANDBOX_IMAGE: &str = "pause";

/// What nodes download.
#[derive(Clone, Debug)]
pub struct Components {
    /// Container images, by their names in templates, with the digests that are known.
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
            let url = format!("https://{KUBERNETES_DOWNLOADS}/release/{version}/bin/linux/amd64/{name}");
            Download { url: mirror_url(&url, cluster), sha256: sha256.to_owned() }
        };
        let extension = nvidia_runtime_extension();
        Ok(Self {
            images: image_references(release, downloads, cluster),
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
fn image_references(release: &Release, downloads: &Downloads, cluster: &Cluster) -> BTreeMap<String, String> {
    let own = KUBERNETES_IMAGES.into_iter().map(|name| {
        let reference = format!("{KUBERNETES_REGISTRY}/{name}:{}", downloads.version);
        (name.replace('-', "_"), reference)
    });
    let others = release.images.iter().map(|(name, reference)| (name.clone(), reference.clone()));
    let pinned = |(name, reference): (String, String)| {
        let digest = release.digests.get(&name).or_else(|| downloads.images.get(&name));
        let reference = match digest {
            // containerd never deletes the sandbox's image, which it recognises by its exact name: that of a digest has no tag.
            Some(digest) if name == SANDBOX_IMAGE => format!("{}@sha256:{digest}", without_tag(&reference)),
            Some(digest) => format!("{reference}@sha256:{digest}"),
            None => reference,
        };
        (name, mirror_image(&reference, cluster))
    };
    own.chain(others).map(pinned).collect()
}

fn without_tag(reference: &str) -> &str {
    reference.rsplit_once(':').map_or(reference, |(name, _)| name)
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
    fn mirrors_replace_hosts_and_hashes_stay() -> Result<(), Box<dyn std::error::Error>> {
        let plain = Components::new(&cluster("")?)?;
        let proxy = "registry.k8s.io/kube-proxy:v1.36.3@sha256:919d710a0e8bf2bd67d347e512e88205cb82a53a48ab6ff380d014406300ad1b";
        assert_eq!(plain.images["kube_proxy"], proxy);
        assert_eq!(plain.kubelet.url, "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet");
        let mirrors = ", mirrors: {registry.k8s.io: 'https://m.example.com:8443/k8s/', dl.k8s.io: 'https://m.example.com'}";
        let mirrored = Components::new(&cluster(mirrors)?)?;
        let etcd = "m.example.com:8443/k8s/etcd:3.6.8-0@sha256:397189418d1a00e500c0605ad18d1baf3b541a1004d768448c367e48071622e5";
        assert_eq!(mirrored.images["etcd"], etcd);
        let pause = "m.example.com:8443/k8s/pause@sha256:f548e0e8e3dc1896ca956272154dde3314e8cc4fde0a57577ee9fa1c63f5baf4";
        assert_eq!(mirrored.images["pause"], pause);
        assert_eq!(mirrored.images["flannel"], plain.images["flannel"]);
        assert_eq!(mirrored.kubelet.url, "https://m.example.com/release/v1.36.3/bin/linux/amd64/kubelet");
        assert_eq!(mirrored.kubelet.sha256, plain.kubelet.sha256);
        Ok(())
    }
}
