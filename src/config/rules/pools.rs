//! Pools of workers.

use std::collections::BTreeSet;

use super::super::cluster::{NetworkLayout, Pool};
use super::super::file::{ClusterFile, PoolFile, Rollout};
use super::super::gpu::Gpus;
use super::super::values::{AvailabilityZone, InstanceType, NvidiaDriver, PolicyArn, PoolName};
use super::location::Location;
use super::optional::parse_optional;
use super::{images, labels, machines, schedule};
use crate::document::{At, Fault, Problems};

/// IAM's quota of managed policies per role.
const MOST_POLICIES: usize = 10;

pub(super) fn build_pools(
    file: &ClusterFile,
    location: &Location,
    layout: Option<&NetworkLayout>,
    problems: &mut Problems,
) -> Option<Vec<Pool>> {
    let mut names = BTreeSet::new();
    let mut pools = Vec::new();
    for pool in &file.pools {
        let name: Option<PoolName> = problems.parse(&pool.value.name);
        if let Some(name) = &name
            && !names.insert(name.clone())
        {
            let fault = Fault::new(format!("there are two pools named '{name}'"))
                .help("a pool's name is its stack's name");
            problems.add(pool.value.name.position, fault);
        }
        let tags = file.tags.len();
        pools.extend(build_pool(name, &pool.value, location, layout, tags, problems));
    }
    (pools.len() == file.pools.len()).then_some(pools)
}

fn build_pool(
    name: Option<PoolName>,
    pool: &PoolFile,
    location: &Location,
    layout: Option<&NetworkLayout>,
    tags: usize,
    problems: &mut Problems,
) -> Option<Pool> {
    let types = parse_types(pool, problems);
    let driver: Option<Option<NvidiaDriver>> =
        parse_optional(pool.nvidia_driver.as_ref(), |text| problems.parse(text));
    if let (Some((types, gpus)), Some(Some(driver)), Some(written)) = (&types, driver, &pool.nvidia_driver) {
        problems.take(written.position, check_driver(&pool.name.value, &types[0], gpus.as_ref(), driver));
    }
    if let Some((types, gpus)) = &types {
        images::check_image(pool, types, gpus.is_some(), problems);
    }
    let has_gpus = types.as_ref().is_some_and(|(_, gpus)| gpus.is_some());
    let (min_count, max_count) = check_counts(pool, problems);
    let zones = parse_availability_zones(pool, location, problems);
    check_exclusions(pool, types.as_ref().map(|(types, _)| types.as_slice()), zones.as_deref(), problems);
    let efa = types.as_ref().and_then(|(types, gpus)| {
        let machines = images::EfaMachines { types, gpus: gpus.as_ref(), zones: zones.as_deref(), layout };
        images::build_efa(pool, &machines, problems)
    });
    let capacity_reservation =
        parse_optional(pool.capacity_reservation_id.as_ref(), |text| problems.parse(text));
    // A reservation has machines of its own, which a placement group may not find room beside.
    let placement_group = if pool.placement_group.is_written() {
        pool.placement_group.value
    } else {
        pool.efa.value && pool.capacity_reservation_id.is_none()
    };
    let managed_policies = parse_policies(pool, location, problems);
    let schedule = schedule::build_schedule(pool, min_count, max_count, problems);
    let pool_labels = labels::build_labels(&pool.labels, problems);
    let taints = labels::build_taints(&pool.taints, has_gpus, problems);
    labels::check_tag_room(pool, tags, problems);
    if pool.metadata_hop_limit.value > 1 {
        let fault = Fault::new(format!(
            "every pod in pool '{}' can act with its machine's IAM role",
            pool.name.value
        ))
        .help("that is what metadataHopLimit over 1 does; remove it unless pods need the role");
        problems.warn(pool.metadata_hop_limit.position, fault);
    }
    let (driver, (instance_types, gpus)) = (driver?, types?);
    let gpus = gpus.map(|gpus| Gpus { driver: driver.unwrap_or(gpus.driver), ..gpus });
    let by_kind = if gpus.is_some() { Rollout::Manual } else { Rollout::Rolling };
    Some(Pool {
        name: name?,
        instance_types,
        gpus,
        image: pool.image.value,
        efa: efa?,
        count: pool.count.value,
        min_count,
        max_count,
        spot: pool.spot.value,
        availability_zones: zones?,
        rollout: pool.rollout.unwrap_or(by_kind),
        root_volume_gib: pool.root_volume_gib.value,
        placement_group,
        capacity_reservation: capacity_reservation?,
        managed_policies: managed_policies?,
        metadata_hop_limit: pool.metadata_hop_limit.value,
        schedule: schedule?,
        labels: pool_labels?,
        taints: taints?,
    })
}

