//! The values of the shared file system's template.

use serde::Serialize;
use serde_json::json;

use super::json::Json;
use crate::blueprint::Blueprint;
use crate::config::{FileSystemSource, Lifecycle};

#[derive(Serialize)]
pub(super) struct StorageValues {
    created: bool,
    reference: Json,
    throughput_mode: &'static str,
    lifecycle: Option<&'static str>,
    backup: bool,
    mount_targets: Vec<MountTargetValues>,
}

#[derive(Serialize)]
pub(super) struct MountTargetValues {
    index: usize,
    zone: String,
    subnet: String,
}

pub(super) fn storage_values(blueprint: &Blueprint) -> Option<StorageValues> {
    let file_system = blueprint.cluster.file_system.as_ref()?;
    let targets = blueprint.network.machine_subnets().filter(|_| blueprint.makes_mount_targets);
    let mount_targets = targets
        .map(|subnet| MountTargetValues {
            index: subnet.zone_index,
            zone: subnet.zone.to_string(),
            subnet: subnet.resource.clone(),
        })
        .collect();
    Some(match &file_system.source {
        FileSystemSource::Adopted { id, .. } => StorageValues {
            created: false,
            reference: json!(id.as_str()).into(),
            throughput_mode: "",
            lifecycle: None,
            backup: false,
            mount_targets,
        },
        FileSystemSource::Created { throughput_mode, lifecycle, backup } => StorageValues {
            created: true,
            reference: json!({"Ref": "FileSystem"}).into(),
            throughput_mode: throughput_mode.as_str(),
            lifecycle: match lifecycle {
                Lifecycle::Never => None,
                Lifecycle::Days7 => Some("AFTER_7_DAYS"),
                Lifecycle::Days14 => Some("AFTER_14_DAYS"),
                Lifecycle::Days30 => Some("AFTER_30_DAYS"),
                Lifecycle::Days60 => Some("AFTER_60_DAYS"),
                Lifecycle::Days90 => Some("AFTER_90_DAYS"),
            },
            backup: *backup,
            mount_targets,
        },
    })
}
