//! Address ranges and subnets: valid, apart from each other, and large enough.

use std::collections::BTreeSet;

use ipnet::Ipv4Net;

use super::super::address_plan::{
    NODE_PREFIX, SMALLEST_SUBNET, has_overlap, machines_that_fit, nodes_that_fit, subnet_prefix,
};
use super::super::cluster::{AdoptedSubnet, NetworkLayout};
use super::super::file::{ClusterFile, ExistingNetworkFile, NetworkFile, Topology};
use super::super::values::{AvailabilityZone, SubnetId, VpcId, parse_ipv4_range};
use super::location::Location;
use crate::document::{At, Fault, Problems};
use crate::plural::count_of;

/// The three ranges of a cluster.
pub(super) struct Ranges {
    pub(super) vpc: Ipv4Net,
    pub(super) pods: Ipv4Net,
    pub(super) services: Ipv4Net,
}

/// Parses the ranges and checks each alone and against the others.
pub(super) fn parse_ranges(file: &ClusterFile, problems: &mut Problems) -> Option<Ranges> {
    let written = [
        ("vpcCIDR", &file.network.vpc_cidr, 16, SMALLEST_SUBNET, "AWS allows"),
        ("podCIDR", &file.kubernetes.pod_cidr, 8, NODE_PREFIX, "a /24 for each node needs"),
        ("serviceCIDR", &file.kubernetes.service_cidr, 12, 28, "Kubernetes allows"),
    ];
    let parsed = written.map(|(name, text, shortest, longest, who)| {
        let range = problems.take(text.position, parse_ipv4_range(&text.value))?;
        if !(shortest..=longest).contains(&range.prefix_len()) {
            let fault =
                Fault::new(format!("{name} is a /{}; {who} /{shortest} to /{longest}", range.prefix_len()));
            problems.add(text.position, fault);
            return None;
        }
        if let Some((reserved, what)) =
            reserved_ranges().into_iter().find(|(reserved, _)| has_overlap(range, *reserved))
        {
            problems.add(
                text.position,
                Fault::new(format!("{name} {range} overlaps {reserved}, which is kept for {what}")),
            );
            return None;
        }
        Some(range)
    });
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        if let (Some(first), Some(second)) = (parsed[one], parsed[other])
            && has_overlap(first, second)
        {
            let (first_name, first_text, ..) = written[one];
            let (second_name, second_text, ..) = written[other];
            let fault = Fault::new(format!("{second_name} {second} overlaps {first_name} {first}"))
                .help("the VPC, pods and Services need ranges of their own");
            problems.add(second_text.position.or(first_text.position), fault);
        }
    }
    let [vpc, pods, services] = parsed;
    Some(Ranges { vpc: vpc?, pods: pods?, services: services? })
}

