//! What the stacks of a cluster hold, and the VPC that the cluster is in.

use std::collections::BTreeSet;

use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, ResourceStatus};
use crate::blueprint::StackPart;
use crate::deploy::state::live::LiveCluster;

/// The resources of a cluster's stacks.
#[derive(Clone, Debug)]
pub(crate) struct StackContents {
    /// The physical ids of all resources.
    pub(crate) resources: BTreeSet<String>,
    /// The file systems that a live stack created.
    pub(crate) file_systems: Vec<String>,
    /// The volumes of etcd members, also of stacks that are deleted.
    pub(crate) volumes: Vec<String>,
}

impl StackContents {
    /// Reads the resources of every live stack, and the volumes of those that were deleted.
    pub(crate) async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        live: &LiveCluster,
    ) -> Result<Self, AwsError> {
        let mut resources = BTreeSet::new();
        let mut file_systems = Vec::new();
        let mut volumes = BTreeSet::new();
        for live in live.stacks.values() {
            for resource in clients.stack_resources(&live.stack.arn).await? {
                if resource.kind == "AWS::EFS::FileSystem"
                    && resource.status != ResourceStatus::DeleteComplete
                {
                    file_systems.push(resource.physical_id.clone());
                }
                if resource.kind == "AWS::EC2::Volume" {
                    volumes.insert(resource.physical_id.clone());
                }
                resources.insert(resource.physical_id);
            }
        }
        // The events of a deleted stack still name its volumes.
        for stack in target.deleted_stacks(clients, &StackPart::ControlPlane).await? {
            let events = clients.stack_events(&stack.arn, None).await?.into_iter();
            volumes.extend(
                events.filter(|event| event.kind == "AWS::EC2::Volume").map(|event| event.physical_id),
            );
        }
        let volumes = volumes.into_iter().filter(|volume| volume.starts_with("vol-")).collect();
        Ok(Self { resources, file_systems, volumes })
    }

    /// Whether a stack holds the resource with this physical id.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.resources.contains(id)
    }
}

/// The VPC that a cluster is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterVpc {
    /// The id of the VPC.
    pub(crate) id: String,
    /// Whether the VPC was there before the cluster, and is kept.
    pub(crate) is_adopted: bool,
}

impl ClusterVpc {
    /// The VPC that the network stack names, or else the one that a stack holds.
    pub(crate) fn find(live: &LiveCluster, stacks: &StackContents) -> Option<Self> {
        let in_stacks = || stacks.resources.iter().find(|id| id.starts_with("vpc-")).cloned();
        let id = live.outputs().remove("VpcId").or_else(in_stacks)?;
        let is_adopted = !stacks.contains(&id);
        Some(Self { id, is_adopted })
    }
}
