//! How many machines a pool is given, and how many of them stay in service while it rolls.
//!
//! CloudFormation leaves the size of an Auto Scaling group alone if the template does not change it
//! (`IgnoreUnmodifiedGroupSizeProperties`). So as long as cluster.yaml asks for the same count, the parameter of the live stack is passed
//! again, and the Auto Scaling group keeps the size that the autoscaler gave it.

use serde_json::Value;

use super::live::{LiveCluster, LiveStack};
use crate::aws::ScalingGroup;
use crate::blueprint::StackPart;
use crate::config::Pool;
use crate::config::values::PoolName;
use crate::well_known::COUNT_TAG;

/// The parameter with the number of machines.
pub(crate) const DESIRED_CAPACITY: &str = "DesiredCapacity";
/// The parameter with how many machines stay in service while others are replaced.
pub(crate) const IN_SERVICE: &str = "InService";

/// What decides about a pool's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pool: PoolName,
    count: u32,
    least: u32,
    most: u32,
    /// The live stack's own parameter, if the stack's limits are those of cluster.yaml.
    stored: Option<u32>,
}

impl PoolSize {
    pub(crate) fn new(pool: &Pool, live: Option<&LiveStack>) -> Self {
        Self {
            pool: pool.name.clone(),
            count: pool.count,
            least: pool.min_count,
            most: pool.max_count,
            stored: live.and_then(|live| stored_size(pool, live)),
        }
    }

    /// The pool's name.
    pub(crate) fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The size that is passed to the stack.
    pub(crate) fn desired_capacity(&self, group: Option<&ScalingGroup>) -> u32 {
        match (group, self.stored) {
            (Some(group), Some(stored)) if self.is_count_unchanged(group) => stored,
            _ => self.machines(group),
        }
    }

    /// The number of machines that stay in service, as it is passed to the stack: AWS requires it to be below the maximum.
    pub(crate) fn in_service(&self, group: Option<&ScalingGroup>) -> u32 {
        self.machines(group).min(self.most.saturating_sub(1))
    }

    /// How many machines the Auto Scaling group will have: the count of cluster.yaml if that is new, else what the autoscaler chose.
    pub(crate) fn machines(&self, group: Option<&ScalingGroup>) -> u32 {
        match group {
            Some(group) if self.is_count_unchanged(group) => group.desired.clamp(self.least, self.most),
            _ => self.count,
        }
    }

    /// Whether cluster.yaml asks for the same count as when the Auto Scaling group was last changed.
    fn is_count_unchanged(&self, group: &ScalingGroup) -> bool {
        group.tags.get(COUNT_TAG).and_then(|count| count.parse().ok()) == Some(self.count)
    }
}

/// How many machines a pool still needs.
pub(crate) fn missing_machines(pool: &Pool, live: &LiveCluster) -> u32 {
    let part = StackPart::Pool(pool.name.clone());
    let group = live.pool_group(&pool.name).filter(|_| live.is_or_will_be_complete(&part));
    let there = group.map_or(0, |group| group.desired);
    PoolSize::new(pool, None).machines(group).saturating_sub(there)
}

/// The size that the live stack was given. Not if a limit changes: whether CloudFormation then leaves an unchanged size alone is not
/// said anywhere.
fn stored_size(pool: &Pool, live: &LiveStack) -> Option<u32> {
    let group = &live.template()["Resources"]["Nodes"]["Properties"];
    let limit = |name: &str| match &group[name] {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    let same_limits = limit("MinSize") == Some(pool.min_count) && limit("MaxSize") == Some(pool.max_count);
    let stored = live.stack.parameters.get(DESIRED_CAPACITY)?.parse().ok()?;
    (same_limits && (pool.min_count..=pool.max_count).contains(&stored)).then_some(stored)
}

#[cfg(test)]
mod tests {
    use super::{COUNT_TAG, PoolSize};
    use crate::aws::ScalingGroup;
    use crate::config::values::PoolName;

    fn group(asked: u32, desired: u32) -> ScalingGroup {
        ScalingGroup {
            name: "nodes".to_owned(),
            desired,
            template_version: None,
            machines: Vec::new(),
            tags: [(COUNT_TAG.to_owned(), asked.to_string())].into(),
            rebalances_availability_zones: false,
        }
    }

    fn size(count: u32, stored: Option<u32>) -> PoolSize {
        PoolSize { pool: PoolName::of_test("cpu"), count, least: 0, most: 16, stored }
    }

    #[test]
    fn a_size_that_the_autoscaler_changed_is_kept_and_stays_in_service() {
        let (size, moved) = (size(2, Some(2)), group(2, 12));
        assert_eq!(size.desired_capacity(Some(&moved)), 2, "not a change, so the group keeps its 12");
        assert_eq!(size.in_service(Some(&moved)), 12);
        assert_eq!(size.in_service(Some(&group(2, 16))), 15);
    }

    #[test]
    fn a_changed_count_and_a_new_pool_get_what_cluster_yaml_says() {
        assert_eq!(size(3, Some(2)).desired_capacity(Some(&group(2, 12))), 3);
        assert_eq!(size(3, Some(2)).in_service(Some(&group(2, 12))), 3);
        assert_eq!(size(3, None).desired_capacity(None), 3);
    }

    #[test]
    fn without_a_stored_size_that_of_the_group_is_passed_within_the_limits() {
        assert_eq!(size(2, None).desired_capacity(Some(&group(2, 12))), 12);
        assert_eq!(size(2, None).desired_capacity(Some(&group(2, 40))), 16);
        assert_eq!(size(2, None).in_service(Some(&group(2, 40))), 15);
    }
}
