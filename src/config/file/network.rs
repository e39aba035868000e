//! The network section of cluster.yaml.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::At;

/// The network, created or adopted.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct NetworkFile {
    /// The CIDR range of the VPC; for an adopted VPC, the range it has.
    #[serde(rename = "vpcCIDR")]
    pub vpc_cidr: At<String>,
    /// Whether machines have public addresses or are behind NAT gateways.
    pub topology: At<Topology>,
    /// In private topology: one NAT gateway per availability zone, or one for all.
    pub nat: At<Nat>,
    /// An existing VPC, which is never changed.
    pub existing: Option<At<ExistingNetworkFile>>,
}

/// Where machines run.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Topology {
    /// In public subnets, with public addresses and closed security groups.
    Public,
    /// In private subnets behind NAT gateways.
    Private,
}

/// How many NAT gateways there are.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Nat {
    /// One per availability zone: the loss of one leaves the others connected.
    PerZone,
    /// One for all: cheaper, but the loss of its availability zone disconnects everything.
    Shared,
}

/// A VPC that exists already; infra changes and tags nothing in it.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExistingNetworkFile {
    /// The VPC.
    pub vpc_id: At<String>,
    /// The subnets that the cluster uses.
    pub subnets: Vec<At<ExistingSubnetFile>>,
}

/// A subnet that exists already.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExistingSubnetFile {
    /// The subnet.
    pub id: At<String>,
    /// The availability zone of the subnet.
    pub availability_zone: At<String>,
    /// Whether the route table of the subnet has a route to an internet gateway.
    pub public: bool,
}
