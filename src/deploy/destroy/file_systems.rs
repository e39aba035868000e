//! A cluster's file systems, and which of them a destroy may delete: a tag says who created one, not who uses it now.

use std::collections::BTreeSet;

use serde_json::Value;

use super::stack_contents::{ClusterVpc, StackContents};
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, MountTarget};
use crate::blueprint::StackPart;
use crate::deploy::state::live::LiveCluster;

/// A file system, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// The id of the file system.
    pub id: String,
    /// Whose it is.
    pub ownership: Ownership,
}

/// Whose a file system is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// A cluster of this name created it, and no one else uses it.
    Created,
    /// The file system existed before the cluster.
    Adopted,
    /// A cluster of this name created it, and someone else mounts it: where, in words.
    InUse(String),
}

impl FileSystem {
    /// Whether it is deleted with the cluster's data.
    #[must_use]
    pub(crate) fn is_own(&self) -> bool {
        self.ownership == Ownership::Created
    }

    /// Reads the file system in use, and those that earlier clusters of the name left.
    pub(crate) async fn read_all(
        clients: &Clients,
        target: &DestroyTarget,
        live: &LiveCluster,
        stacks: &StackContents,
        vpc: Option<&ClusterVpc>,
    ) -> Result<Vec<Self>, AwsError> {
        let mut created = stacks.file_systems.clone();
        let output = live.outputs().remove("FileSystemId");
        let mut adopted: BTreeSet<String> = output.into_iter().filter(|id| !created.contains(id)).collect();
        let tagged = clients.file_systems_of_cluster(target.name.as_str()).await?.into_iter();
        let mut tagged: Vec<String> = tagged
            .map(|system| system.id)
            .filter(|id| !created.contains(id) && !adopted.contains(id))
            .collect();
        if !tagged.is_empty() {
            let mut remembered = adopted_earlier(clients, target, live).await?;
            remembered.extend(target.adopted_file_system().map(str::to_owned));
            adopted.extend(tagged.extract_if(.., |id| remembered.contains(id)));
        }
        created.extend(tagged);
        let mut all: Vec<Self> =
            adopted.into_iter().map(|id| Self { id, ownership: Ownership::Adopted }).collect();
        for id in created {
            let foreign = foreign_mounts(clients, stacks, vpc, &id).await?;
            let ownership = match foreign.first() {
                Some(mount) => Ownership::InUse(location_of(mount)),
                None => Ownership::Created,
            };
            all.push(Self { id, ownership });
        }
        Ok(all)
    }
}

/// Where a mount target is, in words.
pub(crate) fn location_of(mount: &MountTarget) -> String {
    match &mount.vpc {
        Some(vpc) => format!("{} of {vpc}", mount.subnet),
        None => mount.subnet.clone(),
    }
}

/// The mount targets of a file system that are not being deleted.
pub(crate) async fn live_mounts(clients: &Clients, id: &str) -> Result<Vec<MountTarget>, AwsError> {
    let mut mounts = match clients.mount_targets(id).await {
        Err(error) if error.is_missing_file_system() => Vec::new(),
        mounts => mounts?,
    };
    mounts.retain(|mount| !matches!(mount.state.as_str(), "deleting" | "deleted"));
    Ok(mounts)
}

/// The mount targets that no stack of the cluster created and that are not in a VPC which is deleted with it.
async fn foreign_mounts(
    clients: &Clients,
    stacks: &StackContents,
    vpc: Option<&ClusterVpc>,
    id: &str,
) -> Result<Vec<MountTarget>, AwsError> {
    let is_deleted = |id: &str| vpc.is_some_and(|vpc| !vpc.is_adopted && vpc.id == id);
    let mut mounts = live_mounts(clients, id).await?;
    mounts.retain(|mount| {
        !stacks.contains(&mount.id)
            && !stacks.contains(&mount.subnet)
            && !mount.vpc.as_deref().is_some_and(is_deleted)
    });
    Ok(mounts)
}

/// The file systems that storage stacks of this name have adopted, also stacks that are deleted: neither the tag nor a lost cluster.yaml
/// says which file system existed before a cluster.
async fn adopted_earlier(
    clients: &Clients,
    target: &DestroyTarget,
    live: &LiveCluster,
) -> Result<BTreeSet<String>, AwsError> {
    let mut stacks = target.deleted_stacks(clients, &StackPart::Storage).await?;
    stacks.extend(live.stacks.get(&StackPart::Storage).map(|live| live.stack.clone()));
    let mut adopted = BTreeSet::new();
    for stack in stacks {
        let text = match clients.stack_template(&stack.arn).await {
            // A stack that was only planned has no template.
            Err(error) if error.is_missing_stack() => continue,
            text => text?,
        };
        let template: Value = serde_json::from_str(&text).unwrap_or_default();
        if template["Resources"].get("FileSystem").is_none() {
            let written = template["Outputs"]["FileSystemId"]["Value"].as_str().map(str::to_owned);
            adopted.extend(written.or_else(|| stack.outputs.get("FileSystemId").cloned()));
        }
    }
    Ok(adopted)
}
