//! What the machines of each role boot with.
//!
//! In: the blueprint, credentials and templates. Out: one config for each role, which its machines download at their first boot.
//! A role gets the keys it needs and no other.

mod controller;
mod deep_learning;
mod etcd_member;
mod from_template;
mod parts;
mod sources;
mod worker;

use std::collections::BTreeMap;

use super::asset::Asset;
use super::assets::{BootConfig, BootForm};
use super::engine::RenderError;
use super::ignition::ignition_config;
use super::node_archive::node_archive;
use crate::blueprint::Role;
use crate::config::PoolImage;
use controller::describe_controller;
use etcd_member::describe_etcd_member;
pub(super) use sources::NodeSources;
use worker::describe_worker;

/// Renders the config of every role.
pub(super) fn render_nodes(
    sources: &NodeSources<'_>,
    snippets: &BTreeMap<Role, Vec<Asset>>,
) -> Result<Vec<BootConfig>, RenderError> {
    let mut configs = Vec::new();
    for role in &sources.blueprint.roles {
        let mut form = BootForm::Ignition;
        let config = match role {
            Role::EtcdMember(member) => describe_etcd_member(sources, *member)?,
            Role::Controller => describe_controller(sources)?,
            Role::Pool(name) => {
                let pool = sources.blueprint.pool_nodes(name);
                let pool = pool.ok_or_else(|| RenderError::Shape {
                    document: format!("pool {name}"),
                    reason: "no pool has this name".to_owned(),
                })?;
                if pool.image == PoolImage::DeepLearning {
                    form = BootForm::Archive;
                }
                describe_worker(sources, pool)?
            }
        };
        let bytes = match form {
            BootForm::Ignition => ignition_config(&config)?,
            BootForm::Archive => node_archive(&config)?,
        };
        let file = Asset::private(format!("userdata/{}.{}", role.name(), form.extension()), bytes);
        let snippets = snippets.get(role).cloned().unwrap_or_default();
        if let (BootForm::Archive, Some(snippet)) = (form, snippets.first()) {
            return Err(RenderError::Shape {
                document: snippet.path.clone(),
                reason: format!(
                    "{} boots the Deep Learning image, which does not read Ignition configs",
                    role.name()
                ),
            });
        }
        configs.push(BootConfig { role: role.clone(), form, file, snippets });
    }
    Ok(configs)
}
