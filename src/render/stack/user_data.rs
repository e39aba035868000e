//! The user data of every role, as the values of stack templates hold it.

use std::collections::BTreeMap;

use super::super::assets::BootConfig;
use super::super::engine::RenderError;
use super::super::user_data::UserData;
use super::json::Json;
use crate::blueprint::Role;
use crate::config::Cluster;

/// Each role's user data as a launch template takes it.
pub(super) struct UserDataByRole(BTreeMap<Role, Json>);

impl UserDataByRole {
    pub(super) fn new(cluster: &Cluster, configs: &[BootConfig]) -> Result<Self, RenderError> {
        let of_role = |config: &BootConfig| {
            let user_data = UserData::new(cluster, config)?;
            Ok((config.role.clone(), user_data.value().into()))
        };
        Ok(Self(configs.iter().map(of_role).collect::<Result<_, _>>()?))
    }

    pub(super) fn of(&self, role: &Role) -> Result<Json, RenderError> {
        self.0.get(role).cloned().ok_or_else(|| RenderError::Shape {
            document: format!("the user data of {}", role.name()),
            reason: "it was not rendered".to_owned(),
        })
    }
}
