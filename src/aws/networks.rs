//! Existing networks: VPCs, subnets, routes, resolvers, elastic addresses.

use aws_sdk_ec2::types::{
    AttributeBooleanValue, DhcpConfiguration, DhcpOptions, Route, RouteState, VpcAttributeName,
};

use super::actions::{self, Action};
use super::machines::ec2_filter;
use super::{AwsError, Clients};

/// A VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vpc {
    /// The IPv4 ranges of the VPC, the one it was created with first.
    pub ranges: Vec<String>,
    /// The DHCP options of the VPC; `default` if it has none.
    pub dhcp_options: String,
}

/// What a VPC's resolver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VpcNames {
    /// Whether Amazon's resolver answers.
    pub resolver: bool,
    /// Whether machines get names.
    pub host_names: bool,
}

/// A subnet as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExistingSubnet {
    /// The id of the subnet.
    pub id: String,
    /// The VPC of the subnet.
    pub vpc: String,
    /// The availability zone of the subnet.
    pub zone: String,
}

/// A route table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteTable {
    /// The id of the route table.
    pub id: String,
    /// Whether it serves the subnets that have no table of their own.
    pub main: bool,
    /// The subnets it is attached to.
    pub subnets: Vec<String>,
    /// The target of the default route (`igw-…`, `nat-…`), if that works.
    pub default_target: Option<String>,
}

impl Clients {
    /// A VPC by its id.
    pub(crate) async fn vpc(&self, id: &str) -> Result<Option<Vpc>, AwsError> {
        let answer = self.ec2.describe_vpcs().vpc_ids(id).send().await;
        match answer.map_err(AwsError::of(actions::EC2_DESCRIBE_VPCS)) {
            Ok(answer) => Ok(answer.vpcs.unwrap_or_default().into_iter().next().map(vpc_of)),
            Err(error) if error.has_code("InvalidVpcID.NotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a VPC's resolver does.
    pub(crate) async fn vpc_names(&self, id: &str) -> Result<VpcNames, AwsError> {
        const OPERATION: Action = actions::EC2_DESCRIBE_VPC_ATTRIBUTE;
        let request = self.ec2.describe_vpc_attribute().vpc_id(id);
        let resolver = request.clone().attribute(VpcAttributeName::EnableDnsSupport).send();
        let host_names = request.attribute(VpcAttributeName::EnableDnsHostnames).send();
        let (resolver, host_names) = tokio::join!(Box::pin(resolver), Box::pin(host_names));
        let resolver = resolver.map_err(AwsError::of(OPERATION))?.enable_dns_support;
        let host_names = host_names.map_err(AwsError::of(OPERATION))?.enable_dns_hostnames;
        Ok(VpcNames { resolver: is_on(resolver.as_ref()), host_names: is_on(host_names.as_ref()) })
    }

    /// The name servers that DHCP options hand out, as they say it (`AmazonProvidedDNS`); none without options.
    pub(crate) async fn name_servers(&self, dhcp_options: &str) -> Result<Vec<String>, AwsError> {
        if dhcp_options == "default" {
            return Ok(Vec::new());
        }
        let answer = self.ec2.describe_dhcp_options().dhcp_options_ids(dhcp_options).send().await;
        let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_DHCP_OPTIONS))?;
        let settings = answer.dhcp_options().iter().flat_map(DhcpOptions::dhcp_configurations);
        let servers = settings.filter(|setting| setting.key() == Some("domain-name-servers"));
        let values = servers.flat_map(DhcpConfiguration::values);
        Ok(values.filter_map(|value| value.value().map(str::to_owned)).collect())
    }

    /// Those of the subnets that exist.
    pub(crate) async fn subnets(&self, ids: &[String]) -> Result<Vec<ExistingSubnet>, AwsError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.ec2.describe_subnets().filters(ec2_filter("subnet-id", ids));
        let found = request.into_paginator().items().send().try_collect().await;
        let found = found.map_err(AwsError::of(actions::EC2_DESCRIBE_SUBNETS))?;
        let subnets = found.into_iter().map(|subnet| ExistingSubnet {
            id: subnet.subnet_id.unwrap_or_default(),
            vpc: subnet.vpc_id.unwrap_or_default(),
            zone: subnet.availability_zone.unwrap_or_default(),
        });
        Ok(subnets.collect())
    }

    /// Every route table of a VPC.
    pub(crate) async fn route_tables(&self, vpc: &str) -> Result<Vec<RouteTable>, AwsError> {
        let request = self.ec2.describe_route_tables().filters(ec2_filter("vpc-id", [vpc]));
        let found = request.into_paginator().items().send().try_collect().await;
        Ok(found
            .map_err(AwsError::of(actions::EC2_DESCRIBE_ROUTE_TABLES))?
            .iter()
            .map(route_table_of)
            .collect())
    }

    /// How many elastic addresses the account has in the region, those aside that services manage for themselves.
    pub(crate) async fn elastic_addresses(&self) -> Result<u32, AwsError> {
        let answer = self.ec2.describe_addresses().send().await;
        let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_ADDRESSES))?;
        let own = answer.addresses().iter().filter(|address| address.service_managed().is_none());
        Ok(u32::try_from(own.count()).unwrap_or(u32::MAX))
    }
}

fn vpc_of(vpc: aws_sdk_ec2::types::Vpc) -> Vpc {
    let mut ranges: Vec<String> = vpc.cidr_block.into_iter().collect();
    let associated = vpc.cidr_block_association_set.unwrap_or_default();
    for range in associated.into_iter().filter_map(|association| association.cidr_block) {
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }
    Vpc { ranges, dhcp_options: vpc.dhcp_options_id.unwrap_or_default() }
}

fn route_table_of(table: &aws_sdk_ec2::types::RouteTable) -> RouteTable {
    let associations = table.associations();
    let default = table.routes().iter().find(|route| {
        route.destination_cidr_block() == Some("0.0.0.0/0") && route.state() != Some(&RouteState::Blackhole)
    });
    RouteTable {
        id: table.route_table_id().unwrap_or_default().to_owned(),
        main: associations.iter().any(|association| association.main() == Some(true)),
        subnets: associations
            .iter()
            .filter_map(|association| association.subnet_id().map(str::to_owned))
            .collect(),
        default_target: default.and_then(target_of).map(str::to_owned),
    }
}

fn target_of(route: &Route) -> Option<&str> {
    let gateway = route.gateway_id().or(route.nat_gateway_id()).or(route.transit_gateway_id());
    let machine = route.network_interface_id().or(route.instance_id());
    gateway.or(machine).or(route.vpc_peering_connection_id()).or(route.core_network_arn())
}

fn is_on(attribute: Option<&AttributeBooleanValue>) -> bool {
    attribute.and_then(AttributeBooleanValue::value) == Some(true)
}
