//! Subnets and gateways: created in the range of the VPC, or those of an adopted VPC.

use ipnet::Ipv4Net;

use crate::config::address_plan::subnet_prefix;
use crate::config::values::{AvailabilityZone, SubnetId, VpcId};
use crate::config::{Cluster, Nat, NetworkLayout};

/// The network of a cluster.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// The id of the adopted VPC; `None` if infra creates one.
    pub adopted_vpc: Option<VpcId>,
    /// Every subnet: public ones first, each in the order of the availability zones.
    pub subnets: Vec<Subnet>,
    /// The indexes of the availability zones that have a NAT gateway.
    pub nat_availability_zones: Vec<usize>,
    /// Whether machines have public addresses.
    pub public_machines: bool,
}

/// A subnet, created or adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The logical id.
    pub resource: String,
    /// The availability zone.
    pub zone: AvailabilityZone,
    /// The index of the availability zone in cluster.yaml.
    pub zone_index: usize,
    /// Whether the subnet has a route to an internet gateway.
    pub public: bool,
    /// Whether infra creates the subnet or uses one that exists.
    pub source: SubnetSource,
}

/// Where a subnet comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubnetSource {
    /// infra creates the subnet with this range.
    Created(Ipv4Net),
    /// The subnet with this id exists.
    Adopted(SubnetId),
}

impl NetworkPlan {
    pub(super) fn new(cluster: &Cluster) -> Self {
        match &cluster.network.layout {
            NetworkLayout::Public => Self::created(cluster, false, Vec::new()),
            NetworkLayout::Private(Nat::PerZone) => {
                Self::created(cluster, true, (0..cluster.availability_zones.len()).collect())
            }
            NetworkLayout::Private(Nat::Shared) => Self::created(cluster, true, vec![0]),
            NetworkLayout::Adopted { vpc, subnets } => {
                let mut plan: Vec<Subnet> = subnets
                    .iter()
                    .filter_map(|subnet| {
                        let zone_index =
                            cluster.availability_zones.iter().position(|zone| *zone == subnet.zone)?;
                        Some(Subnet {
                            resource: resource_name(subnet.public, zone_index),
                            zone: subnet.zone.clone(),
                            zone_index,
                            public: subnet.public,
                            source: SubnetSource::Adopted(subnet.id.clone()),
                        })
                    })
                    .collect();
                plan.sort_by_key(|subnet| (!subnet.public, subnet.zone_index));
                let public_machines = plan.iter().all(|subnet| subnet.public);
                Self {
                    adopted_vpc: Some(vpc.clone()),
                    subnets: plan,
                    nat_availability_zones: Vec::new(),
                    public_machines,
                }
            }
        }
    }

    fn created(cluster: &Cluster, private: bool, nat_availability_zones: Vec<usize>) -> Self {
        let kinds: &[bool] = if private { &[true, false] } else { &[true] };
        let positions = kinds
            .iter()
            .flat_map(|public| cluster.availability_zones.iter().enumerate().map(|zone| (*public, zone)));
        let range = cluster.network.vpc_range;
        let prefix = subnet_prefix(range, kinds.len() * cluster.availability_zones.len());
        // The rules of cluster.yaml ensure that they fit.
        let ranges = range.subnets(prefix).into_iter().flatten();
        let subnets = positions.zip(ranges).map(|((public, (zone_index, zone)), range)| Subnet {
            resource: resource_name(public, zone_index),
            zone: zone.clone(),
            zone_index,
            public,
            source: SubnetSource::Created(range),
        });
        Self {
            adopted_vpc: None,
            subnets: subnets.collect(),
            nat_availability_zones,
            public_machines: !private,
        }
    }

    /// The subnets of the machines, one per availability zone.
    pub fn machine_subnets(&self) -> impl Iterator<Item = &Subnet> {
        self.subnets.iter().filter(|subnet| subnet.public == self.public_machines)
    }

    /// The public subnets, one per availability zone.
    pub fn public_subnets(&self) -> impl Iterator<Item = &Subnet> {
        self.subnets.iter().filter(|subnet| subnet.public)
    }
}

fn resource_name(public: bool, zone_index: usize) -> String {
    format!("{}Subnet{zone_index}", if public { "Public" } else { "Private" })
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::{NetworkPlan, SubnetSource};
    use crate::document::Problems;

    fn ranges(plan: &NetworkPlan) -> Vec<String> {
        let text = |source: &SubnetSource| match source {
            SubnetSource::Created(range) => range.to_string(),
            SubnetSource::Adopted(id) => id.to_string(),
        };
        plan.subnets.iter().map(|subnet| format!("{} {}", subnet.resource, text(&subnet.source))).collect()
    }

    #[test]
    fn subnets_are_cut_from_the_vpc() -> Result<(), Problems> {
        assert_eq!(ranges(&NetworkPlan::new(&cluster("")?)), ["PublicSubnet0 10.0.0.0/16"]);
        let private = NetworkPlan::new(&cluster(", network: {topology: private}")?);
        assert_eq!(ranges(&private), ["PublicSubnet0 10.0.0.0/17", "PrivateSubnet0 10.0.128.0/17"]);
        assert_eq!(private.machine_subnets().count(), 1);
        assert!(!private.public_machines);
        Ok(())
    }
}
