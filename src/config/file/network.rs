//! The network section of cluster.yaml.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::At;

/// The network, made or adopted.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct NetworkFile {
    /// The VPC's range; of an adopted VPC, the range it has.
    #[serde(rename = "vpcCIDR")]
    pub vpc_cidr: At<String>,
    /// Whether machines have public addresses or stand behind NAT gateways.
    pub topology: At<Topology>,
    /// In private topology: one NAT gateway a zone, or one for all.
    pub nat: At<Nat>,
    /// A VPC that exists already and is used as it is.
    pub existing: Option<At<ExistingNetworkFile>>,
}

/// Where machines stand.
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
    /// One a zone: a zone's loss leaves the others connected.
    PerZone,
    /// One for all: cheaper, and its zone's loss disconnects everything.
    Shared,
}

/// A VPC that exists already; nothing of it is changed or tagged.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExistingNetworkFile {
    /// The VPC.
    pub vpc_id: At<String>,
    /// Its subnets that the cluster uses.
    pub subnets: Vec<At<ExistingSubnetFile>>,
}

/// A subnet that exists already.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExistingSubnetFile {
    /// The subnet.
    pub id: At<String>,
    /// The zone it is in.
    pub availability_zone: At<String>,
    /// Whether its route table leads to an internet gateway.
    pub public: bool,
}
