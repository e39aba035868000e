//! The image of a pool, and what only machines with a suitable image can have.

use super::super::cluster::NetworkLayout;
use super::super::file::{PoolFile, PoolImage};
use super::super::gpu::{self, EfaCards, Gpus, gpus_of};
use super::super::values::{AvailabilityZone, InstanceType};
use crate::document::{Fault, Problems};

/// Whether the pool's machines work with its image.
pub(super) fn check_image(pool: &PoolFile, types: &[InstanceType], has_gpus: bool, problems: &mut Problems) {
    let image = &pool.image;
    if image.value == PoolImage::DeepLearning && !has_gpus {
        let fault = Fault::new(format!("pool '{}' has no GPUs for image {}", pool.name.value, image.value))
            .help("remove image, or choose a machine with GPUs, such as g6e.48xlarge");
        problems.add(image.position, fault);
        return;
    }
    // Without the key the type is what does not fit.
    let others = pool.instance_types.iter().map(|text| text.position);
    let positions = std::iter::once(pool.instance_type.position).chain(others);
    for (instance_type, position) in types.iter().zip(positions) {
        let position = if image.is_written() { image.position } else { position };
        problems.take(position, gpu::check_image(instance_type, image.value));
    }
    if image.value == PoolImage::DeepLearning
        && let Some(driver) = &pool.nvidia_driver
    {
        let fault =
            Fault::new("image deep-learning brings its own NVIDIA driver").help("remove nvidiaDriver");
        problems.add(driver.position, fault);
    }
}

/// What EFA depends on.
pub(super) struct EfaMachines<'a> {
    pub(super) types: &'a [InstanceType],
    pub(super) gpus: Option<&'a Gpus>,
    pub(super) zones: Option<&'a [AvailabilityZone]>,
    pub(super) layout: Option<&'a NetworkLayout>,
}

/// The network cards with EFA, if the pool wants it and can have it.
pub(super) fn build_efa(
    pool: &PoolFile,
    machines: &EfaMachines<'_>,
    problems: &mut Problems,
) -> Option<Option<EfaCards>> {
    if !pool.efa.value {
        return Some(None);
    }
    let faults = efa_faults(pool, machines);
    let possible = faults.is_empty();
    for fault in faults {
        problems.add(pool.efa.position, fault);
    }
    possible.then(|| machines.gpus.map(|gpus| gpus.efa))
}

fn efa_faults(pool: &PoolFile, machines: &EfaMachines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let cards = |instance_type: &InstanceType| {
        gpus_of(instance_type).ok().flatten().map(|gpus| gpus.efa).filter(|cards| cards.count > 0)
    };
    if let Some(without) = machines.types.iter().find(|instance_type| cards(instance_type).is_none()) {
        let fault = Fault::new(format!("{without} has no EFA"))
            .help("remove efa, or choose a machine that has it, such as g6e.8xlarge or p5.48xlarge");
        return vec![fault];
    }
    let first = &machines.types[0];
    if let Some(other) = machines.types.iter().find(|other| cards(other) != cards(first)) {
        let fault = Fault::new(format!("{other} and {first} do not have EFA on the same network cards"))
            .help("all machines of a pool start with the same interfaces: use a pool for each type");
        faults.push(fault);
    }
    if pool.image.value == PoolImage::Flatcar {
        let fault = Fault::new("EFA does not work on Flatcar, whose kernel has no driver for it")
            .help("add `image: deep-learning` to the pool");
        faults.push(fault);
    }
    if machines.layout.is_some_and(NetworkLayout::is_public) {
        let fault = Fault::new(
            "EFA needs private topology: AWS gives a machine with several network interfaces no public address",
        )
        .help("set `topology: private` in network, or let the pool's adopted subnets be private");
        faults.push(fault);
    }
    if let Some(count) = machines.zones.map(<[_]>::len).filter(|count| *count != 1) {
        let fault = Fault::new(format!("EFA needs one availability zone, but the pool has {count}"))
            .help("EFA does not reach another one: name one in the pool's availabilityZones");
        faults.push(fault);
    }
    faults
}
