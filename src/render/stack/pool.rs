//! The values of a pool's template.

use serde::Serialize;

use super::super::engine::RenderError;
use super::json::Json;
use super::network::{GroupValues, RuleValues, SubnetValues, group_values, rule_values, subnet_values};
use super::tags::{pool_group_tags, tag_specifications};
use super::user_data::UserDataByRole;
use super::values::{SharedValues, root_disk};
use crate::blueprint::{BlockAction, Blueprint, GroupSize, Role, ScheduledAction, SecurityGroup};
use crate::config::gpu::{EfaCards, EfaInterface};
use crate::config::values::PoolName;
use crate::config::{PoolImage, Rollout};

/// What a pool's template sees.
#[derive(Serialize)]
pub(super) struct PoolStackValues<'a> {
    #[serde(flatten)]
    shared: SharedValues<'a>,
    pool: PoolValues,
}

#[derive(Serialize)]
struct PoolValues {
    name: String,
    instance_type: String,
    instance_types: Vec<String>,
    mixed: bool,
    spot: bool,
    count: u32,
    min_count: u32,
    max_count: u32,
    signals: u32,
    rolling: bool,
    in_service: u32,
    in_service_at_most: u32,
    subnets: Vec<SubnetValues>,
    managed_policies: Vec<String>,
    metadata_hop_limit: u32,
    placement_group: bool,
    capacity_reservation: Option<String>,
    deep_learning: bool,
    efa: Option<EfaValues>,
    root_disk: Json,
    tag_specifications: Json,
    group_tags: Json,
    user_data: Json,
    /// Whether AWS changes the size of the pool by the clock.
    scheduled: bool,
    actions: Vec<ActionValues>,
    may_have_block: bool,
    block_actions: Vec<BlockActionValues>,
}

/// The interfaces of EFA, and who may talk over them.
#[derive(Serialize)]
struct EfaValues {
    interfaces: Vec<EfaInterface>,
    group: GroupValues,
    rules: Vec<RuleValues>,
}

impl EfaValues {
    fn new(cards: EfaCards, blueprint: &Blueprint) -> Self {
        let rules = blueprint.rules.iter().filter(|rule| rule.to == SecurityGroup::Efa);
        Self {
            interfaces: cards.interfaces().collect(),
            group: group_values(SecurityGroup::Efa),
            rules: rules.map(rule_values).collect(),
        }
    }
}

/// A scheduled action.
#[derive(Serialize)]
struct ActionValues {
    resource: String,
    recurrence: String,
    time_zone: Option<String>,
    least: u32,
    most: u32,
    desired: u32,
}

impl From<ScheduledAction> for ActionValues {
    fn from(ScheduledAction { resource, recurrence, time_zone, size }: ScheduledAction) -> Self {
        let GroupSize { least, most, desired } = size;
        Self { resource, recurrence, time_zone, least, most, desired }
    }
}

/// A scheduled action of a capacity block, which is to come or not.
#[derive(Serialize)]
struct BlockActionValues {
    resource: &'static str,
    condition: &'static str,
    at: &'static str,
    least: u32,
    most: u32,
    desired: u32,
}

impl From<BlockAction> for BlockActionValues {
    fn from(BlockAction { resource, condition, at, size }: BlockAction) -> Self {
        let GroupSize { least, most, desired } = size;
        Self { resource, condition, at, least, most, desired }
    }
}

impl<'a> PoolStackValues<'a> {
    pub(super) fn new(
        blueprint: &'a Blueprint,
        name: &PoolName,
        user_data: &UserDataByRole,
    ) -> Result<Self, RenderError> {
        let missing = || RenderError::Shape {
            document: format!("pool {name}"),
            reason: "cluster.yaml does not have it".to_owned(),
        };
        let pool = blueprint.cluster.pool(name).ok_or_else(missing)?;
        let nodes = blueprint.pool_nodes(name).ok_or_else(missing)?;
        let role = Role::Pool(name.clone());
        let subnets = blueprint
            .network
            .machine_subnets()
            .filter(|subnet| pool.availability_zones.contains(&subnet.zone));
        Ok(Self {
            shared: SharedValues::new(blueprint),
            pool: PoolValues {
                name: pool.name.to_string(),
                instance_type: pool.instance_types[0].to_string(),
                instance_types: pool.instance_types.iter().map(ToString::to_string).collect(),
                mixed: pool.spot || pool.instance_types.len() > 1,
                spot: pool.spot,
                count: pool.count,
                min_count: pool.min_count,
                max_count: pool.max_count,
                // A pool that may shrink is complete without all of its machines.
                signals: pool.min_count.min(pool.count),
                rolling: pool.rollout == Rollout::Rolling,
                in_service: pool.count.min(pool.max_count.saturating_sub(1)),
                in_service_at_most: pool.max_count.saturating_sub(1),
                subnets: subnets.map(|subnet| subnet_values(subnet, blueprint)).collect(),
                managed_policies: pool.managed_policies.iter().map(ToString::to_string).collect(),
                metadata_hop_limit: pool.metadata_hop_limit,
                placement_group: pool.placement_group,
                capacity_reservation: pool.capacity_reservation.as_ref().map(ToString::to_string),
                deep_learning: pool.image == PoolImage::DeepLearning,
                efa: pool.efa.map(|cards| EfaValues::new(cards, blueprint)),
                root_disk: root_disk(&blueprint.cluster, pool.root_volume_gib),
                tag_specifications: tag_specifications(blueprint, &role.name(), false),
                group_tags: pool_group_tags(blueprint, nodes, pool),
                user_data: user_data.of(&role)?,
                scheduled: !pool.schedule.is_empty() || pool.may_have_block(),
                actions: ScheduledAction::of_pool(pool).into_iter().map(Into::into).collect(),
                may_have_block: pool.may_have_block(),
                block_actions: BlockAction::of_pool(pool).into_iter().map(Into::into).collect(),
            },
        })
    }
}
