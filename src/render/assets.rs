//! Everything that is rendered of a cluster, each kind as its own type.
//!
//! In: blueprint, credentials, templates and the team's own files. Out: boot configs by role, CloudFormation templates by stack,
//! manifests by name. The path of a file is where it is written, never what it is found by.

use std::collections::BTreeMap;

use super::asset::Asset;
use super::engine::{RenderError, Templates};
use super::manifest::render_manifests;
use super::node::{NodeSources, render_nodes};
use super::stack::{StackTemplateSources, render_stacks};
use super::template::Template;
use super::user_data::object_key;
use crate::blueprint::{Blueprint, Role, StackPart};
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

/// Everything that was rendered, in a stable order.
#[derive(Clone, Debug)]
pub struct Assets {
    /// What machines boot with, one for each role.
    pub boot_configs: Vec<BootConfig>,
    /// The CloudFormation templates, in the order their stacks are created.
    pub templates: Vec<StackTemplate>,
    /// The manifests, in the order they are applied.
    pub manifests: Vec<Manifest>,
}

/// What machines of one role boot with.
#[derive(Clone, Debug)]
pub struct BootConfig {
    /// The role.
    pub role: Role,
    /// The Ignition config.
    pub file: Asset,
    /// The team's own Ignition configs, which are merged in.
    pub snippets: Vec<Asset>,
}

/// The template of one stack.
#[derive(Clone, Debug)]
pub struct StackTemplate {
    /// The stack.
    pub part: StackPart,
    /// The parsed template.
    pub template: Template,
    /// The template as a file.
    pub file: Asset,
}

/// Kubernetes objects that the control plane applies.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name of the file, which gives the order.
    pub name: String,
    /// The objects as a file.
    pub file: Asset,
}

impl Assets {
    /// Every rendered file, for writing them.
    pub fn files(&self) -> impl Iterator<Item = &Asset> {
        let configs = self.boot_configs.iter().map(|config| &config.file);
        let templates = self.templates.iter().map(|template| &template.file);
        configs.chain(templates).chain(self.manifests.iter().map(|manifest| &manifest.file))
    }
}

/// A file that machines of a role read from S3 at boot.
#[derive(Clone, Copy, Debug)]
pub struct BootObject<'a> {
    /// The role.
    pub role: &'a Role,
    /// The file.
    pub file: &'a Asset,
}

/// Every object that machines read at boot, by its key behind the prefix.
#[must_use]
pub fn boot_objects<'a>(
    cluster: &str,
    configs: impl IntoIterator<Item = &'a BootConfig>,
) -> BTreeMap<String, BootObject<'a>> {
    let mut objects = BTreeMap::new();
    for BootConfig { role, file, snippets } in configs {
        for file in std::iter::once(file).chain(snippets) {
            objects.insert(object_key(cluster, role, &file.sha512()), BootObject { role, file });
        }
    }
    objects
}

/// Renders every asset.
pub fn render_assets(sources: &AssetSources<'_>) -> Result<Assets, RenderError> {
    let own = render_manifests(sources.blueprint, sources.templates)?;
    let mut applied = own.clone();
    for (name, text) in sources.extra_manifests {
        // Behind ours, which they may build on.
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
        templates: sources.templates,
        boot_configs: &boot_configs,
    })?;
    let manifests = own
        .into_iter()
        .map(|(name, text)| Manifest { file: Asset::public(format!("manifests/{name}"), text), name });
    Ok(Assets { boot_configs, templates, manifests: manifests.collect() })
}
