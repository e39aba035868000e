//! The grant that lets Auto Scaling use a cluster's key for disks, by its name.

/// The name of a cluster's grant, by which it is found again.
#[must_use]
pub(crate) fn grant_name(cluster: &str) -> String {
    format!("infra-{cluster}-disks")
}
