//! What the entries of a kubeconfig say, as far as infra reads it.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::error::KubeconfigError;
use super::server::{Server, parse_server};
use crate::credentials::SecretText;

/// A whole file.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    pub(super) current_context: Option<String>,
    pub(super) clusters: Option<Vec<ClusterEntry>>,
    pub(super) contexts: Option<Vec<ContextEntry>>,
    pub(super) users: Option<Vec<UserEntry>>,
}

#[derive(Deserialize)]
pub(super) struct ClusterEntry {
    pub(super) name: String,
    pub(super) cluster: ClusterSection,
}

#[derive(Deserialize)]
pub(super) struct ContextEntry {
    pub(super) name: String,
    pub(super) context: ContextSection,
}

#[derive(Deserialize)]
pub(super) struct UserEntry {
    pub(super) name: String,
    #[serde(default)]
    pub(super) user: Option<UserSection>,
}

/// Where a cluster is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct ClusterSection {
    server: Option<String>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) tls_server_name: Option<String>,
    insecure_skip_tls_verify: bool,
    proxy_url: Option<String>,
}

impl ClusterSection {
    /// Where the API server is. A server that is not verified, or behind a proxy, is refused.
    pub(super) fn server(&self, cluster: &str) -> Result<Server, KubeconfigError> {
        let refuse = |field, why| {
            Err(KubeconfigError::Unsupported { entry: format!("cluster '{cluster}'"), field, why })
        };
        if self.insecure_skip_tls_verify {
            return refuse(
                "insecure-skip-tls-verify",
                "infra sends keys and secrets only to a server that it can verify",
            );
        }
        if self.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
            return refuse("proxy-url", "infra connects directly; INFRA_API_SERVER=host:port names a tunnel");
        }
        parse_server(self.server.as_deref().unwrap_or_default(), cluster)
    }
}

/// Which cluster, as whom.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContextSection {
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
    pub(super) namespace: Option<String>,
}

/// Who a user is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct UserSection {
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<Secret>,
    pub(super) token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) username: Option<IgnoredAny>,
    pub(super) password: Option<IgnoredAny>,
    pub(super) exec: Option<ExecSection>,
    pub(super) auth_provider: Option<ProviderSection>,
    #[serde(rename = "as")]
    pub(super) impersonated: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ExecSection {
    pub(super) command: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ProviderSection {
    pub(super) name: String,
}

/// A text that is overwritten in memory when it is no longer needed.
pub(super) struct Secret(pub(super) SecretText);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(SecretText::new(text)))
    }
}
