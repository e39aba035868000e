//! What is in the picture, from top to bottom, before anything has a position.

use crate::blueprint::{Blueprint, Role, SecurityGroup, StackPart, SubnetSource};
use crate::config::values::AvailabilityZone;
use crate::config::{FileSystemSource, Pool};
use crate::plural::count_of;
use crate::report::connections::{Origin, allowed_outsiders};

use super::marks::{MachineMark, Mark, Marks};

/// The most ranges of addresses that are spelled out.
const SHOWN_RANGES: usize = 3;

/// Where a band is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// Above the VPC.
    Outside,
    /// In public subnets without machines.
    PublicSubnets,
    /// In the subnets of the machines.
    MachineSubnets,
}

/// A band across all availability zones: a security group, or who is outside.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) region: Region,
    /// Where its arrows begin and end; NAT gateways have none.
    pub(super) origin: Option<Origin>,
    pub(super) rows: Vec<Row>,
}

/// A part of a band with a label.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) title: String,
    pub(super) details: Vec<String>,
    pub(super) cards: Vec<Card>,
    /// What a plan does here, in a few words.
    pub(super) changes: Vec<(Mark, String)>,
}

/// A box in one availability zone, or across all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Card {
    /// The index of its availability zone; none if it is in all of them.
    pub(super) zone: Option<usize>,
    pub(super) title: String,
    /// The role of the machines in it.
    pub(super) role: Option<String>,
    pub(super) machines: u32,
    pub(super) mark: Option<Mark>,
}

/// All bands, from top to bottom.
pub(super) fn picture_bands(blueprint: &Blueprint, marks: &Marks) -> Vec<Band> {
    let mut bands: Vec<Band> = allowed_outsiders(blueprint).into_iter().map(outside_band).collect();
    let has = |group| blueprint.security_groups.contains(&group);
    let public = has(SecurityGroup::PublicLoadBalancer)
        .then(|| balancer_band(blueprint, marks, SecurityGroup::PublicLoadBalancer));
    let nat = nat_band(blueprint, marks);
    bands.extend(public.into_iter().chain(nat));
    bands.push(balancer_band(blueprint, marks, SecurityGroup::InternalLoadBalancer));
    bands.push(controllers_band(blueprint, marks));
    bands.push(etcd_band(blueprint, marks));
    bands.push(nodes_band(blueprint, marks));
    bands.extend(has(SecurityGroup::Efa).then(|| efa_band(blueprint, marks)));
    bands.extend(file_system_band(blueprint, marks));
    bands
}

