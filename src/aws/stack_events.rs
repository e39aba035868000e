//! What happened to a stack and its resources, oldest first.

use std::fmt;

use aws_sdk_cloudformation::types::StackEvent as SdkStackEvent;
use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients, Phase, ResourceStatus, StackStatus};

/// The type under which a stack reports about itself and about stacks in it.
pub(crate) const STACK_TYPE: &str = "AWS::CloudFormation::Stack";

/// One step of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackEvent {
    /// The id of the event.
    pub id: String,
    /// When the event happened.
    pub at: Option<OffsetDateTime>,
    /// The resource's name in the template; the stack's name for the stack itself.
    pub logical_id: String,
    /// What AWS calls the resource.
    pub physical_id: String,
    /// The resource's type.
    pub kind: String,
    /// The status that the event reports.
    pub status: EventStatus,
    /// Why the resource has this status.
    pub reason: Option<String>,
    /// The token of the call that began the operation.
    pub token: Option<String>,
}

/// The status of the stack itself, or of a resource in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventStatus {
    /// The event is about the stack itself.
    Stack(StackStatus),
    /// The event is about a resource of the stack, which may be a nested stack.
    Resource(ResourceStatus),
}

impl StackEvent {
    /// The status of the stack, if the event is about the stack itself.
    #[must_use]
    pub(crate) fn stack_status(&self) -> Option<&StackStatus> {
        match &self.status {
            EventStatus::Stack(status) => Some(status),
            EventStatus::Resource(_) => None,
        }
    }

    /// The status of the resource, if the event is about one.
    #[must_use]
    pub(crate) fn resource_status(&self) -> Option<&ResourceStatus> {
        match &self.status {
            EventStatus::Resource(status) => Some(status),
            EventStatus::Stack(_) => None,
        }
    }

    /// Whether a step of a resource has failed.
    #[must_use]
    pub(crate) fn is_failure(&self) -> bool {
        self.resource_status().is_some_and(|status| status.phase() == Phase::Failed)
    }
}

impl Clients {
    /// The events of a stack that came after the event `after`, oldest first; all of them without one.
    pub(crate) async fn stack_events(
        &self,
        arn: &str,
        after: Option<&str>,
    ) -> Result<Vec<StackEvent>, AwsError> {
        let is_known = |event: &StackEvent| after.is_some_and(|known| known == event.id);
        let mut events = self.stack_events_since(arn, is_known).await?;
        if events.first().is_some_and(is_known) {
            events.remove(0);
        }
        Ok(events)
    }

    /// The events of a stack from the newest one that `begins` on, oldest first; all of them if none does.
    ///
    /// Only as many pages are read as are needed.
    pub(crate) async fn stack_events_since(
        &self,
        arn: &str,
        begins: impl Fn(&StackEvent) -> bool,
    ) -> Result<Vec<StackEvent>, AwsError> {
        let mut events = Vec::new();
        let mut next_token = None;
        'pages: loop {
            let call = self.cloudformation.describe_stack_events().stack_name(arn);
            let answer = call.set_next_token(next_token).send().await;
            let answer = answer.map_err(AwsError::of(actions::CFN_DESCRIBE_STACK_EVENTS))?;
            for found in answer.stack_events.unwrap_or_default() {
                let event = to_stack_event(found);
                let is_first = begins(&event);
                events.push(event);
                if is_first {
                    break 'pages;
                }
            }
            next_token = answer.next_token;
            if next_token.is_none() {
                break;
            }
        }
        events.reverse();
        Ok(events)
    }
}

fn to_stack_event(found: SdkStackEvent) -> StackEvent {
    let logical_id = found.logical_resource_id.unwrap_or_default();
    let physical_id = found.physical_resource_id.unwrap_or_default();
    let kind = found.resource_type.unwrap_or_default();
    let status = found.resource_status.as_ref().map_or("", |status| status.as_str());
    StackEvent {
        id: found.event_id.unwrap_or_default(),
        at: found.timestamp.and_then(super::to_offset_date_time),
        status: EventStatus::new(status, &kind, &logical_id, &physical_id),
        logical_id,
        physical_id,
        kind,
        reason: found.resource_status_reason,
        token: found.client_request_token,
    }
}

impl EventStatus {
    /// A nested stack has the type of a stack too, but not the name of the stack in its ARN.
    fn new(status: &str, kind: &str, logical_id: &str, physical_id: &str) -> Self {
        if kind == STACK_TYPE && physical_id.split('/').nth(1) == Some(logical_id) {
            Self::Stack(status.into())
        } else {
            Self::Resource(status.into())
        }
    }
}

impl fmt::Display for EventStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stack(status) => status.fmt(formatter),
            Self::Resource(status) => status.fmt(formatter),
        }
    }
}