/// The pool's types. Labels, taints and the autoscaler speak of a pool as of one kind of machine, so GPUs must agree.
fn parse_types(pool: &PoolFile, problems: &mut Problems) -> Option<(Vec<InstanceType>, Option<Gpus>)> {
    let first = machines::parse_worker_type(&pool.instance_type, problems);
    let others: Vec<_> =
        pool.instance_types.iter().map(|text| (text, machines::parse_worker_type(text, problems))).collect();
    let (first, gpus) = first?;
    let mut types = vec![first];
    for (text, other) in others {
        let (other, other_gpus) = other?;
        if types.contains(&other) {
            let fault = Fault::new(format!("{other} is named twice"))
                .help("instanceTypes are types in addition to instanceType");
            problems.add(text.position, fault);
            return None;
        }
        let describe = |gpus: &Option<Gpus>| match gpus {
            Some(gpus) => format!("{} × {}", gpus.count, gpus.model),
            None => "no GPU".to_owned(),
        };
        let kind = |gpus: &Option<Gpus>| gpus.as_ref().map(|gpus| (gpus.model, gpus.count, gpus.driver));
        if kind(&gpus) != kind(&other_gpus) {
            let (wanted, found) = (describe(&gpus), describe(&other_gpus));
            let fault = Fault::new(format!("{other} has {found}, but {} has {wanted}", types[0]))
                .help("the types of one pool share GPU model, number and driver: use a pool for each");
            problems.add(text.position, fault);
            return None;
        }
        types.push(other);
    }
    Some((types, gpus))
}

/// Whether a driver that a pool chooses can run its GPUs.
fn check_driver(
    pool: &str,
    machine: &InstanceType,
    gpus: Option<&Gpus>,
    driver: NvidiaDriver,
) -> Result<(), Fault> {
    let Some(gpus) = gpus else {
        return Err(Fault::new(format!("pool '{pool}' has no GPUs for a driver"))
            .help("remove nvidiaDriver, or choose a machine with GPUs, such as g5.xlarge"));
    };
    match gpus.drivers.objection(driver) {
        Some(objection) => {
            Err(Fault::new(format!("{machine} does not run with driver {driver}: {objection}"))
                .help(format!("remove nvidiaDriver to use {}", gpus.driver)))
        }
        None => Ok(()),
    }
}

fn check_counts(pool: &PoolFile, problems: &mut Problems) -> (u32, u32) {
    let count = pool.count.value;
    let least = pool.min_count.as_ref().map_or(count, |least| least.value);
    let most = pool.max_count.as_ref().map_or(count, |most| most.value);
    if let Some(written) = pool.min_count.as_ref().filter(|_| least > count) {
        problems.add(written.position, Fault::new(format!("minCount {least} is more than count {count}")));
    }
    if let Some(written) = pool.max_count.as_ref().filter(|_| most < count) {
        problems.add(written.position, Fault::new(format!("maxCount {most} is less than count {count}")));
    }
    (least, most)
}

