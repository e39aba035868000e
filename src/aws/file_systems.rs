//! EFS: file systems and their mount targets.

use super::actions;
use super::{AwsError, Clients};
use crate::well_known::CLUSTER_TAG;

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExistingFileSystem {
    /// The id of the file system.
    pub id: String,
    /// The state of the file system; `available` is the good one.
    pub state: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The only availability zone of the file system; none if it is regional.
    pub only_zone: Option<String>,
    /// The cluster that the file system was created for: the tag `infra:cluster`.
    pub cluster: Option<String>,
}

/// Where machines of one availability zone reach a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountTarget {
    /// The id of the mount target.
    pub id: String,
    /// The state of the mount target; `available` is the good one.
    pub state: String,
    /// The availability zone of the mount target.
    pub zone: String,
    /// The subnet of the mount target.
    pub subnet: String,
    /// The VPC of the mount target.
    pub vpc: Option<String>,
}

impl Clients {
    /// A file system by its id.
    pub(crate) async fn file_system(&self, id: &str) -> Result<Option<ExistingFileSystem>, AwsError> {
        let answer = self.efs.describe_file_systems().file_system_id(id).send().await;
        match answer.map_err(AwsError::of(actions::EFS_DESCRIBE_FILE_SYSTEMS)) {
            Ok(answer) => Ok(answer.file_systems.unwrap_or_default().into_iter().next().map(file_system_of)),
            Err(error) if error.has_code("FileSystemNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every file system of the region, by id.
    pub(crate) async fn file_systems(&self) -> Result<Vec<ExistingFileSystem>, AwsError> {
        let found = self.efs.describe_file_systems().into_paginator().items().send().try_collect().await;
        let found = found.map_err(AwsError::of(actions::EFS_DESCRIBE_FILE_SYSTEMS))?;
        let mut file_systems: Vec<ExistingFileSystem> = found.into_iter().map(file_system_of).collect();
        file_systems.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(file_systems)
    }

    /// Every file system of the region with the cluster's tag.
    pub(crate) async fn file_systems_of_cluster(
        &self,
        cluster: &str,
    ) -> Result<Vec<ExistingFileSystem>, AwsError> {
        let mut file_systems = self.file_systems().await?;
        file_systems.retain(|file_system| file_system.cluster.as_deref() == Some(cluster));
        Ok(file_systems)
    }

    /// Every mount target of a file system, by availability zone.
    pub(crate) async fn mount_targets(&self, file_system: &str) -> Result<Vec<MountTarget>, AwsError> {
        let request = self.efs.describe_mount_targets().file_system_id(file_system);
        let found = request.into_paginator().items().send().try_collect().await;
        let found = found.map_err(AwsError::of(actions::EFS_DESCRIBE_MOUNT_TARGETS))?;
        let targets = found.into_iter().map(|target| MountTarget {
            id: target.mount_target_id,
            state: target.life_cycle_state.to_string(),
            zone: target.availability_zone_name.unwrap_or_default(),
            subnet: target.subnet_id,
            vpc: target.vpc_id,
        });
        let mut targets: Vec<MountTarget> = targets.collect();
        targets.sort_by(|one, other| (&one.zone, &one.id).cmp(&(&other.zone, &other.id)));
        Ok(targets)
    }

    /// Deletes a mount target; one that is gone is no error.
    pub(crate) async fn delete_mount_target(&self, id: &str) -> Result<(), AwsError> {
        let call = self.efs.delete_mount_target().mount_target_id(id);
        match call.send().await.map_err(AwsError::of(actions::EFS_DELETE_MOUNT_TARGET)) {
            Err(error) if error.has_code("MountTargetNotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Deletes a file system and everything in it; one that is gone is no error.
    pub(crate) async fn delete_file_system(&self, id: &str) -> Result<(), AwsError> {
        let call = self.efs.delete_file_system().file_system_id(id);
        match call.send().await.map_err(AwsError::of(actions::EFS_DELETE_FILE_SYSTEM)) {
            Err(error) if error.has_code("FileSystemNotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// The security groups of a mount target.
    pub(crate) async fn mount_target_security_groups(
        &self,
        mount_target: &str,
    ) -> Result<Vec<String>, AwsError> {
        let answer = self.efs.describe_mount_target_security_groups().mount_target_id(mount_target).send();
        let answer = answer.await;
        Ok(answer.map_err(AwsError::of(actions::EFS_DESCRIBE_MOUNT_TARGET_SECURITY_GROUPS))?.security_groups)
    }
}

fn file_system_of(found: aws_sdk_efs::types::FileSystemDescription) -> ExistingFileSystem {
    let cluster = found.tags.into_iter().find(|tag| tag.key == CLUSTER_TAG);
    ExistingFileSystem {
        id: found.file_system_id,
        state: found.life_cycle_state.to_string(),
        encrypted: found.encrypted.unwrap_or_default(),
        only_zone: found.availability_zone_name,
        cluster: cluster.map(|tag| tag.value),
    }
}
