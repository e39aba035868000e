//! Secrets of a namespace that jobs use: variables, and logins to registries.
//!
//! Which keys a Secret has is kept in an annotation, so that nothing that lists Secrets ever receives a value.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::PeopleError;
use super::registry_login::RegistryLogin;
use super::secret_use::SecretUse;
use crate::credentials::SecretText;
use crate::job::values::EnvironmentName;
use crate::kube::{ApiServer, KubeError, ObjectName, SecretMetadata};
use crate::well_known::{HOLDS_ANNOTATION, MANAGER, MANAGER_LABEL, SECRET_LABEL};

/// The only key of a login to a registry.
const LOGIN_KEY: &str = ".dockerconfigjson";
/// How often a change is tried again that another process came before.
const ATTEMPTS: usize = 5;
const NOT_FOUND: u16 = 404;

/// What a Secret is to hold.
#[derive(Debug)]
pub(crate) enum SecretContent {
    /// Variables; others that the Secret holds stay.
    Variables(BTreeMap<EnvironmentName, SecretText>),
    /// The login to a registry, in the place of the one before.
    Registry(RegistryLogin),
}

impl SecretContent {
    fn used_as(&self) -> SecretUse {
        match self {
            Self::Variables(_) => SecretUse::Variables,
            Self::Registry(_) => SecretUse::Registry,
        }
    }

    /// What the Secret holds then.
    fn names(&self, before: &[String]) -> Vec<String> {
        match self {
            Self::Variables(variables) => {
                let mut names: Vec<String> = before.to_vec();
                names.extend(variables.keys().map(ToString::to_string));
                names.sort();
                names.dedup();
                names
            }
            Self::Registry(login) => vec![login.host.to_string()],
        }
    }
}

/// A Secret that infra created.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SecretReport {
    /// The name of the Secret.
    pub name: String,
    /// The namespace of the Secret.
    pub namespace: String,
    /// What the Secret is for.
    #[serde(rename = "use")]
    pub used_as: SecretUse,
    /// The names of its variables, or its registry; never a value.
    pub holds: Vec<String>,
    /// When it was created.
    pub created: String,
}

impl SecretReport {
    /// Nothing for a Secret that infra did not create.
    fn of(secret: &SecretMetadata) -> Option<Self> {
        let is_ours = secret.labels.get(MANAGER_LABEL).is_some_and(|manager| manager == MANAGER);
        let used_as = match secret.labels.get(SECRET_LABEL).map(String::as_str) {
            Some("variables") => SecretUse::Variables,
            Some("registry") => SecretUse::Registry,
            _ => return None,
        };
        let holds = secret.annotations.get(HOLDS_ANNOTATION).map(String::as_str).unwrap_or_default();
        is_ours.then(|| Self {
            name: secret.name.clone(),
            namespace: secret.namespace.clone(),
            used_as,
            holds: holds.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            created: secret.created.clone(),
        })
    }
}

/// What happened to a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretChange {
    /// There was none.
    Created,
    /// There was one, and it holds this too, or now.
    Changed,
}

/// Creates a Secret of infra's, or changes it.
pub(crate) async fn set_secret(
    api: &ApiServer,
    namespace: &str,
    name: &str,
    content: &SecretContent,
) -> Result<SecretChange, PeopleError> {
    let used_as = content.used_as();
    let login = match content {
        SecretContent::Variables(_) => None,
        SecretContent::Registry(login) => Some(login.document()),
    };
    let data: Vec<(&str, &SecretText)> = match content {
        SecretContent::Variables(variables) => {
            variables.iter().map(|(name, value)| (name.as_str(), value)).collect()
        }
        SecretContent::Registry(_) => login.iter().map(|login| (LOGIN_KEY, login)).collect(),
    };
    for _ in 0..ATTEMPTS {
        let found = api.secret(namespace, name).await?;
        let before = found.as_ref().map(|secret| own_secret(secret, Some(used_as))).transpose()?;
        let holds = content.names(before.as_ref().map(|report| report.holds.as_slice()).unwrap_or_default());
        let metadata = metadata_of(namespace, name, used_as, &holds);
        let (is_done, change) = match &found {
            None => {
                let created = api.create_secret(used_as.kubernetes_type(), &metadata, &data).await;
                (created.map_err(|error| without_namespace(error, namespace))?, SecretChange::Created)
            }
            Some(secret) => (api.change_secret(secret, &metadata, &data).await?, SecretChange::Changed),
        };
        if is_done {
            return Ok(change);
        }
    }
    Err(PeopleError::Contended { name: name.to_owned(), namespace: namespace.to_owned() })
}

/// Every Secret of a namespace that infra created.
pub(crate) async fn list_secrets(api: &ApiServer, namespace: &str) -> Result<Vec<SecretReport>, PeopleError> {
    let selector = format!("{MANAGER_LABEL}={MANAGER},{SECRET_LABEL}");
    let secrets = api.secrets(namespace, &selector).await?;
    Ok(secrets.iter().filter_map(SecretReport::of).collect())
}

/// A Secret that infra created, if there is one; one that someone else created is refused.
pub(crate) async fn find_secret(
    api: &ApiServer,
    namespace: &str,
    name: &str,
) -> Result<Option<SecretReport>, PeopleError> {
    api.secret(namespace, name).await?.map(|secret| own_secret(&secret, None)).transpose()
}

/// Deletes a Secret that was found before.
pub(crate) async fn delete_secret(api: &ApiServer, secret: &SecretReport) -> Result<(), PeopleError> {
    api.delete_object(&ObjectName::new("Secret", &secret.namespace, &secret.name)).await?;
    Ok(())
}

/// Refuses a Secret of others, and one that is for something else.
fn own_secret(secret: &SecretMetadata, wanted: Option<SecretUse>) -> Result<SecretReport, PeopleError> {
    let (name, namespace) = (secret.name.clone(), secret.namespace.clone());
    let Some(report) = SecretReport::of(secret) else {
        return Err(PeopleError::ForeignSecret { name, namespace });
    };
    match wanted {
        Some(wanted) if wanted != report.used_as => {
            Err(PeopleError::OtherUse { name, namespace, found: report.used_as })
        }
        _ => Ok(report),
    }
}

fn metadata_of(namespace: &str, name: &str, used_as: SecretUse, holds: &[String]) -> Value {
    json!({
        "name": name,
        "namespace": namespace,
        "labels": {MANAGER_LABEL: MANAGER, SECRET_LABEL: used_as.name()},
        "annotations": {HOLDS_ANNOTATION: holds.join(",")},
    })
}

/// Nothing else can be missing when something is created.
fn without_namespace(error: KubeError, namespace: &str) -> PeopleError {
    if error.status() == Some(NOT_FOUND) {
        PeopleError::NoNamespace { namespace: namespace.to_owned() }
    } else {
        error.into()
    }
}
