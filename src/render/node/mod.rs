//! The Ignition config of each role.
//!
//! In: the blueprint, credentials and templates. Out: one config for each role, which its machines download at their first boot.
//! A role gets the keys it needs and no other.

mod controller;
mod etcd_member;
mod parts;
mod sources;
mod worker;

use std::collections::BTreeMap;

use super::asset::Asset;
use super::assets::BootConfig;
use super::engine::RenderError;
use super::ignition::ignition_config;
use crate::blueprint::Role;
pub(super) use sources::NodeSources;

/// Renders the config of every role.
pub(super) fn render_nodes(
    sources: &NodeSources<'_>,
    snippets: &BTreeMap<Role, Vec<Asset>>,
) -> Result<Vec<BootConfig>, RenderError> {
    let mut configs = Vec::new();
    for role in &sources.blueprint.roles {
        let config = match role {
            Role::EtcdMember(member) => etcd_member::config(sources, *member)?,
            Role::Controller => controller::config(sources)?,
            Role::Pool(name) => {
                let pool = sources.blueprint.pool_nodes(name);
                let pool = pool.ok_or_else(|| RenderError::Shape {
                    document: format!("pool {name}"),
                    reason: "no pool has this name".to_owned(),
                })?;
                worker::config(sources, pool)?
            }
        };
        let file = Asset::private(format!("userdata/{}.ign", role.name()), ignition_config(&config)?);
        let snippets = snippets.get(role).cloned().unwrap_or_default();
        configs.push(BootConfig { role: role.clone(), file, snippets });
    }
    Ok(configs)
}