fn parse_availability_zones(
    pool: &PoolFile,
    location: &Location,
    problems: &mut Problems,
) -> Option<Vec<AvailabilityZone>> {
    let Some(list) = &pool.availability_zones else { return location.availability_zones.clone() };
    if list.value.is_empty() {
        let fault = Fault::new(format!("pool '{}' has no availability zone", pool.name.value))
            .help("remove the key to use all availability zones");
        problems.add(list.position, fault);
        return None;
    }
    let zones: Vec<At<AvailabilityZone>> = problems.parse_all(&list.value);
    let complete = zones.len() == list.value.len();
    let mut good = Vec::new();
    for zone in zones {
        if good.contains(&zone.value) {
            problems
                .add(zone.position, Fault::new(format!("availability zone {} is named twice", zone.value)));
        } else if location.availability_zones.as_ref().is_some_and(|all| !all.contains(&zone.value)) {
            let fault = Fault::new(format!(
                "availability zone {} is not one of the cluster's availabilityZones",
                zone.value
            ));
            problems.add(zone.position, fault);
        }
        good.push(zone.value);
    }
    complete.then_some(good)
}

fn check_exclusions(
    pool: &PoolFile,
    types: Option<&[InstanceType]>,
    zones: Option<&[AvailabilityZone]>,
    problems: &mut Problems,
) {
    let zone_count = zones.map(<[_]>::len);
    if pool.placement_group.value {
        let position = pool.placement_group.position;
        if let Some(count) = zone_count.filter(|count| *count != 1) {
            let fault = Fault::new(format!("placementGroup needs one availability zone, but the pool has {count}"))
                .help("machines of a placement group are in one availability zone: name it in the pool's availabilityZones");
            problems.add(position, fault);
        }
        if let Some(burstable) = types.into_iter().flatten().find(|t| t.is_burstable()) {
            problems.add(
                position,
                Fault::new(format!("{burstable} cannot be in a placement group: AWS allows no t machines")),
            );
        }
    }
    let Some(reservation) = &pool.capacity_reservation_id else { return };
    if pool.placement_group.value {
        let fault = Fault::new("machines of a capacity reservation may find no room in a placement group")
            .help("remove placementGroup: machines of a capacity block are close together already; an ordinary reservation must have been created in that placement group");
        problems.warn(pool.placement_group.position, fault);
    }
    if pool.spot.value {
        let fault = Fault::new("a capacity reservation and spot exclude each other")
            .help("reserved machines are on-demand machines: remove spot or capacityReservationId");
        problems.add(reservation.position, fault);
    }
    if !pool.instance_types.is_empty() {
        let fault =
            Fault::new("a capacity reservation is for one instance type").help("remove instanceTypes");
        problems.add(reservation.position, fault);
    }
    if let Some(count) = zone_count.filter(|count| *count != 1) {
        let fault = Fault::new(format!(
            "a capacity reservation is in one availability zone, but the pool has {count}"
        ))
        .help("name the reservation's availability zone in the pool's availabilityZones");
        problems.add(reservation.position, fault);
    }
}

fn parse_policies(pool: &PoolFile, location: &Location, problems: &mut Problems) -> Option<Vec<PolicyArn>> {
    let list = &pool.managed_policy_arns;
    if list.value.len() > MOST_POLICIES {
        let fault = Fault::new(format!(
            "{} managed policies are named, IAM has room for {MOST_POLICIES}",
            list.value.len()
        ));
        problems.add(list.position, fault);
    }
    let policies: Vec<At<PolicyArn>> = problems.parse_all(&list.value);
    let complete = policies.len() == list.value.len();
    let mut seen = BTreeSet::new();
    for policy in &policies {
        if let Some(region) = &location.region {
            problems.take(policy.position, policy.value.check_partition(region));
        }
        if !seen.insert(&policy.value) {
            problems.add(policy.position, Fault::new(format!("policy {} is named twice", policy.value)));
        }
    }
    complete.then(|| policies.into_iter().map(|policy| policy.value).collect())
}
