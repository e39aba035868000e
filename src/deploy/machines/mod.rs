//! Machines of Auto Scaling groups: failed launches, what consoles say, and the replacement of outdated nodes.
//!
//! In: clients and the Kubernetes API. Out: launch failures, evidence, replaced nodes. Stacks are not changed here.

pub(crate) mod az_rebalance;
pub(crate) mod evidence;
pub(crate) mod expected_nodes;
pub(crate) mod launches;
pub(crate) mod node_logs;
pub(crate) mod node_rollout;
pub(crate) mod pool_launches;
pub(crate) mod pool_limits;
