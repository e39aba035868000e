//! Rendered assets into findings: what Ignition, Kubernetes or AWS would refuse, before anything leaves the machine.
//!
//! In: rendered assets, and the team's own configs among them. Out: what is wrong with them, and where. No AWS, no disk.

mod assets;
mod finding;
mod ignition;
mod references;
mod schema;
mod stack;

pub use assets::check_assets;
pub use finding::{Finding, Findings};
pub use ignition::check_ignition;
pub use references::referenced_names;
pub use schema::{create_only_properties, handler_permissions, is_function};
pub use stack::check_stack;
