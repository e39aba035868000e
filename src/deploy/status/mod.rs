//! How a cluster is: stacks, API, DNS, nodes, file system and certificates in one report.
//!
//! In: clients, the Kubernetes API and the certificates on disk. Out: `StatusReport`. Nothing is changed here.

pub(crate) mod report;
pub(crate) mod shape;
