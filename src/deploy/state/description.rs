//! A stack's resources in the words of cluster.yaml.

use crate::blueprint::{BlockAction, ScheduledAction, SecurityGroup, StackPart, is_end_of_pool};
use crate::config::values::PoolName;
use crate::config::{Cluster, Pool};
use crate::plural::count_of;
use crate::well_known::internal_domain;

/// What a resource is, for a reader who knows cluster.yaml and not our templates.
#[must_use]
pub(crate) fn describe_resource(cluster: &Cluster, part: &StackPart, logical_id: &str) -> String {
    match part {
        StackPart::Pool(name) => describe_pool_resource(cluster, name, logical_id),
        StackPart::ControlPlane => describe_control_plane_resource(cluster, logical_id),
        StackPart::Network | StackPart::Storage => describe_shared_resource(cluster, logical_id),
    }
}

fn describe_pool_resource(cluster: &Cluster, name: &PoolName, logical_id: &str) -> String {
    let Some(pool) = cluster.pool(name) else {
        return format!("pool {name}");
    };
    let types: Vec<String> = pool.instance_types.iter().map(ToString::to_string).collect();
    let zones: Vec<String> = pool.availability_zones.iter().map(ToString::to_string).collect();
    let spot = if pool.spot { " spot" } else { "" };
    let what = format!("pool {name}, {} × {}{spot} in {}", pool.count, types.join(" or "), zones.join(", "));
    match logical_id {
        "Nodes" => what,
        "NodeRole" | "NodeProfile" => format!("the role of pool {name}"),
        "NodeLaunchTemplate" => format!("how machines of pool {name} are started"),
        "PlacementGroup" => format!("the placement group of pool {name}"),
        "EfaGroup" | "EfaFromEfaAll" | "EfaToEfaAll" => format!("the security group of EFA in pool {name}"),
        id => match ScheduledAction::of_pool(pool).into_iter().find(|action| action.resource == id) {
            Some(action) => describe_action(pool, &action),
            None if is_end_of_pool(id) => format!("the end of pool {name}"),
            None if id.starts_with("At") => format!("an entry of the schedule of pool {name}"),
            None => match BlockAction::describe(id) {
                Some(what) => format!("{what} of pool {name}"),
                None => format!("pool {name}"),
            },
        },
    }
}

fn describe_action(pool: &Pool, action: &ScheduledAction) -> String {
    let name = &pool.name;
    if let (true, Some(end)) = (is_end_of_pool(&action.resource), &pool.schedule.expires) {
        return format!("the end of pool {name} at {end}");
    }
    let zone = action.time_zone.as_deref().unwrap_or("UTC");
    let machines = match action.size.desired {
        0 => "no machines".to_owned(),
        desired => count_of(desired, "machine"),
    };
    format!("the schedule of pool {name}: {machines} at {} {zone}", action.recurrence)
}

fn describe_control_plane_resource(cluster: &Cluster, logical_id: &str) -> String {
    if let Some(member) = number_in(logical_id, "Etcd") {
        let zone = cluster.etcd_availability_zone(member);
        let machine = &cluster.etcd.instance_type;
        let detail = if logical_id.starts_with("EtcdVolume") {
            format!("volume of {} GiB in {zone}", cluster.etcd.volume_gib)
        } else {
            format!("{machine} in {zone}")
        };
        return format!("etcd member {member}, {detail}");
    }
    let zones: Vec<String> = cluster.availability_zones.iter().map(ToString::to_string).collect();
    match logical_id {
        "Controllers" | "ControllerLaunchTemplate" => {
            let controllers = &cluster.controllers;
            format!(
                "controllers, {} × {} in {}",
                controllers.count,
                controllers.instance_type,
                zones.join(", ")
            )
        }
        "ControllerRole" | "ControllerProfile" => "the controllers' role".to_owned(),
        "ApiRecord" => "the API's name inside the VPC".to_owned(),
        id if id.starts_with("Public") => "the API's public load balancer".to_owned(),
        id if id.starts_with("Internal") => "the API's internal load balancer".to_owned(),
        id => id.to_owned(),
    }
}

fn describe_shared_resource(cluster: &Cluster, logical_id: &str) -> String {
    let zone = |index: u32| {
        cluster.availability_zones.get(index as usize).map_or_else(String::new, |zone| format!(" in {zone}"))
    };
    if let Some(index) = number_in(logical_id, "MountTarget") {
        return format!("mount target{}", zone(index));
    }
    if let Some(index) = number_in(logical_id, "PublicSubnet") {
        return format!("public subnet{}", zone(index));
    }
    if let Some(index) = number_in(logical_id, "PrivateSubnet") {
        return format!("private subnet{}", zone(index));
    }
    if let Some(index) = number_in(logical_id, "Nat") {
        return format!("NAT gateway{}", zone(index));
    }
    match logical_id {
        "Vpc" => format!("VPC {}", cluster.network.vpc_range),
        "FileSystem" => "the shared file system".to_owned(),
        "FileSystemRecord" => "the file system's name inside the VPC".to_owned(),
        "PrivateZone" => format!("private hosted zone {}", internal_domain(&cluster.name)),
        "InternetGateway" | "GatewayAttachment" => "the VPC's internet gateway".to_owned(),
        "S3Endpoint" => "the VPC's way to S3".to_owned(),
        id if id.starts_with("Public") && id.contains("Route") => "routes of the public subnets".to_owned(),
        id if id.starts_with("Private") && id.contains("Route") => "routes of the private subnets".to_owned(),
        id => describe_group(id).or_else(|| describe_rule(id)).unwrap_or_else(|| id.to_owned()),
    }
}

fn describe_group(logical_id: &str) -> Option<String> {
    Some(format!("security group of {}", group_named(logical_id.strip_suffix("Group")?)?))
}

/// A rule, named as `EtcdFromControllersTcp2379`.
fn describe_rule(logical_id: &str) -> Option<String> {
    let (to, rest) = logical_id.split_once("From")?;
    let (from, port) = rest.split_at(rest.rfind("Tcp").or_else(|| rest.rfind("Udp"))?);
    let from = match (from.starts_with("Range"), port) {
        (true, "Tcp22") => "sshAllowedCIDRs",
        (true, _) => "api.allowedCIDRs",
        (false, _) => group_named(from)?,
    };
    Some(format!("the way from {from} to {}, port {}", group_named(to)?, port.get(3..)?))
}

fn group_named(name: &str) -> Option<&'static str> {
    use SecurityGroup::{Controllers, Etcd, FileSystem, InternalLoadBalancer, Nodes, PublicLoadBalancer};
    let groups = [Etcd, Controllers, Nodes, InternalLoadBalancer, PublicLoadBalancer, FileSystem];
    let found = groups.into_iter().find(|group| group.resource().strip_suffix("Group") == Some(name));
    found.map(SecurityGroup::description)
}

/// The number at the end of a name that begins so.
fn number_in(logical_id: &str, prefix: &str) -> Option<u32> {
    let rest = logical_id.strip_prefix(prefix)?;
    let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok()
}
