//! What an operator needs around a deployment: the IAM policies that commands and machines require, prices and budgets, and the
//! KMS key that a cluster begins with.
//!
//! In: a blueprint. Out: policies, prices and what exceeds a budget. Nothing is deployed here.

mod budget;
mod cluster_key;
mod cost_estimate;
mod policy;
mod price_list;
#[cfg(test)]
mod price_list_tests;

pub(crate) use budget::{BudgetError, HOW_TO_GET_PRICES, budget_by_old_prices, check_budget};
pub(crate) use cluster_key::{ClusterKeyError, KeyOrigin, ensure_cluster_key};
pub(crate) use cost_estimate::{CostEstimate, estimate_costs};
pub(crate) use policy::{Policy, operator_policies, permissions_boundary};
pub(crate) use price_list::{LookedUpPrices, look_up_prices};
