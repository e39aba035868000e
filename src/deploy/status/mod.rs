//! How a cluster is: stacks, API, DNS, etcd, nodes, image, snapshots, file system and certificates in one report, drift in another, all
//! clusters of an account in a list.
//!
//! In: clients, the Kubernetes API, the certificates on disk and the time. Out: `StatusReport`, `DriftReport`, `ClusterList`. Nothing is changed here.

mod block;
pub(crate) mod drift;
mod etcd;
mod image;
pub(crate) mod list;
pub(crate) mod prometheus;
pub(crate) mod report;
pub(crate) mod schedule;
pub(crate) mod shape;
pub(crate) mod snapshot;
mod stack;
mod unreadable;
