//! Hosts that nodes download from, and where a closed network keeps copies of them.

use std::fmt;
use std::str::FromStr;

use super::DnsName;
use crate::document::{Fault, nearest_word};
use crate::well_known::{KUBERNETES_DOWNLOADS, KUBERNETES_REGISTRY};

/// Every host a node fetches files or images from, with what comes from there.
const HOSTS: [(&str, &str); 10] = [
    ("artifacts.k8s.io", "the ECR credential provider"),
    ("docker.io", "the TensorBoard of jobs"),
    (KUBERNETES_DOWNLOADS, "kubelet and kubectl"),
    ("extensions.flatcar.org", "the NVIDIA container runtime"),
    ("ghcr.io", "flannel"),
    ("github.com", "CNI plugins"),
    ("nvcr.io", "NVIDIA's device plugin and DCGM exporter"),
    ("public.ecr.aws", "images on AWS's public registry"),
    ("quay.io", "Prometheus and its node exporter"),
    (KUBERNETES_REGISTRY, "Kubernetes images"),
];

/// A host that nodes download from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MirroredHost(&'static str);

impl MirroredHost {
    /// The host's name.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.0
    }
}

impl FromStr for MirroredHost {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let names = HOSTS.map(|(name, _)| name);
        if let Some(host) = names.into_iter().find(|name| *name == text) {
            return Ok(Self(host));
        }
        let help = match nearest_word(text, names) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("nodes download from {}", names.join(", ")),
        };
        Err(Fault::new(format!("nodes download nothing from '{text}'")).help(help))
    }
}

/// The base URL of a mirror, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorUrl(String);

impl MirrorUrl {
    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MirrorUrl {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refuse = |reason: &str| Err(Fault::new(format!("'{text}' cannot be a mirror: {reason}")));
        let Some(rest) = text.strip_prefix("https://") else {
            return refuse("its URL must begin with https://, because images are not checked by a hash");
        };
        let rest = rest.trim_end_matches('/');
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
        let good_host = host.parse::<DnsName>().is_ok() || host.parse::<std::net::Ipv4Addr>().is_ok();
        if !good_host || port.parse::<u16>().is_err() {
            return refuse("the part after https:// is not a host, or a host and a port");
        }
        if let Some(bad) = path.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_.~/".contains(*c))) {
            return refuse(&format!("its path has a {bad:?} in it"));
        }
        Ok(Self(format!("https://{rest}")))
    }
}

impl fmt::Display for MirrorUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
