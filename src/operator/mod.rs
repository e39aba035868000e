//! What an operator needs around a deployment: the IAM policies that commands and machines require, what AWS bills for, and the
//! KMS key that a cluster begins with.
//!
//! In: a blueprint. Out: policies and cost items. Nothing is deployed here.

mod cluster_key;
mod cost_estimate;
mod policy;

pub(crate) use cluster_key::{ClusterKeyError, KeyOrigin, ensure_cluster_key};
pub(crate) use cost_estimate::{CostEstimate, estimate_costs};
pub(crate) use policy::{Policy, operator_policies, permissions_boundary};
