//! Who a user is: a client certificate, a token, or both.

use super::entries::FoundEntry;
use super::error::KubeconfigError;
use super::sections::UserSection;
use crate::credentials::SecretText;
use crate::kube::ClientCertificate;

/// The client certificate of a user, if there is one.
pub(super) fn certificate_of(
    user: &FoundEntry<'_, UserSection>,
) -> Result<Option<ClientCertificate>, KubeconfigError> {
    let section = user.section;
    let (data, file) = (&section.client_certificate_data, &section.client_certificate);
    let chain = user.public_text("client-certificate", data.as_deref(), file.as_deref())?;
    let (data, file) = (&section.client_key_data, &section.client_key);
    let key = user.secret_text("client-key", data.as_ref().map(|data| &data.0), file.as_deref())?;
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(ClientCertificate { chain, key })),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(KubeconfigError::HalfCertificate { user: user.name.clone(), missing: "client-key" })
        }
        (None, Some(_)) => {
            Err(KubeconfigError::HalfCertificate { user: user.name.clone(), missing: "client-certificate" })
        }
    }
}

/// The token of a user, if there is one. What would need another program, or is something else than it seems, is refused.
pub(super) fn token_of(user: &FoundEntry<'_, UserSection>) -> Result<Option<SecretText>, KubeconfigError> {
    let section = user.section;
    let plugin =
        |what, name: &String| KubeconfigError::Plugin { user: user.name.clone(), what, name: name.clone() };
    if let Some(exec) = &section.exec {
        return Err(plugin("exec plug-in", &exec.command));
    }
    if let Some(provider) = &section.auth_provider {
        return Err(plugin("auth provider", &provider.name));
    }
    let refuse =
        |field, why| Err(KubeconfigError::Unsupported { entry: format!("user '{}'", user.name), field, why });
    if section.username.is_some() || section.password.is_some() {
        return refuse("username", "Kubernetes no longer accepts passwords");
    }
    if section.impersonated.is_some() {
        return refuse("as", "infra does not act for other users");
    }
    let data = section.token.as_ref().map(|token| &token.0);
    user.token_text(data, section.token_file.as_deref())
}