fn outside_band((why, ranges): (&'static str, Vec<String>)) -> Band {
    let shown = ranges.iter().take(SHOWN_RANGES).cloned().collect::<Vec<_>>().join(", ");
    let title = match ranges.len().saturating_sub(SHOWN_RANGES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    };
    let card = Card { title, ..Card::default() };
    let (title, detail) = why.split_once(", ").unwrap_or((why, ""));
    let details = vec![detail.to_owned()];
    let row = Row { title: title.to_owned(), details, cards: vec![card], ..Row::default() };
    Band { region: Region::Outside, origin: Some(Origin::Outside(why)), rows: vec![row] }
}

fn balancer_band(blueprint: &Blueprint, marks: &Marks, group: SecurityGroup) -> Band {
    let (title, resource, name) = match group {
        SecurityGroup::PublicLoadBalancer => {
            ("API, public", "PublicLoadBalancer", blueprint.cluster.external_dns_name.to_string())
        }
        _ => ("API, internal", "InternalLoadBalancer", blueprint.names.internal_api.clone()),
    };
    let mark = marks.resource(&StackPart::ControlPlane, resource);
    let card = Card { title: name, mark, ..Card::default() };
    let details = vec!["network load balancer".to_owned()];
    let row = Row { title: title.to_owned(), details, cards: vec![card], changes: mark_in_words(mark) };
    let is_apart = group == SecurityGroup::PublicLoadBalancer && !blueprint.network.public_machines;
    let region = if is_apart { Region::PublicSubnets } else { Region::MachineSubnets };
    Band { region, origin: Some(Origin::Group(group)), rows: vec![row] }
}

fn nat_band(blueprint: &Blueprint, marks: &Marks) -> Option<Band> {
    let indexes = &blueprint.network.nat_availability_zones;
    if indexes.is_empty() {
        return None;
    }
    let card = |index: &usize| Card {
        zone: Some(*index),
        title: "NAT gateway".to_owned(),
        mark: marks.resource(&StackPart::Network, &format!("NatGateway{index}")),
        ..Card::default()
    };
    let cards: Vec<Card> = indexes.iter().map(card).collect();
    let changes = mark_in_words(cards.iter().filter_map(|card| card.mark).max());
    let details = vec!["out to the internet".to_owned()];
    let row = Row { title: "NAT".to_owned(), details, cards, changes };
    Some(Band { region: Region::PublicSubnets, origin: None, rows: vec![row] })
}

fn controllers_band(blueprint: &Blueprint, marks: &Marks) -> Band {
    let controllers = &blueprint.cluster.controllers;
    let zones: Vec<usize> = (0..blueprint.cluster.availability_zones.len()).collect();
    let instance_type = controllers.instance_type.to_string();
    let row = Row {
        title: "controllers".to_owned(),
        details: vec![format!("{} × {instance_type}", controllers.count)],
        cards: cards_across_zones(&Role::Controller, &instance_type, controllers.count, &zones, marks),
        changes: marks_in_words(marks.machines(&Role::Controller)),
    };
    group_band(SecurityGroup::Controllers, vec![row])
}

fn etcd_band(blueprint: &Blueprint, marks: &Marks) -> Band {
    let etcd = &blueprint.cluster.etcd;
    let card = |member| {
        let role = Role::EtcdMember(member);
        Card {
            zone: zone_index(blueprint, blueprint.cluster.etcd_availability_zone(member)),
            title: role.name(),
            mark: strongest_mark(marks.machines(&role)),
            role: Some(role.name()),
            machines: 1,
        }
    };
    let all: Vec<MachineMark> =
        (0..etcd.count).flat_map(|member| marks.machines(&Role::EtcdMember(member)).to_vec()).collect();
    let row = Row {
        title: "etcd".to_owned(),
        details: vec![
            format!("{} × {}", etcd.count, etcd.instance_type),
            format!("{} GiB disk each", etcd.volume_gib),
        ],
        cards: (0..etcd.count).map(card).collect(),
        changes: marks_in_words(&sum_alike(&all)),
    };
    group_band(SecurityGroup::Etcd, vec![row])
}

fn nodes_band(blueprint: &Blueprint, marks: &Marks) -> Band {
    let mut rows: Vec<Row> =
        blueprint.cluster.pools.iter().map(|pool| pool_row(blueprint, pool, marks)).collect();
    for pool in marks.deleted_pools() {
        let found = marks.machines(&Role::Pool(pool.clone()));
        let machines = found.iter().map(|mark| mark.machines).sum();
        let card = Card {
            title: "is deleted".to_owned(),
            role: Some(Role::Pool(pool.clone()).name()),
            machines,
            mark: Some(Mark::Delete),
            ..Card::default()
        };
        let changes =
            if found.is_empty() { mark_in_words(Some(Mark::Delete)) } else { marks_in_words(found) };
        let details = vec!["not in cluster.yaml".to_owned()];
        rows.push(Row { title: format!("pool {pool}"), details, cards: vec![card], changes });
    }
    if rows.is_empty() {
        let details = vec!["none in cluster.yaml".to_owned()];
        rows.push(Row { title: "nodes".to_owned(), details, ..Row::default() });
    }
    group_band(SecurityGroup::Nodes, rows)
}

/// The adapters of pools with EFA, which have a security group each.
fn efa_band(blueprint: &Blueprint, marks: &Marks) -> Band {
    let row = |(pool, adapters): (&Pool, u32)| Row {
        title: format!("EFA of pool {}", pool.name),
        details: vec![format!("{} each machine", count_of(adapters, "adapter"))],
        cards: Vec::new(),
        changes: mark_in_words(
            marks.resource(&StackPart::Pool(pool.name.clone()), SecurityGroup::Efa.resource()),
        ),
    };
    let pools = blueprint.cluster.pools.iter();
    let with_efa = pools.filter_map(|pool| Some((pool, pool.efa?.count)));
    group_band(SecurityGroup::Efa, with_efa.map(row).collect())
}

fn pool_row(blueprint: &Blueprint, pool: &Pool, marks: &Marks) -> Row {
    let role = Role::Pool(pool.name.clone());
    let types: Vec<String> = pool.instance_types.iter().map(ToString::to_string).collect();
    let first = types.first().cloned().unwrap_or_default();
    let title = match types.len().saturating_sub(1) {
        0 => first.clone(),
        more => format!("{first} + {more} more"),
    };
    let how = if pool.spot { ", spot" } else { "" };
    let mut details = vec![format!("{} × {first}{how}", pool.count)];
    if let Some(gpus) = &pool.gpus {
        details.push(format!("{} {} each", count_of(gpus.count, "GPU"), gpus.model));
    }
    if pool.min_count != pool.max_count {
        details.push(format!("{} to {} machines", pool.min_count, pool.max_count));
    }
    let zones: Vec<usize> =
        pool.availability_zones.iter().filter_map(|zone| zone_index(blueprint, zone)).collect();
    Row {
        title: format!("pool {}", pool.name),
        details,
        cards: cards_across_zones(&role, &title, pool.count, &zones, marks),
        changes: marks_in_words(marks.machines(&role)),
    }
}

fn file_system_band(blueprint: &Blueprint, marks: &Marks) -> Option<Band> {
    let system = blueprint.cluster.file_system.as_ref()?;
    let source = match &system.source {
        FileSystemSource::Created { .. } => "EFS".to_owned(),
        FileSystemSource::Adopted { id, .. } => id.to_string(),
    };
    let targets = blueprint.network.machine_subnets().map(|subnet| Card {
        zone: Some(subnet.zone_index),
        title: "mount target".to_owned(),
        mark: marks.resource(&StackPart::Storage, &format!("MountTarget{}", subnet.zone_index)),
        ..Card::default()
    });
    let cards = if blueprint.makes_mount_targets {
        targets.collect()
    } else {
        vec![Card { title: "mount targets that exist already".to_owned(), ..Card::default() }]
    };
    let mark = marks.resource(&StackPart::Storage, "FileSystem");
    let changes = mark_in_words(mark.or_else(|| cards.iter().filter_map(|card| card.mark).max()));
    let details = vec![source, format!("at {}", system.mount_path)];
    let row = Row { title: "file system".to_owned(), details, cards, changes };
    let origin = blueprint.makes_mount_targets.then_some(Origin::Group(SecurityGroup::FileSystem));
    Some(Band { region: Region::MachineSubnets, origin, rows: vec![row] })
}

fn group_band(group: SecurityGroup, rows: Vec<Row>) -> Band {
    Band { region: Region::MachineSubnets, origin: Some(Origin::Group(group)), rows }
}

/// The machines of an Auto Scaling group, which AWS spreads evenly over its availability zones.
fn cards_across_zones(role: &Role, title: &str, count: u32, zones: &[usize], marks: &Marks) -> Vec<Card> {
    let number = u32::try_from(zones.len()).unwrap_or(u32::MAX).max(1);
    let card = |(position, zone): (u32, &usize)| Card {
        zone: Some(*zone),
        title: title.to_owned(),
        role: Some(role.name()),
        machines: count / number + u32::from(position < count % number),
        mark: strongest_mark(marks.machines(role)),
    };
    (0..).zip(zones).map(card).collect()
}

fn zone_index(blueprint: &Blueprint, zone: &AvailabilityZone) -> Option<usize> {
    blueprint.cluster.availability_zones.iter().position(|found| found == zone)
}

fn strongest_mark(marks: &[MachineMark]) -> Option<Mark> {
    marks.iter().map(|mark| mark.mark).max()
}

fn mark_in_words(mark: Option<Mark>) -> Vec<(Mark, String)> {
    mark.into_iter().map(|mark| (mark, format!("{} {}", mark.sign(), mark.class()))).collect()
}

fn marks_in_words(marks: &[MachineMark]) -> Vec<(Mark, String)> {
    let text = |mark: &MachineMark| format!("{} {} {}", mark.mark.sign(), mark.machines, mark.word);
    marks.iter().map(|mark| (mark.mark, text(mark))).collect()
}

/// One mark for all members to which the same happens.
fn sum_alike(marks: &[MachineMark]) -> Vec<MachineMark> {
    let mut summed: Vec<MachineMark> = Vec::new();
    for mark in marks {
        match summed.iter_mut().find(|found| found.word == mark.word) {
            Some(found) => found.machines += mark.machines,
            None => summed.push(*mark),
        }
    }
    summed
}

/// A subnet in the picture.
#[derive(Clone, Debug)]
pub(super) struct SubnetLabel {
    pub(super) zone: usize,
    pub(super) region: Region,
    pub(super) resource: String,
    pub(super) title: &'static str,
    pub(super) address: String,
    pub(super) mark: Option<Mark>,
}

/// The subnets, each in the region that the picture has for it.
pub(super) fn subnet_labels(blueprint: &Blueprint, marks: &Marks) -> Vec<SubnetLabel> {
    let network = &blueprint.network;
    let label = |subnet: &crate::blueprint::Subnet| SubnetLabel {
        zone: subnet.zone_index,
        region: if subnet.public == network.public_machines {
            Region::MachineSubnets
        } else {
            Region::PublicSubnets
        },
        resource: subnet.resource.clone(),
        title: if subnet.public { "public subnet" } else { "private subnet" },
        address: match &subnet.source {
            SubnetSource::Created(range) => range.to_string(),
            SubnetSource::Adopted(id) => id.to_string(),
        },
        mark: marks.resource(&StackPart::Network, &subnet.resource),
    };
    network.subnets.iter().map(label).collect()
}
