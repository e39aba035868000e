//! CloudFormation templates: rendered from YAML, parsed once, and written as JSON in a stable order.

mod json;
mod network;
mod pool;
mod storage;
mod tags;
mod user_data;
mod values;

use serde::Serialize;

use super::asset::Asset;
use super::assets::{BootConfig, StackTemplate};
use super::engine::{RenderError, Templates};
use super::template::Template;
use crate::blueprint::{Blueprint, StackPart};
use crate::credentials::Credentials;
use pool::PoolStackValues;
use user_data::UserDataByRole;
use values::ClusterStackValues;

/// What stack templates are rendered from.
pub(super) struct StackTemplateSources<'a> {
    pub(super) blueprint: &'a Blueprint,
    /// Keys and certificates, of which templates hold only when the first expires.
    pub(super) credentials: &'a Credentials,
    pub(super) templates: &'a Templates,
    /// What machines boot with; user data points at it.
    pub(super) boot_configs: &'a [BootConfig],
}

/// Renders every stack of a cluster.
pub(super) fn render_stacks(sources: &StackTemplateSources<'_>) -> Result<Vec<StackTemplate>, RenderError> {
    let user_data = UserDataByRole::new(&sources.blueprint.cluster, sources.boot_configs)?;
    let values = ClusterStackValues::new(sources.blueprint, sources.credentials, &user_data)?;
    let mut stacks = Vec::new();
    for part in StackPart::of_cluster(&sources.blueprint.cluster) {
        let name = part.file_name();
        let template = match &part {
            StackPart::Pool(pool) => {
                let values = PoolStackValues::new(sources.blueprint, pool, &user_data)?;
                render_stack(sources, "pool", &values)?
            }
            StackPart::Network | StackPart::Storage | StackPart::ControlPlane => {
                render_stack(sources, &name, &values)?
            }
        };
        let file = Asset::public(format!("stacks/{name}.json"), template.readable());
        stacks.push(StackTemplate { part, template, file });
    }
    Ok(stacks)
}

fn render_stack(
    sources: &StackTemplateSources<'_>,
    template: &str,
    values: &impl Serialize,
) -> Result<Template, RenderError> {
    let name = format!("stacks/{template}.yaml");
    Template::parse(&name, &sources.templates.render(&name, values)?)
}
