//! Scheduled actions of Auto Scaling groups, and the sizes that they change.

use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients};

/// What an Auto Scaling group does by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledChange {
    /// When, in the five fields of cron.
    pub recurrence: String,
    /// The time zone of that; none for UTC.
    pub time_zone: Option<String>,
    /// When it happens next, as AWS says.
    pub next: Option<OffsetDateTime>,
    /// The fewest machines from then on.
    pub least: Option<u32>,
    /// The most machines from then on.
    pub most: Option<u32>,
    /// The number of machines to have from then on.
    pub desired: Option<u32>,
}

impl Clients {
    /// What an Auto Scaling group does by the clock.
    pub(crate) async fn scheduled_changes(&self, group: &str) -> Result<Vec<ScheduledChange>, AwsError> {
        let call = self.autoscaling.describe_scheduled_actions().auto_scaling_group_name(group);
        let mut pages = call.into_paginator().items().send();
        let mut changes = Vec::new();
        while let Some(next) = pages.next().await {
            let found = next.map_err(AwsError::of(actions::AUTOSCALING_DESCRIBE_SCHEDULED_ACTIONS))?;
            let count = |size: Option<i32>| size.and_then(|size| u32::try_from(size).ok());
            changes.push(ScheduledChange {
                recurrence: found.recurrence.unwrap_or_default(),
                time_zone: found.time_zone.filter(|zone| !zone.is_empty()),
                next: found.start_time.and_then(super::to_offset_date_time),
                least: count(found.min_size),
                most: count(found.max_size),
                desired: count(found.desired_capacity),
            });
        }
        Ok(changes)
    }

    /// Sets all three sizes of an Auto Scaling group.
    pub(crate) async fn set_group_size(
        &self,
        group: &str,
        least: u32,
        most: u32,
        desired: u32,
    ) -> Result<(), AwsError> {
        let number = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        let call = self.autoscaling.update_auto_scaling_group().auto_scaling_group_name(group);
        let call = call.min_size(number(least)).max_size(number(most)).desired_capacity(number(desired));
        let answer = call.send().await;
        answer.map_err(AwsError::of(actions::AUTOSCALING_UPDATE_AUTO_SCALING_GROUP)).map(|_| ())
    }
}
