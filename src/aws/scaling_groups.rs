//! Auto Scaling groups: how many machines they have, and what happened when they started some.

use crate::well_known::{CLUSTER_TAG, tag_filter};
use std::collections::BTreeMap;

use aws_sdk_autoscaling::types::{AutoScalingGroup, Filter};
use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients};

/// The CloudFormation type of an Auto Scaling group.
pub(crate) const AUTO_SCALING_GROUP_TYPE: &str = "AWS::AutoScaling::AutoScalingGroup";
const AZ_REBALANCE: &str = "AZRebalance";
/// The most Auto Scaling groups that AWS lists in one page.
const LONGEST_PAGE: i32 = 100;

/// The CloudFormation type of a scheduled action.
pub(crate) const SCHEDULED_ACTION_TYPE: &str = "AWS::AutoScaling::ScheduledAction";

/// An Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalingGroup {
    /// The name of the Auto Scaling group.
    pub name: String,
    /// How many machines it should have.
    pub desired: u32,
    /// The fewest machines that it may have.
    pub least: u32,
    /// The most machines that it may have.
    pub most: u32,
    /// The version of the launch template that new machines get.
    pub template_version: Option<String>,
    /// Whether its machines are spot machines.
    pub spot: bool,
    /// The machines of the Auto Scaling group.
    pub machines: Vec<GroupMachine>,
    /// The tags of the Auto Scaling group.
    pub tags: BTreeMap<String, String>,
    /// Whether it terminates machines in one availability zone to start others in another, so that each has as many.
    pub rebalances_availability_zones: bool,
}

#[cfg(test)]
impl ScalingGroup {
    /// An Auto Scaling group without machines.
    pub(crate) fn of_test(name: &str, desired: u32) -> Self {
        Self {
            name: name.to_owned(),
            desired,
            least: 0,
            most: desired,
            template_version: None,
            spot: false,
            machines: Vec::new(),
            tags: BTreeMap::new(),
            rebalances_availability_zones: false,
        }
    }
}

/// A machine of an Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupMachine {
    /// The instance id of the machine.
    pub id: String,
    /// The state of the machine: `InService` and others.
    pub state: String,
    /// The version of the launch template that it was started from.
    pub template_version: Option<String>,
    /// The instance type of the machine.
    pub instance_type: String,
    /// The availability zone of the machine.
    pub zone: String,
}

impl GroupMachine {
    /// Whether the machine works, as far as Auto Scaling knows.
    #[must_use]
    pub(crate) fn is_in_service(&self) -> bool {
        self.state == "InService"
    }

    /// Whether the machine is being terminated.
    #[must_use]
    pub(crate) fn is_terminating(&self) -> bool {
        self.state.starts_with("Terminat")
    }
}

/// One attempt of an Auto Scaling group to start or terminate a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalingActivity {
    /// The id of the activity.
    pub id: String,
    /// What was attempted; names the machine.
    pub description: String,
    /// The status of the activity: `Successful`, `Failed` and others.
    pub status: String,
    /// What went wrong.
    pub message: Option<String>,
    /// When it began.
    pub started: Option<OffsetDateTime>,
}

impl ScalingActivity {
    /// Why no machine came of it, in AWS's words, if that is so. A machine that could not open its disks was started first, and counts
    /// as cancelled.
    #[must_use]
    pub(crate) fn failure(&self) -> Option<&str> {
        let message = self.message.as_deref().filter(|message| !message.is_empty());
        match self.status.as_str() {
            "Failed" => Some(message.unwrap_or(&self.description)),
            "Cancelled" if self.is_launch() => message,
            _ => None,
        }
    }

    /// Whether a machine was to be started, rather than terminated.
    #[must_use]
    pub(crate) fn is_launch(&self) -> bool {
        self.description.starts_with("Launching")
    }
}

impl Clients {
    /// Every Auto Scaling group of a cluster.
    pub(crate) async fn groups_of_cluster(&self, cluster: &str) -> Result<Vec<ScalingGroup>, AwsError> {
        self.groups(Filter::builder().name(tag_filter(CLUSTER_TAG)).values(cluster).build()).await
    }

    /// Every Auto Scaling group of every cluster of the account and region.
    pub(crate) async fn groups_of_all_clusters(&self) -> Result<Vec<ScalingGroup>, AwsError> {
        self.groups(Filter::builder().name("tag-key").values(CLUSTER_TAG).build()).await
    }

