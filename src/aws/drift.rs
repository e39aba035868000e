//! Drift detection: CloudFormation compares what is there with the templates of stacks.

use aws_sdk_cloudformation::types::{
    DifferenceType, PropertyDifference as SdkPropertyDifference, StackDriftDetectionStatus,
    StackResourceDrift, StackResourceDriftStatus,
};
use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients};

/// What CloudFormation answers when a detection is to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DetectionStart {
    /// The detection has begun, and this is its id.
    Began(String),
    /// Another detection of the same stack is in progress, whose id cannot be queried.
    AlreadyInProgress,
    /// CloudFormation does not check a stack in this state; why, in its words.
    Refused(String),
}

/// How far a detection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectionStatus {
    /// CloudFormation still reads resources.
    InProgress,
    /// Everything that can be checked was checked.
    Complete,
    /// At least one resource could not be checked.
    Failed,
}

/// A detection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Detection {
    /// How far the detection is.
    pub status: DetectionStatus,
    /// Why it has that status.
    pub reason: Option<String>,
    /// When the detection began, by AWS's clock.
    pub began: Option<OffsetDateTime>,
}

/// How a resource compares with its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceDriftStatus {
    /// Everything that the template sets, and that CloudFormation can read, is as the template says.
    InSync,
    /// Properties differ.
    Modified,
    /// The resource is gone.
    Deleted,
    /// CloudFormation cannot check resources of this type.
    NotChecked,
    /// CloudFormation tried to check the resource, and could not.
    Failed,
}

/// The result of a detection for one resource: the newest that there is, which may be an earlier detection's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceDrift {
    /// The name of the resource in the template.
    pub logical_id: String,
    /// What AWS calls the resource.
    pub physical_id: String,
    /// The type of the resource.
    pub kind: String,
    /// How the resource compares with its template.
    pub status: ResourceDriftStatus,
    /// Why it has that status.
    pub reason: Option<String>,
    /// The properties that differ.
    pub differences: Vec<PropertyDifference>,
    /// When the resource was checked, by AWS's clock.
    pub checked: Option<OffsetDateTime>,
}

/// How a property differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DifferenceKind {
    /// A list has one more element.
    Added,
    /// The property or the element of a list is gone.
    Removed,
    /// The value is another one.
    Changed,
}

/// A property that is not as the template says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyDifference {
    /// The property, as a JSON pointer.
    pub path: String,
    /// How it differs.
    pub kind: DifferenceKind,
    /// The value by the template: plain text, or JSON.
    pub expected: String,
    /// The value now: plain text, or JSON.
    pub actual: String,
}

impl Clients {
    /// Has CloudFormation begin to compare a stack with its template.
    pub(crate) async fn detect_drift(&self, stack: &str) -> Result<DetectionStart, AwsError> {
        let call = self.cloudformation.detect_stack_drift().stack_name(stack);
        match call.send().await.map_err(AwsError::of(actions::CFN_DETECT_STACK_DRIFT)) {
            Ok(answer) => Ok(DetectionStart::Began(answer.stack_drift_detection_id.unwrap_or_default())),
            Err(error) if error.says("already in progress") => Ok(DetectionStart::AlreadyInProgress),
            Err(error) if error.has_code("ValidationError") => Ok(DetectionStart::Refused(error.message)),
            Err(error) => Err(error),
        }
    }

    /// How far a detection is.
    pub(crate) async fn drift_detection(&self, id: &str) -> Result<Detection, AwsError> {
        let call = self.cloudformation.describe_stack_drift_detection_status().stack_drift_detection_id(id);
        let answer =
            call.send().await.map_err(AwsError::of(actions::CFN_DESCRIBE_STACK_DRIFT_DETECTION_STATUS))?;
        Ok(Detection {
            status: match answer.detection_status {
                Some(StackDriftDetectionStatus::DetectionInProgress) => DetectionStatus::InProgress,
                Some(StackDriftDetectionStatus::DetectionComplete) => DetectionStatus::Complete,
                _ => DetectionStatus::Failed,
            },
            reason: answer.detection_status_reason,
            began: answer.timestamp.and_then(super::to_offset_date_time),
        })
    }

    /// The results for every resource of a stack that was ever checked.
    pub(crate) async fn resource_drifts(&self, stack: &str) -> Result<Vec<ResourceDrift>, AwsError> {
        let mut found = Vec::new();
        let mut next_token = None;
        loop {
            let call = self.cloudformation.describe_stack_resource_drifts().stack_name(stack);
            let answer = call.set_next_token(next_token).send().await;
            let answer = answer.map_err(AwsError::of(actions::CFN_DESCRIBE_STACK_RESOURCE_DRIFTS))?;
            found.extend(answer.stack_resource_drifts.unwrap_or_default().into_iter().map(resource_drift));
            next_token = answer.next_token;
            if next_token.is_none() {
                return Ok(found);
            }
        }
    }
}

fn resource_drift(drift: StackResourceDrift) -> ResourceDrift {
    let differences = drift.property_differences.unwrap_or_default().into_iter();
    ResourceDrift {
        logical_id: drift.logical_resource_id.unwrap_or_default(),
        physical_id: drift.physical_resource_id.unwrap_or_default(),
        kind: drift.resource_type.unwrap_or_default(),
        status: match drift.stack_resource_drift_status {
            Some(StackResourceDriftStatus::InSync) => ResourceDriftStatus::InSync,
            Some(StackResourceDriftStatus::Modified) => ResourceDriftStatus::Modified,
            Some(StackResourceDriftStatus::Deleted) => ResourceDriftStatus::Deleted,
            Some(StackResourceDriftStatus::NotChecked | StackResourceDriftStatus::Unsupported) => {
                ResourceDriftStatus::NotChecked
            }
            _ => ResourceDriftStatus::Failed,
        },
        reason: drift.drift_status_reason,
        differences: differences.map(property_difference).collect(),
        checked: drift.timestamp.and_then(super::to_offset_date_time),
    }
}

fn property_difference(difference: SdkPropertyDifference) -> PropertyDifference {
    PropertyDifference {
        path: difference.property_path.unwrap_or_default(),
        kind: match difference.difference_type {
            Some(DifferenceType::Add) => DifferenceKind::Added,
            Some(DifferenceType::Remove) => DifferenceKind::Removed,
            _ => DifferenceKind::Changed,
        },
        expected: difference.expected_value.unwrap_or_default(),
        actual: difference.actual_value.unwrap_or_default(),
    }
}
