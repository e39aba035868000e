//! A cluster's file systems, and which of them a destroy may take: a tag says who made one, not who uses it now.

use std::collections::BTreeSet;

use serde_json::Value;

use super::stack_contents::{ClusterVpc, StackContents};
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, MountTarget};
use crate::blueprint::StackPart;
use crate::deploy::state::live::LiveCluster;

/// A file system, and how it stands to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its id.
    pub id: String,
    /// How it stands to the cluster.
    pub standing: Standing,
}

/// How a file system stands to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A cluster of this name made it, and nobody else uses it.
    Made,
    /// It was there before the cluster.
    Adopted,
    /// A cluster of this name made it, and somebody else mounts it: in words, where.
    InUse(String),
}

impl FileSystem {
    /// Whether it goes with the cluster's data.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.standing == Standing::Made
    }

    /// Reads the file system in use, and those that earlier clusters of the name left.
    pub(crate) async fn read_all(
        clients: &Clients,
        target: &DestroyTarget,
        live: &LiveCluster,
        stacks: &StackContents,
        vpc: Option<&ClusterVpc>,
    ) -> Result<Vec<Self>, AwsError> {
        let mut made = stacks.file_systems.clone();
        let output = live.outputs().remove("FileSystemId");
        let mut adopted: BTreeSet<String> = output.into_iter().filter(|id| !made.contains(id)).collect();
        let tagged = clients.file_systems_of_cluster(target.name.as_str()).await?.into_iter();
        let mut tagged: Vec<String> =
            tagged.map(|system| system.id).filter(|id| !made.contains(id) && !adopted.contains(id)).collect();
        if !tagged.is_empty() {
            let mut remembered = adopted_earlier(clients, target, live).await?;
            remembered.extend(target.adopted_file_system().map(str::to_owned));
            adopted.extend(tagged.extract_if(.., |id| remembered.contains(id)));
        }
        made.extend(tagged);
        let mut all: Vec<Self> =
            adopted.into_iter().map(|id| Self { id, standing: Standing::Adopted }).collect();
        for id in made {
            let others = mounts_of_others(clients, stacks, vpc, &id).await?;
            let standing = match others.first() {
                Some(mount) => Standing::InUse(place_of(mount)),
                None => Standing::Made,
            };
            all.push(Self { id, standing });
        }
        Ok(all)
    }
}

/// Where a mount target stands, in words.
pub(crate) fn place_of(mount: &MountTarget) -> String {
    match &mount.vpc {
        Some(vpc) => format!("{} of {vpc}", mount.subnet),
        None => mount.subnet.clone(),
    }
}

/// The mount targets of a file system that are there and not about to go.
pub(crate) async fn live_mounts(clients: &Clients, id: &str) -> Result<Vec<MountTarget>, AwsError> {
    let mut mounts = match clients.mount_targets(id).await {
        Err(error) if error.is_missing_file_system() => Vec::new(),
        mounts => mounts?,
    };
    mounts.retain(|mount| !matches!(mount.state.as_str(), "deleting" | "deleted"));
    Ok(mounts)
}

/// The mount targets that neither a stack of the cluster made nor stand in a VPC that goes with it.
async fn mounts_of_others(
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

/// The file systems that storage stacks of this name have adopted, also stacks that are gone: what was there before a cluster outlives
/// it, and neither the tag nor a lost cluster.yaml tells.
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
            // One that was only planned has none.
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
