//! The NVIDIA drivers of GPU pools, which must exist for the image.

use super::Finding;
use super::finding::SubjectFindings;
use crate::aws::Clients;
use crate::config::Cluster;
use crate::deploy::inputs::driver_check::{WHY_DRIVERS_MATTER, check_drivers};

pub(super) async fn check_driver_releases(cluster: &Cluster, clients: &Clients, image: &str) -> Vec<Finding> {
    let mut findings = SubjectFindings::about("driver");
    for doubt in check_drivers(clients, cluster, image).await {
        if doubt.is_refusal() {
            findings.refuse(doubt.what(), WHY_DRIVERS_MATTER, doubt.fix());
        } else {
            findings.warn(doubt.what(), WHY_DRIVERS_MATTER, doubt.fix());
        }
    }
    findings.into_list()
}
