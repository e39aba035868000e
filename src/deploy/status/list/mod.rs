//! Every cluster of an account, from three listings per region: stacks, Auto Scaling groups, and the images that the stacks name.
//!
//! In: clients and the time. Out: `ClusterList`. Calls grow with the pages of those listings, never with the clusters: a page has up to
//! 100 groups or 200 images, and as many stacks as CloudFormation puts into one. A cluster's own API is not called, so health here is what
//! AWS knows.

mod cluster;
mod reading;
pub(crate) mod shape;

pub(crate) use reading::{Listing, RegionPrices, list_region, list_regions};
