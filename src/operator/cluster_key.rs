//! The KMS key that `infra init` creates for a cluster. It may be stopped after any call: the next run finds the key by its alias, or by
//! its tags where the alias is missing.

use std::collections::BTreeMap;

use crate::aws::{AwsError, Clients, Key};
use crate::config::values::{ClusterName, Region};
use crate::outcome::{Explain, Outcome};
use crate::well_known::{CLUSTER_TAG, KEPT_TAG, KEPT_VALUE};

/// Where the key of a cluster comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// The key is new.
    Created,
    /// An earlier run created the key, and this one finished it.
    Finished,
    /// An earlier run created the key.
    Found,
}

/// The key of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterKey {
    /// The ARN of the key.
    pub arn: String,
    /// The alias of the key.
    pub alias: String,
    /// Where the key comes from.
    pub origin: KeyOrigin,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterKeyError {
    #[error("{alias} is the alias of the KMS key {arn}, which `infra init` did not create for this cluster")]
    Foreign { alias: String, arn: String, region: String },
    #[error("{alias} is the alias of the KMS key {arn}, which is not enabled: {state}")]
    Unusable { alias: String, arn: String, region: String, state: String },
    #[error("the KMS key could not be created")]
    Create(#[source] AwsError),
    #[error("the KMS key {arn} was created, but is not ready")]
    Finish { arn: String, source: AwsError },
    #[error("the cluster's KMS key could not be searched for")]
    Search(#[source] AwsError),
}

impl Explain for ClusterKeyError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Foreign { alias, arn, region } => Some(format!(
                "to use that key, give `--kms-key-arn {arn}` instead of `--create-key`; for a new one delete the alias first: aws kms \
                 delete-alias --alias-name {alias} --region {region}"
            )),
            Self::Unusable { alias, arn, region, state } => {
                let enable = format!("aws kms enable-key --key-id {arn} --region {region}");
                let keep = match state.as_str() {
                    "PendingDeletion" => {
                        format!("aws kms cancel-key-deletion --key-id {arn} --region {region} and {enable}")
                    }
                    _ => enable,
                };
                Some(format!(
                    "to use that key: {keep}; for a new one delete the alias first: aws kms delete-alias --alias-name {alias} --region \
                     {region}"
                ))
            }
            Self::Create(source) | Self::Finish { source, .. } | Self::Search(source)
                if source.is_denied() =>
            {
                Some(format!(
                    "allow {}, or give a key with --kms-key-arn; the runbook `create a cluster` lists what --create-key must be allowed",
                    source.operation
                ))
            }
            Self::Create(source) | Self::Finish { source, .. }
                if source.outcome() != Outcome::Credentials =>
            {
                Some("run the same command again: it finds a key that was created".to_owned())
            }
            Self::Create(_) | Self::Finish { .. } | Self::Search(_) => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Foreign { .. } | Self::Unusable { .. } => Outcome::Failed,
            Self::Create(source) | Self::Finish { source, .. } | Self::Search(source) => source.outcome(),
        }
    }
}

/// Finds the key that was created for a cluster, or creates it.
pub(crate) async fn ensure_cluster_key(
    clients: &Clients,
    cluster: &ClusterName,
    region: &Region,
) -> Result<ClusterKey, ClusterKeyError> {
    let alias = format!("alias/infra-{cluster}");
    if let Some(key) = clients.key(&alias).await.map_err(ClusterKeyError::Search)? {
        return use_key_of_alias(clients, cluster, region, alias, key).await;
    }
    let (arn, origin) = match find_unfinished(clients, cluster).await.map_err(ClusterKeyError::Search)? {
        Some(arn) => (arn, KeyOrigin::Finished),
        None => {
            (create_cluster_key(clients, cluster).await.map_err(ClusterKeyError::Create)?, KeyOrigin::Created)
        }
    };
    match finish_cluster_key(clients, &arn, &alias).await {
        Ok(()) => Ok(ClusterKey { arn, alias, origin }),
        Err(source) => Err(ClusterKeyError::Finish { arn, source }),
    }
}

async fn use_key_of_alias(
    clients: &Clients,
    cluster: &ClusterName,
    region: &Region,
    alias: String,
    key: Key,
) -> Result<ClusterKey, ClusterKeyError> {
    let (arn, region) = (key.arn.clone(), region.to_string());
    if !is_of_cluster(&clients.key_tags(&arn).await.map_err(ClusterKeyError::Search)?, cluster) {
        return Err(ClusterKeyError::Foreign { alias, arn, region });
    }
    if !key.is_enabled() {
        return Err(ClusterKeyError::Unusable { alias, arn, region, state: key.state });
    }
    Ok(ClusterKey { arn, alias, origin: KeyOrigin::Found })
}

/// A key that a run created before it was stopped, without its alias. The tagging service would list it too late for a run that follows
/// at once.
async fn find_unfinished(clients: &Clients, cluster: &ClusterName) -> Result<Option<String>, AwsError> {
    for arn in clients.keys_without_alias().await? {
        let tags = match clients.key_tags(&arn).await {
            // The policy of a key of ours lets the caller read everything.
            Err(error) if error.is_denied() || error.is_missing_key() => continue,
            other => other?,
        };
        if is_of_cluster(&tags, cluster) && clients.key(&arn).await?.is_some_and(|key| key.is_enabled()) {
            return Ok(Some(arn));
        }
    }
    Ok(None)
}

async fn create_cluster_key(clients: &Clients, cluster: &ClusterName) -> Result<String, AwsError> {
    let description = format!("Protects uploads and the file system of the cluster {cluster}");
    let tags = [(CLUSTER_TAG, cluster.as_str()), (KEPT_TAG, KEPT_VALUE)];
    Ok(clients.create_key(&description, &tags).await?.arn)
}

/// The alias comes last: a key that has it is complete.
async fn finish_cluster_key(clients: &Clients, arn: &str, alias: &str) -> Result<(), AwsError> {
    clients.enable_key_rotation(arn).await?;
    clients.create_alias(alias, arn).await
}

fn is_of_cluster(tags: &BTreeMap<String, String>, cluster: &ClusterName) -> bool {
    tags.contains_key(KEPT_TAG) && tags.get(CLUSTER_TAG).is_some_and(|name| name == cluster.as_str())
}
