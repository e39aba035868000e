//! Renders every asset of a cluster.
//!
//! In: blueprint, credentials, templates and the team's own files. Out: the boot configs, templates and manifests.

use std::collections::BTreeMap;

use super::asset::Asset;
use super::assets::{Assets, Manifest};
use super::engine::{RenderError, Templates};
use super::manifest::render_manifests;
use super::node::{NodeSources, render_nodes};
use super::stack::{StackTemplateSources, render_stacks};
use crate::blueprint::{Blueprint, Role};
use crate::credentials::Credentials;

/// What a cluster's assets are rendered from.
#[derive(Debug)]
pub struct AssetSources<'a> {
    /// The decided facts.
    pub blueprint: &'a Blueprint,
    /// Keys and certificates.
    pub credentials: &'a Credentials,
    /// Templates, some of them possibly the team's own.
    pub templates: &'a Templates,
    /// The team's own manifests, by file name.
    pub extra_manifests: &'a BTreeMap<String, String>,
    /// The team's own Ignition configs for each role.
    pub snippets: &'a BTreeMap<Role, Vec<Asset>>,
}

/// Renders every asset.
pub fn render_assets(sources: &AssetSources<'_>) -> Result<Assets, RenderError> {
    let own = render_manifests(sources.blueprint, sources.credentials, sources.templates)?;
    let mut applied = own.clone();
    for (name, text) in sources.extra_manifests {
        // After ours, which they may build on.
        applied.insert(format!("90-{name}"), text.clone());
    }
    let nodes = NodeSources {
        blueprint: sources.blueprint,
        credentials: sources.credentials,
        templates: sources.templates,
        manifests: &applied,
    };
    let boot_configs = render_nodes(&nodes, sources.snippets)?;
    let templates = render_stacks(&StackTemplateSources {
        blueprint: sources.blueprint,
        credentials: sources.credentials,
        templates: sources.templates,
        boot_configs: &boot_configs,
    })?;
    let manifests = own
        .into_iter()
        .map(|(name, text)| Manifest { file: Asset::public(format!("manifests/{name}"), text), name });
    Ok(Assets { boot_configs, templates, manifests: manifests.collect() })
}
