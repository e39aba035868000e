//! Whether Flatcar publishes the NVIDIA drivers of the pools for an image: machines download theirs in the first boot, and one that does
//! not get it never starts.

use std::collections::BTreeMap;

use super::image_source::version_of;
use crate::aws::{Clients, ReleaseServerError};
use crate::config::values::{NvidiaDriver, PoolName};
use crate::config::{Cluster, Pool, PoolImage};
use crate::deploy::error::DeployError;
use crate::deploy::event::Refusal;

/// Why a missing driver matters.
pub(crate) const WHY_DRIVERS_MATTER: &str =
    "machines download the driver in the first boot, and restart every five minutes if there is none";

/// Why a driver cannot be used, or could not be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DriverDoubt {
    /// Flatcar has no such driver for the version.
    Missing {
        /// The version of Flatcar.
        version: String,
        /// The driver.
        driver: NvidiaDriver,
        /// The pools that have it.
        pools: Vec<PoolName>,
        /// The drivers that Flatcar has for the version, and that can run the GPUs of these pools.
        others: Vec<NvidiaDriver>,
    },
    /// It is not known whether Flatcar has the drivers.
    Unchecked {
        /// The drivers.
        drivers: Vec<NvidiaDriver>,
        /// The image.
        image: String,
        /// Why it is not known.
        reason: String,
    },
}

impl DriverDoubt {
    /// Whether no machine should start with it.
    #[must_use]
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// What was found.
    #[must_use]
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Missing { version, driver, pools, .. } => {
                let pools = match pools.as_slice() {
                    [pool] => format!("pool {pool} has"),
                    pools => format!("pools {} have", join_names(pools)),
                };
                format!("Flatcar {version} comes without the NVIDIA driver {driver}, which {pools}")
            }
            Self::Unchecked { drivers, image, reason } => {
                format!(
                    "could not check that {image} comes with the NVIDIA driver {}: {reason}",
                    join_drivers(drivers)
                )
            }
        }
    }

    /// What to do next.
    #[must_use]
    pub(crate) fn fix(&self) -> String {
        match self {
            Self::Missing { others, .. } if others.is_empty() => format!(
                "keep an image that has it, or use another os.channel; of the drivers that infra knows ({}), this image has none for \
                 these GPUs",
                join_drivers(&NvidiaDriver::known().collect::<Vec<_>>())
            ),
            Self::Missing { pools, others, .. } => format!(
                "set nvidiaDriver of {} in cluster.yaml to a driver that this image has: {}; or keep an image that has it",
                join_names(pools),
                join_drivers(others)
            ),
            Self::Unchecked { .. } => {
                "see that this machine reaches it (HTTPS_PROXY), or name a copy of it with INFRA_RELEASE_SERVER; machines need it in any case"
                    .to_owned()
            }
        }
    }
}

fn join_drivers(drivers: &[NvidiaDriver]) -> String {
    drivers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn join_names(pools: &[PoolName]) -> String {
    pools.iter().map(PoolName::as_str).collect::<Vec<_>>().join(", ")
}

/// Compares the drivers of all pools with what Flatcar publishes for an image.
pub(crate) async fn check_drivers(clients: &Clients, cluster: &Cluster, image: &str) -> Vec<DriverDoubt> {
    let wanted = pools_by_driver(cluster);
    if wanted.is_empty() {
        return Vec::new();
    }
    let unchecked = |drivers: Vec<NvidiaDriver>, reason: String| DriverDoubt::Unchecked {
        drivers,
        image: image.to_owned(),
        reason,
    };
    let Some(version) = version_of(image) else {
        return vec![unchecked(
            wanted.into_keys().collect(),
            "the name of the image contains no version".to_owned(),
        )];
    };
    let mut doubts = Vec::new();
    let mut unknown: Vec<NvidiaDriver> = Vec::new();
    let mut failure: Option<ReleaseServerError> = None;
    for (driver, pools) in wanted {
        match is_published(clients, version, driver).await {
            Ok(true) => {}
            Ok(false) => doubts.push(DriverDoubt::Missing {
                version: version.to_owned(),
                driver,
                others: find_alternatives(clients, version, &pools).await,
                pools: pools.iter().map(|pool| pool.name.clone()).collect(),
            }),
            Err(error) => {
                unknown.push(driver);
                failure = Some(error);
            }
        }
    }
    doubts.extend(failure.map(|error| unchecked(unknown, error.to_string())));
    doubts
}

/// Refuses an image without the drivers of the pools; returns what could not be checked.
pub(crate) async fn require_drivers(
    clients: &Clients,
    cluster: &Cluster,
    image: &str,
) -> Result<Vec<DriverDoubt>, DeployError> {
    let (refused, unchecked): (Vec<DriverDoubt>, Vec<DriverDoubt>) =
        check_drivers(clients, cluster, image).await.into_iter().partition(DriverDoubt::is_refusal);
    if refused.is_empty() {
        return Ok(unchecked);
    }
    Err(DeployError::Refused(refused.iter().map(|doubt| Refusal::new(doubt.what(), doubt.fix())).collect()))
}

fn pools_by_driver(cluster: &Cluster) -> BTreeMap<NvidiaDriver, Vec<&Pool>> {
    let mut found: BTreeMap<NvidiaDriver, Vec<&Pool>> = BTreeMap::new();
    for pool in &cluster.pools {
        // The Deep Learning image contains its driver.
        if let Some(gpus) = pool.gpus.as_ref().filter(|_| pool.image == PoolImage::Flatcar) {
            found.entry(gpus.driver).or_default().push(pool);
        }
    }
    found
}

async fn is_published(
    clients: &Clients,
    version: &str,
    driver: NvidiaDriver,
) -> Result<bool, ReleaseServerError> {
    clients.has_release_file(version, &format!("flatcar-{}.gz", driver.extension())).await
}

/// The known drivers that Flatcar has for the version and that can run the GPUs of all these pools.
async fn find_alternatives(clients: &Clients, version: &str, pools: &[&Pool]) -> Vec<NvidiaDriver> {
    let suits = |driver: &NvidiaDriver| {
        pools
            .iter()
            .filter_map(|pool| pool.gpus.as_ref())
            .all(|gpus| gpus.drivers.objection(*driver).is_none())
    };
    let mut others = Vec::new();
    for driver in NvidiaDriver::known().filter(suits) {
        // The server answered a moment ago; a driver for which it does not answer now is left out.
        if is_published(clients, version, driver).await == Ok(true) {
            others.push(driver);
        }
    }
    others
}
