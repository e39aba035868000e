//! The stacks as cluster.yaml wants them, with everything but what other stacks hand on.

use std::collections::BTreeMap;

use serde_json::Value;

use super::live::{CLUSTER_TAG, LiveCluster};
use super::settings::Settings;
use crate::blueprint::{Blueprint, StackPart};
use crate::config::Pool;
use crate::render::Asset;

/// The tag of the network stack that says where assets are.
pub const PLACE_TAG: &str = "infra:s3-uri";
/// The tag of the control plane's stack that says whose keys it runs on.
pub const CREDENTIALS_TAG: &str = "infra:credentials";
/// The tag of a pool's group that says how many machines cluster.yaml asked for.
pub const COUNT_TAG: &str = "infra:count";

/// A stack as it shall be.
#[derive(Clone, Debug)]
pub struct DesiredStack {
    /// Which part of the cluster it is.
    pub part: StackPart,
    /// Its name in AWS.
    pub name: String,
    /// Its template.
    pub template: Value,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Values of parameters that no stack hands on.
    pub given: BTreeMap<String, String>,
}

impl DesiredStack {
    /// Every stack of a cluster, in the order they are made.
    #[must_use]
    pub fn of_cluster(
        blueprint: &Blueprint,
        assets: &[Asset],
        settings: &Settings,
        live: &LiveCluster,
    ) -> Vec<Self> {
        let parts = StackPart::of_cluster(&blueprint.cluster);
        parts.into_iter().map(|part| Self::new(part, blueprint, assets, settings, live)).collect()
    }

    fn new(
        part: StackPart,
        blueprint: &Blueprint,
        assets: &[Asset],
        settings: &Settings,
        live: &LiveCluster,
    ) -> Self {
        let cluster = &blueprint.cluster;
        let path = format!("stacks/{}.json", part.file_name());
        let template = assets.iter().find(|asset| asset.path == path);
        let template =
            template.and_then(|asset| serde_json::from_slice(&asset.bytes).ok()).unwrap_or_default();
        let mut tags: BTreeMap<String, String> =
            cluster.tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        tags.insert(CLUSTER_TAG.to_owned(), cluster.name.to_string());
        match part {
            StackPart::Network => {
                tags.insert(PLACE_TAG.to_owned(), settings.place.to_string());
            }
            StackPart::ControlPlane => {
                tags.insert(CREDENTIALS_TAG.to_owned(), settings.credentials.to_string());
            }
            StackPart::Storage | StackPart::Pool(_) => {}
        }
        let mut given = BTreeMap::from([
            ("AssetBucket".to_owned(), settings.place.bucket().to_owned()),
            ("AssetPrefix".to_owned(), settings.place.key_prefix()),
            ("ImageId".to_owned(), settings.image_for(&part, live)),
        ]);
        for (index, missing) in &settings.missing_mount_targets {
            given.insert(format!("MountTarget{index}Missing"), missing.to_string());
        }
        if let StackPart::Pool(name) = &part
            && let Some(pool) = cluster.pools.iter().find(|pool| pool.name.as_str() == name)
        {
            given.insert("DesiredCapacity".to_owned(), desired_capacity(pool, live).to_string());
        }
        Self { name: part.stack_name(&cluster.name), part, template, tags, given }
    }

    /// Its template as it is handed in: without the white space that is for readers.
    #[must_use]
    pub fn text(&self) -> String {
        self.template.to_string()
    }

    /// A value for every parameter; the names of those that nobody hands on yet, if there are any.
    pub fn parameters(
        &self,
        outputs: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Vec<String>> {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for name in self.template["Parameters"].as_object().into_iter().flat_map(|list| list.keys()) {
            match self.given.get(name).or_else(|| outputs.get(name)) {
                Some(value) => drop(values.insert(name.clone(), value.clone())),
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() { Ok(values) } else { Err(missing) }
    }
}

/// How many machines a pool shall have now: what cluster.yaml asks for if that is a new wish, else what the autoscaler made of it.
fn desired_capacity(pool: &Pool, live: &LiveCluster) -> u32 {
    let Some(group) = live.pool_group(pool.name.as_str()) else { return pool.count };
    let asked_before = group.tags.get(COUNT_TAG).and_then(|count| count.parse().ok());
    if asked_before == Some(pool.count) {
        group.desired.clamp(pool.min_count, pool.max_count)
    } else {
        pool.count
    }
}