fn reserved_ranges() -> [(Ipv4Net, &'static str); 4] {
    let range = |a, b, prefix| Ipv4Net::new_assert([a, b, 0, 0].into(), prefix);
    [
        (range(0, 0, 8), "\"this network\""),
        (range(127, 0, 8), "the machine itself"),
        (range(169, 254, 16), "link-local addresses and instance metadata"),
        (range(224, 0, 3), "multicast and future use"),
    ]
}

/// Decides where subnets come from, and checks an adopted network.
pub(super) fn build_layout(
    file: &ClusterFile,
    location: &Location,
    problems: &mut Problems,
) -> Option<NetworkLayout> {
    let network = &file.network;
    if let Some(existing) = &network.existing {
        check_exclusions(network, problems);
        return build_adopted(existing, file.api.public, location, problems);
    }
    match network.topology.value {
        Topology::Private => Some(NetworkLayout::Private(network.nat.value)),
        Topology::Public if network.nat.is_written() => {
            let fault = Fault::new("nat is for private topology only").help(
                "remove nat, or write topology: private; public machines reach the internet by themselves",
            );
            problems.add(network.nat.position, fault);
            None
        }
        Topology::Public => Some(NetworkLayout::Public),
    }
}

fn check_exclusions(network: &NetworkFile, problems: &mut Problems) {
    if !network.vpc_cidr.is_written() {
        let position = network.existing.as_ref().and_then(|existing| existing.position);
        let fault = Fault::new("an existing VPC needs its range in vpcCIDR")
            .help("write network.vpcCIDR as AWS shows it");
        problems.add(position, fault);
    }
    if network.nat.is_written() {
        let fault = Fault::new("nat cannot be chosen for an existing VPC")
            .help("remove nat: its routes are used as they are");
        problems.add(network.nat.position, fault);
    }
    if network.topology.is_written() {
        let fault = Fault::new("topology cannot be chosen for an existing VPC").help(
            "remove topology: machines go to the private subnets if there are any, else to the public ones",
        );
        problems.add(network.topology.position, fault);
    }
}

fn build_adopted(
    existing: &At<ExistingNetworkFile>,
    public_api: bool,
    location: &Location,
    problems: &mut Problems,
) -> Option<NetworkLayout> {
    let vpc: Option<VpcId> = problems.parse(&existing.value.vpc_id);
    let mut ids = BTreeSet::new();
    let mut subnets: Vec<AdoptedSubnet> = Vec::new();
    for subnet in &existing.value.subnets {
        let id: Option<SubnetId> = problems.parse(&subnet.value.id);
        let zone: Option<AvailabilityZone> = problems.parse(&subnet.value.availability_zone);
        let (Some(id), Some(zone)) = (id, zone) else { continue };
        let kind = if subnet.value.public { "public" } else { "private" };
        if !ids.insert(id.clone()) {
            problems.add(subnet.value.id.position, Fault::new(format!("subnet {id} is named twice")));
        } else if location.availability_zones.as_ref().is_some_and(|zones| !zones.contains(&zone)) {
            let fault =
                Fault::new(format!("subnet {id} is in {zone}, which is not one of availabilityZones"));
            problems.add(subnet.value.availability_zone.position, fault);
        } else if subnets.iter().any(|other| other.zone == zone && other.public == subnet.value.public) {
            let fault = Fault::new(format!("{zone} has two {kind} subnets"))
                .help("name the one that the cluster is to use");
            problems.add(subnet.position, fault);
        } else {
            subnets.push(AdoptedSubnet { id, zone, public: subnet.value.public });
        }
    }
    if subnets.len() == existing.value.subnets.len()
        && let Some(zones) = &location.availability_zones
    {
        check_coverage(existing, zones, &subnets, public_api, problems);
    }
    Some(NetworkLayout::Adopted { vpc: vpc?, subnets })
}

/// Every availability zone needs a subnet for machines and, for a load balancer on the internet, a public one.
fn check_coverage(
    existing: &At<ExistingNetworkFile>,
    zones: &[AvailabilityZone],
    subnets: &[AdoptedSubnet],
    public_api: bool,
    problems: &mut Problems,
) {
    let has =
        |zone: &AvailabilityZone, public: bool| subnets.iter().any(|s| s.zone == *zone && s.public == public);
    let private_machines = subnets.iter().any(|subnet| !subnet.public);
    for zone in zones {
        if !has(zone, true) && !has(zone, false) {
            let fault = Fault::new(format!("no subnet is named for {zone}"))
                .help(format!("name a subnet of {zone}, or remove it from availabilityZones"));
            problems.add(existing.position, fault);
        } else if private_machines && !has(zone, false) {
            let fault = Fault::new(format!("{zone} has no private subnet, but other availability zones do"))
                .help("machines are in private subnets in every availability zone or in none");
            problems.add(existing.position, fault);
        } else if public_api && !has(zone, true) {
            let fault = Fault::new(format!("{zone} has no public subnet for the API server's load balancer"))
                .help("name one, or write api: {public: false}");
            problems.add(existing.position, fault);
        }
    }
}

/// Whether the pod range holds every node, and each subnet every machine that may run in it.
pub(super) fn check_room(
    file: &ClusterFile,
    ranges: &Ranges,
    layout: &NetworkLayout,
    problems: &mut Problems,
) {
    let most = |pool: &super::super::file::PoolFile| {
        u64::from(pool.max_count.as_ref().map_or(pool.count.value, |most| most.value))
    };
    let workers: u64 = file.pools.iter().map(|pool| most(&pool.value)).sum();
    let nodes = workers + u64::from(file.controllers.count.value);
    let fit = nodes_that_fit(ranges.pods);
    if nodes > u64::from(fit) {
        let needed = u64::BITS - (nodes - 1).leading_zeros();
        let help = u8::try_from(needed)
            .ok()
            .and_then(|bits| NODE_PREFIX.checked_sub(bits))
            .filter(|prefix| *prefix >= 8);
        let holds = count_of(fit, "node");
        let fault = Fault::new(format!("podCIDR {} holds {holds}, but there may be {nodes}", ranges.pods));
        let fault = match help {
            Some(prefix) => {
                fault.help(format!("use a /{prefix} or larger: each node takes a /{NODE_PREFIX}"))
            }
            None => fault.help("lower maxCount: no range is that large"),
        };
        problems.add(file.kubernetes.pod_cidr.position, fault);
    }
    let zones = file.availability_zones.value.len().max(1);
    let subnets = match layout {
        NetworkLayout::Public => zones,
        NetworkLayout::Private(_) => zones * 2,
        NetworkLayout::Adopted { .. } => return,
    };
    let spread = |machines: u64, zones: usize| machines.div_ceil(zones as u64);
    let in_one_zone: u64 = file
        .pools
        .iter()
        .map(|pool| {
            spread(
                most(&pool.value),
                pool.value.availability_zones.as_ref().map_or(zones, |z| z.value.len().max(1)),
            )
        })
        .sum::<u64>()
        + spread(u64::from(file.controllers.count.value), zones)
        + spread(u64::from(file.etcd.count.value), zones);
    let prefix = subnet_prefix(ranges.vpc, subnets);
    let fault = if prefix > SMALLEST_SUBNET {
        Fault::new(format!(
            "vpcCIDR {} cannot be cut into {subnets} subnets: AWS's smallest is a /{SMALLEST_SUBNET}",
            ranges.vpc
        ))
    } else if in_one_zone > u64::from(machines_that_fit(prefix)) {
        let fit = machines_that_fit(prefix);
        Fault::new(format!(
            "vpcCIDR {} gives {subnets} subnets of a /{prefix}, each with room for {fit} machines, but {in_one_zone} may be in one availability zone",
            ranges.vpc
        ))
    } else {
        return;
    };
    problems.add(file.network.vpc_cidr.position, fault.help("use a larger vpcCIDR, up to a /16"));
}
