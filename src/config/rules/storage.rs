//! The shared file system: created with its settings, or adopted without any.

use super::super::cluster::{FileSystem, FileSystemSource};
use super::super::file::{EfsDriver, EfsFile};
use super::super::values::{FileSystemId, MountPath};
use crate::document::{At, Fault, Position, Problems};

pub(super) fn build_file_system(efs: &At<EfsFile>, problems: &mut Problems) -> Option<FileSystem> {
    let efs = &efs.value;
    if efs.driver.value == EfsDriver::Csi {
        let fault = Fault::new("the EFS CSI driver is not supported yet")
            .help("use nfs, which every node can mount by itself");
        problems.add(efs.driver.position, fault);
    }
    let mount_path: Option<MountPath> = problems.parse(&efs.mount_path);
    let source = match &efs.file_system_id {
        Some(id) => build_adopted(id, efs, problems),
        None => build_created(efs, problems),
    };
    Some(FileSystem { mount_path: mount_path?, source: source? })
}

fn build_created(efs: &EfsFile, problems: &mut Problems) -> Option<FileSystemSource> {
    if efs.create_mount_targets.is_written() {
        let fault = Fault::new("createMountTargets is for an adopted file system")
            .help("remove it: a file system that infra creates gets its mount targets");
        problems.add(efs.create_mount_targets.position, fault);
        return None;
    }
    Some(FileSystemSource::Created {
        throughput_mode: efs.throughput_mode.value,
        lifecycle: efs.lifecycle.value,
        backup: efs.backup.value,
    })
}

fn build_adopted(id: &At<String>, efs: &EfsFile, problems: &mut Problems) -> Option<FileSystemSource> {
    let settings: [(&str, Option<Position>); 3] = [
        ("throughputMode", efs.throughput_mode.position),
        ("lifecycle", efs.lifecycle.position),
        ("backup", efs.backup.position),
    ];
    for (name, position) in settings {
        if position.is_some() {
            let fault = Fault::new(format!("{name} cannot be set for an adopted file system"));
            problems.add(position, fault.help("remove it: what is adopted is used as it is"));
        }
    }
    let id: FileSystemId = problems.parse(id)?;
    Some(FileSystemSource::Adopted { id, create_mount_targets: efs.create_mount_targets.value })
}
