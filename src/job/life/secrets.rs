//! Whether the Secrets that a job names are there: without one, its pods wait for ever.

use super::error::JobError;
use super::precondition::Precondition;
use crate::job::workload::Workload;
use crate::kube::{ApiServer, SecretType};

/// Finds every Secret that is missing, or for something else.
pub(super) async fn check_secrets(
    api: &ApiServer,
    workload: &Workload,
) -> Result<Vec<Precondition>, JobError> {
    let namespace = &workload.namespace;
    let mut found = Vec::new();
    for name in &workload.secrets {
        if api.secret(namespace, name).await?.is_none() {
            found.push(missing_secret(name, namespace, "KEY"));
        } else if api.has_secret_of_type(namespace, name, SecretType::Registry).await? {
            found.push(Precondition::Unmet(format!(
                "the secret '{name}' in namespace {namespace} is the login to a registry: name it in imagePullSecrets, not in secrets"
            )));
        }
    }
    for name in &workload.image_pull_secrets {
        if api.has_secret_of_type(namespace, name, SecretType::Registry).await? {
            continue;
        }
        found.push(if api.secret(namespace, name).await?.is_none() {
            missing_secret(name, namespace, "--registry HOST --username USER")
        } else {
            Precondition::Unmet(format!(
                "the secret '{name}' in namespace {namespace} is not the login to a registry: imagePullSecrets cannot use it"
            ))
        });
    }
    Ok(found)
}

fn missing_secret(name: &str, namespace: &str, what: &str) -> Precondition {
    Precondition::Unmet(format!(
        "there is no secret '{name}' in namespace {namespace} (`infra secret set {name} {what} --namespace {namespace}` creates it)"
    ))
}
