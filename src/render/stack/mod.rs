//! CloudFormation templates: rendered from YAML, parsed back, and written as JSON in a stable order.

mod network;
mod pool;
mod storage;
mod tags;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::asset::Asset;
use super::engine::{RenderError, Templates};
use super::user_data::UserData;
use crate::blueprint::{Blueprint, Role, StackPart};
use crate::document::parse_untyped;
use pool::PoolStackValues;
use values::ClusterStackValues;

/// What stacks are rendered from, besides what nodes are.
pub(super) struct StackTemplateSources<'a> {
    pub(super) blueprint: &'a Blueprint,
    pub(super) templates: &'a Templates,
    /// Each role's config, which user data leads to.
    pub(super) configs: &'a [Asset],
    /// The team's own configs for each role.
    pub(super) snippets: &'a BTreeMap<Role, Vec<Asset>>,
}

/// Renders every stack of a cluster.
pub(super) fn render_stacks(sources: &StackTemplateSources<'_>) -> Result<Vec<Asset>, RenderError> {
    let user_data = user_data(sources)?;
    let values = ClusterStackValues::new(sources.blueprint, &user_data);
    let mut stacks = Vec::new();
    for part in StackPart::of_cluster(&sources.blueprint.cluster) {
        let name = part.file_name();
        let StackPart::Pool(pool) = &part else {
            stacks.push(render_stack(sources, &name, &name, &values)?);
            continue;
        };
        let pools = &sources.blueprint.cluster.pools;
        for pool in pools.iter().filter(|candidate| candidate.name.as_str() == pool) {
            let values = PoolStackValues::new(sources.blueprint, pool, &user_data);
            stacks.push(render_stack(sources, "pool", &name, &values)?);
        }
    }
    Ok(stacks)
}

/// Each role's user data as a launch template takes it.
fn user_data(sources: &StackTemplateSources<'_>) -> Result<BTreeMap<Role, Value>, RenderError> {
    let mut all = BTreeMap::new();
    for role in &sources.blueprint.roles {
        let path = format!("userdata/{}.ign", role.name());
        let config = sources.configs.iter().find(|asset| asset.path == path);
        let config = config
            .ok_or_else(|| RenderError::Shape { document: path, reason: "it was not rendered".to_owned() })?;
        let snippets = sources.snippets.get(role).map(Vec::as_slice).unwrap_or_default();
        all.insert(role.clone(), UserData::new(&sources.blueprint.cluster, role, config, snippets)?.value());
    }
    Ok(all)
}

fn render_stack(
    sources: &StackTemplateSources<'_>,
    template: &str,
    name: &str,
    values: &impl Serialize,
) -> Result<Asset, RenderError> {
    let template = format!("stacks/{template}.yaml");
    let text = sources.templates.render(&template, values)?;
    let shape = |reason: String| RenderError::Shape { document: template.clone(), reason };
    // A template that is no document never leaves this layer.
    let document =
        parse_untyped(Path::new(&template), &text).map_err(|problems| shape(problems.to_string()))?;
    let mut json = serde_json::to_string_pretty(&document).map_err(|error| shape(error.to_string()))?;
    json.push('\n');
    Ok(Asset::public(format!("stacks/{name}.json"), json))
}
