//! Instance types, and the machines of the control plane.

use std::str::FromStr;

use super::super::cluster::{Controllers, Etcd, Restore};
use super::super::file::{ControllersFile, EtcdFile, PoolImage, RestoreFile};
use super::super::gpu::{Gpus, check_image, gpus_of};
use super::super::values::{Architecture, InstanceType, SnapshotName};
use super::optional::parse_optional;
use crate::document::{At, Fault, Problems};

/// How families begin whose accelerators no driver here serves; they would be paid for and never used.
const OTHER_ACCELERATORS: [&str; 6] = ["dl", "f1", "f2", "inf", "trn", "vt"];

/// A machine for workers, and its GPUs.
pub(super) fn parse_worker_type(
    text: &At<String>,
    problems: &mut Problems,
) -> Option<(InstanceType, Option<Gpus>)> {
    let instance_type: InstanceType = problems.parse(text)?;
    let gpus = problems.take(text.position, check_worker_type(&instance_type))?;
    Some((instance_type, gpus))
}

/// The GPUs of a machine for workers, or why it cannot be one.
fn check_worker_type(instance_type: &InstanceType) -> Result<Option<Gpus>, Fault> {
    let family = instance_type.family();
    if OTHER_ACCELERATORS.iter().any(|beginning| family.starts_with(beginning)) {
        let fault =
            Fault::new(format!("{instance_type} is not supported: its accelerator is not an NVIDIA GPU"));
        return Err(fault.help("use g5.xlarge, for example"));
    }
    if family.starts_with("mac") {
        return Err(Fault::new(format!("{instance_type} runs macOS only")));
    }
    // A GPU family that is arm64 has a reason of its own in the table.
    let gpus = gpus_of(instance_type)?;
    if instance_type.architecture() == Architecture::Arm64 {
        return Err(Fault::new(format!(
            "{instance_type} is an arm64 machine, and only amd64 is supported for now"
        ))
        .help("the same family without 'g' is usually the amd64 one, as m6i for m6g"));
    }
    Ok(gpus)
}

/// An instance type with GPUs that a pool can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInstanceType(InstanceType);

impl GpuInstanceType {
    /// The instance type.
    #[must_use]
    pub fn instance_type(&self) -> &InstanceType {
        &self.0
    }
}

impl TryFrom<InstanceType> for GpuInstanceType {
    type Error = Fault;

    fn try_from(instance_type: InstanceType) -> Result<Self, Fault> {
        let gpus = check_worker_type(&instance_type)?;
        check_image(&instance_type, PoolImage::default())?;
        match gpus {
            Some(_) => Ok(Self(instance_type)),
            None => Err(Fault::new(format!("{instance_type} has no GPU")).help("use g5.xlarge, for example")),
        }
    }
}

impl FromStr for GpuInstanceType {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        Self::try_from(text.parse::<InstanceType>()?)
    }
}

pub(super) fn build_etcd(etcd: &EtcdFile, problems: &mut Problems) -> Option<Etcd> {
    let too_small = ["nano", "micro"];
    let instance_type = parse_control_plane_type(&etcd.instance_type, "an etcd member", &too_small, problems);
    if etcd.count.value.is_multiple_of(2) {
        let fault =
            Fault::new(format!("etcd has {} members, but their number must be odd", etcd.count.value))
                .help("an even number survives no more losses than the odd one below it: use 1, 3 or 5");
        problems.add(etcd.count.position, fault);
    }
    let restore = parse_optional(etcd.restore.as_ref(), |restore| build_restore(restore, problems));
    let instance_type = instance_type?;
    if !instance_type.has_nvme_disks() {
        let fault = Fault::new(format!(
            "{instance_type} is too old for etcd: a member finds its disk by its NVMe id"
        ))
        .help("use a machine of the Nitro generations, as t3.medium or m5.large");
        problems.add(etcd.instance_type.position, fault);
        return None;
    }
    Some(Etcd {
        count: etcd.count.value,
        instance_type,
        volume_gib: etcd.volume_gib.value,
        restore: restore?,
    })
}

fn build_restore(restore: &RestoreFile, problems: &mut Problems) -> Option<Restore> {
    let snapshot: Option<SnapshotName> = problems.parse(&restore.snapshot);
    let version = parse_optional(restore.version.as_ref(), |version| problems.parse(version));
    let sha256 = problems.parse(&restore.sha256);
    if restore.version.is_none() && snapshot.as_ref().is_some_and(SnapshotName::is_overwritten) {
        let fault = Fault::new("etcd.db has a version for every hour, and none is named")
            .help("add `version:`; the member that uploaded the snapshot has printed it with the SHA-256");
        problems.add(restore.snapshot.position, fault);
        return None;
    }
    Some(Restore { snapshot: snapshot?, version: version?, sha256: sha256? })
}

pub(super) fn build_controllers(
    controllers: &ControllersFile,
    problems: &mut Problems,
) -> Option<Controllers> {
    // With 2 GiB the autoscaler has no room beside the control plane's own pods, and would wait for it without end.
    let too_small = ["nano", "micro", "small"];
    let instance_type =
        parse_control_plane_type(&controllers.instance_type, "a controller", &too_small, problems)?;
    Some(Controllers { count: controllers.count.value, instance_type })
}

fn parse_control_plane_type(
    text: &At<String>,
    role: &str,
    too_small: &[&str],
    problems: &mut Problems,
) -> Option<InstanceType> {
    let (instance_type, gpus) = parse_worker_type(text, problems)?;
    if gpus.is_some() {
        let fault = Fault::new(format!("{instance_type} has GPUs, and {role} runs no GPU work"))
            .help("use t3.medium or m5.large here and put GPUs in a pool");
        problems.add(text.position, fault);
        return None;
    }
    if too_small.contains(&instance_type.size()) {
        let fault = Fault::new(format!("{instance_type} has too little memory for {role}"))
            .help("use t3.medium or larger");
        problems.add(text.position, fault);
        return None;
    }
    Some(instance_type)
}