    async fn groups(&self, filter: Filter) -> Result<Vec<ScalingGroup>, AwsError> {
        let call = self.autoscaling.describe_auto_scaling_groups().filters(filter).max_records(LONGEST_PAGE);
        let mut pages = call.into_paginator().items().send();
        let mut groups = Vec::new();
        while let Some(next) = pages.next().await {
            groups.push(to_scaling_group(
                next.map_err(AwsError::of(actions::AUTOSCALING_DESCRIBE_AUTO_SCALING_GROUPS))?,
            ));
        }
        Ok(groups)
    }

    /// The newest activities of an Auto Scaling group, the newest first; also of one that is deleted already.
    pub(crate) async fn scaling_activities(&self, group: &str) -> Result<Vec<ScalingActivity>, AwsError> {
        let call = self.autoscaling.describe_scaling_activities().auto_scaling_group_name(group);
        let answer = call.include_deleted_groups(true).max_records(50).send().await;
        let answer = answer.map_err(AwsError::of(actions::AUTOSCALING_DESCRIBE_SCALING_ACTIVITIES))?;
        let activity = |found: aws_sdk_autoscaling::types::Activity| ScalingActivity {
            id: found.activity_id.unwrap_or_default(),
            description: found.description.unwrap_or_default(),
            status: found.status_code.map(|status| status.as_str().to_owned()).unwrap_or_default(),
            message: found.status_message,
            started: found.start_time.and_then(super::to_offset_date_time),
        };
        Ok(answer.activities.unwrap_or_default().into_iter().map(activity).collect())
    }

    /// Has an Auto Scaling group leave its machines where they are, however many each availability zone has.
    pub(crate) async fn suspend_az_rebalance(&self, group: &str) -> Result<(), AwsError> {
        let call = self.autoscaling.suspend_processes().auto_scaling_group_name(group);
        let answer = call.scaling_processes(AZ_REBALANCE).send().await;
        answer.map_err(AwsError::of(actions::AUTOSCALING_SUSPEND_PROCESSES)).map(|_| ())
    }

    /// Terminates a machine, for which its Auto Scaling group starts another one; false if no Auto Scaling group has it any more.
    pub(crate) async fn replace_machine(&self, instance: &str) -> Result<bool, AwsError> {
        let call = self.autoscaling.terminate_instance_in_auto_scaling_group();
        let call = call.instance_id(instance).should_decrement_desired_capacity(false);
        let answer = call.send().await;
        let answer =
            answer.map_err(AwsError::of(actions::AUTOSCALING_TERMINATE_INSTANCE_IN_AUTO_SCALING_GROUP));
        match answer {
            Ok(_) => Ok(true),
            Err(error) if error.says("No managed instance found") => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn to_scaling_group(found: AutoScalingGroup) -> ScalingGroup {
    let policy = found.mixed_instances_policy;
    let distribution = policy.as_ref().and_then(|policy| policy.instances_distribution.as_ref());
    let spot = distribution.is_some_and(|parts| parts.on_demand_percentage_above_base_capacity == Some(0));
    let mixed = policy.and_then(|policy| policy.launch_template);
    let template = found.launch_template.or_else(|| mixed?.launch_template_specification);
    let tags = found.tags.unwrap_or_default().into_iter();
    let zones = found.availability_zones.unwrap_or_default().len();
    let mut suspended = found.suspended_processes.unwrap_or_default().into_iter();
    let is_suspended = suspended.any(|process| process.process_name.as_deref() == Some(AZ_REBALANCE));
    let machine = |machine: aws_sdk_autoscaling::types::Instance| GroupMachine {
        id: machine.instance_id.unwrap_or_default(),
        state: machine.lifecycle_state.map(|state| state.as_str().to_owned()).unwrap_or_default(),
        template_version: machine.launch_template.and_then(|template| template.version),
        instance_type: machine.instance_type.unwrap_or_default(),
        zone: machine.availability_zone.unwrap_or_default(),
    };
    let count = |size: Option<i32>| size.and_then(|size| u32::try_from(size).ok()).unwrap_or_default();
    ScalingGroup {
        name: found.auto_scaling_group_name.unwrap_or_default(),
        desired: count(found.desired_capacity),
        least: count(found.min_size),
        most: count(found.max_size),
        template_version: template.and_then(|template| template.version),
        spot,
        machines: found.instances.unwrap_or_default().into_iter().map(machine).collect(),
        tags: tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect(),
        rebalances_availability_zones: zones > 1 && !is_suspended,
    }
}
