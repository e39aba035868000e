//! What an operator needs around a deployment: the IAM policies that commands and machines require, and what AWS bills for.
//!
//! In: a blueprint. Out: policies and cost items. Nothing is deployed here.

mod cost_estimate;
mod policy;

pub(crate) use cost_estimate::{CostEstimate, estimate_costs};
pub(crate) use policy::{Policy, operator_policies, permissions_boundary};
