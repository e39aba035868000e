//! The administrator's kubeconfig: alone, as a file of the asset directory, or merged into another one.

use std::path::Path;

use super::Project;
use super::asset_directory::KUBECONFIG;
use super::error::ProjectError;
use crate::credentials::{CredentialStore, SecretText};
use crate::document::{ReadError, parse_untyped, read_text, write_yaml};
use crate::durable_file::{self, Access};
use crate::render::{ApiEndpoint, KubeconfigSource, RenderError, merge_kubeconfig, render_kubeconfig};

impl Project {
    /// How the API server is reached from outside.
    pub(crate) fn public_endpoint(&self) -> ApiEndpoint {
        ApiEndpoint::at(format!("https://{}", self.blueprint.cluster.external_dns_name))
    }

    /// How the API server is reached through its load balancer's own name, whether or not its public name resolves.
    pub(crate) fn direct_endpoint(&self, load_balancer: &str) -> ApiEndpoint {
        ApiEndpoint {
            server: format!("https://{load_balancer}"),
            tls_server_name: Some(self.blueprint.cluster.external_dns_name.to_string()),
        }
    }

    /// The administrator's kubeconfig.
    pub(crate) fn admin_kubeconfig(
        &self,
        store: &CredentialStore,
        endpoint: &ApiEndpoint,
    ) -> Result<SecretText, ProjectError> {
        self.with_kubeconfig_source(store, endpoint, |source| Ok(render_kubeconfig(source)))
    }

    /// Writes the kubeconfig of the asset directory unless it exists; returns whether it was written.
    pub(crate) fn write_kubeconfig(&self, store: &CredentialStore) -> Result<bool, ProjectError> {
        let text = self.admin_kubeconfig(store, &self.public_endpoint())?;
        Ok(self.directory.files.ensure_file(KUBECONFIG, text.expose().as_bytes(), Access::Private)?)
    }

    /// Merges the administrator's kubeconfig into the file at `path`; returns the context that kubectl uses then.
    pub(crate) fn merge_kubeconfig(
        &self,
        path: &Path,
        store: &CredentialStore,
        endpoint: &ApiEndpoint,
    ) -> Result<String, ProjectError> {
        let failed = |reason: RenderError| ProjectError::Kubeconfig { path: path.to_owned(), reason };
        let existing = match read_text(path) {
            Ok(text) => parse_untyped(path, &text)?,
            Err(ReadError::Missing { .. }) => serde_json::Value::Null,
            Err(error) => return Err(error.into()),
        };
        let merged = self.with_kubeconfig_source(store, endpoint, |source| {
            merge_kubeconfig(existing, source).map_err(failed)
        })?;
        let text = SecretText::new(write_yaml(merged.content())?);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(ProjectError::disk("create", parent))?;
        }
        durable_file::replace(path, text.expose().as_bytes(), Access::Private)?;
        Ok(merged.current_context().to_owned())
    }

    fn with_kubeconfig_source<T>(
        &self,
        store: &CredentialStore,
        endpoint: &ApiEndpoint,
        use_source: impl FnOnce(&KubeconfigSource<'_>) -> Result<T, ProjectError>,
    ) -> Result<T, ProjectError> {
        let missing = |file: &'static str| ProjectError::MissingCredential { file };
        let certificate_authority = store.read_certificate("ca")?.ok_or_else(|| missing("ca.pem"))?;
        let client_certificate = store.read_certificate("admin")?.ok_or_else(|| missing("admin.pem"))?;
        let client_key = store.read_key("admin")?.ok_or_else(|| missing("admin-key.pem"))?;
        let cluster = self.blueprint.cluster.name.as_str();
        use_source(&KubeconfigSource {
            cluster,
            user: &format!("{cluster}-admin"),
            namespace: None,
            endpoint,
            certificate_authority: &certificate_authority,
            client_certificate: &client_certificate,
            client_key: &client_key,
        })
    }
}
