//! The network's values: subnets, gateways, security groups and their rules.

use serde::Serialize;
use serde_json::json;

use super::json::Json;
use crate::blueprint::{Blueprint, Rule, SecurityGroup, Source, Subnet, SubnetSource};
use crate::config::values::AvailabilityZone;

#[derive(Serialize)]
pub(super) struct NetworkValues {
    created: bool,
    vpc_cidr: String,
    vpc_reference: Json,
    subnets: Vec<SubnetValues>,
    nat_gateways: Vec<NatValues>,
    private_route_tables: Vec<RouteTableValues>,
}

#[derive(Clone, Serialize)]
pub(super) struct SubnetValues {
    resource: String,
    zone: String,
    zone_reference: Json,
    kind: &'static str,
    public: bool,
    cidr: String,
    reference: Json,
    route_table: String,
}

#[derive(Serialize)]
pub(super) struct NatValues {
    index: usize,
    zone: String,
    subnet: String,
}

#[derive(Serialize)]
pub(super) struct RouteTableValues {
    resource: String,
    zone: String,
    nat_index: usize,
}

#[derive(Serialize)]
pub(super) struct GroupValues {
    resource: &'static str,
    name: &'static str,
    description: &'static str,
    of_nodes: bool,
}

#[derive(Serialize)]
pub(super) struct RuleValues {
    resource: String,
    /// The logical id of the same rule for what leaves a security group.
    outbound_resource: String,
    to: &'static str,
    protocol: &'static str,
    port: Option<u16>,
    from_group: Option<&'static str>,
    from_range: Option<String>,
    why: &'static str,
}

pub(super) fn group_values(group: SecurityGroup) -> GroupValues {
    GroupValues {
        resource: group.resource(),
        name: group.name(),
        description: group.description(),
        of_nodes: matches!(group, SecurityGroup::Controllers | SecurityGroup::Nodes),
    }
}

pub(super) fn rule_values(rule: &Rule) -> RuleValues {
    let (from_group, from_range) = match &rule.from {
        Source::SecurityGroup(group) => (Some(group.resource()), None),
        Source::Range(range) => (None, Some(range.to_string())),
    };
    let (to, protocol, port, why) = (rule.to.resource(), rule.protocol.as_str(), rule.port, rule.why);
    let outbound_resource = rule.outbound_resource();
    RuleValues {
        resource: rule.resource(),
        outbound_resource,
        to,
        protocol,
        port,
        from_group,
        from_range,
        why,
    }
}

pub(super) fn subnet_values(subnet: &Subnet, blueprint: &Blueprint) -> SubnetValues {
    let (cidr, reference) = match &subnet.source {
        SubnetSource::Created(range) => (range.to_string(), json!({"Ref": subnet.resource})),
        SubnetSource::Adopted(id) => (String::new(), json!(id)),
    };
    let shared = blueprint.network.nat_availability_zones.len() == 1;
    SubnetValues {
        resource: subnet.resource.clone(),
        zone: subnet.zone.to_string(),
        zone_reference: zone_reference(&subnet.zone),
        kind: if subnet.public { "public" } else { "private" },
        public: subnet.public,
        cidr,
        reference: reference.into(),
        route_table: match subnet.public {
            true => "PublicRoutes".to_owned(),
            false if shared => "PrivateRoutes0".to_owned(),
            false => format!("PrivateRoutes{}", subnet.zone_index),
        },
    }
}

pub(super) fn network_values(blueprint: &Blueprint) -> NetworkValues {
    let network = &blueprint.network;
    let zone = |index: usize| blueprint.cluster.availability_zones[index].to_string();
    NetworkValues {
        created: network.adopted_vpc.is_none(),
        vpc_cidr: blueprint.cluster.network.vpc_range.to_string(),
        vpc_reference: match &network.adopted_vpc {
            Some(id) => json!(id).into(),
            None => json!({"Ref": "Vpc"}).into(),
        },
        subnets: network.subnets.iter().map(|subnet| subnet_values(subnet, blueprint)).collect(),
        nat_gateways: network
            .nat_availability_zones
            .iter()
            .map(|index| NatValues {
                index: *index,
                zone: zone(*index),
                subnet: format!("PublicSubnet{index}"),
            })
            .collect(),
        private_route_tables: network
            .nat_availability_zones
            .iter()
            .map(|index| RouteTableValues {
                resource: format!("PrivateRoutes{index}"),
                zone: zone(*index),
                nat_index: *index,
            })
            .collect(),
    }
}

/// An availability zone as the region of the stack and a letter.
pub(super) fn zone_reference(zone: &AvailabilityZone) -> Json {
    let letter = zone.as_str().chars().next_back().unwrap_or('a');
    json!({"Fn::Sub": format!("${{AWS::Region}}{letter}")}).into()
}
