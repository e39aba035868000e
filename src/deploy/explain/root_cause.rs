//! The one cause of a failure among all that a stack reports.

use std::pin::Pin;

use super::operation_events::{first_failure, newest_operation};
use crate::aws::{AwsError, Clients, STACK_TYPE, StackEvent};
use crate::blueprint::StackPart;
use crate::config::Cluster;
use crate::deploy::event::FailedResource;
use crate::deploy::state::description::describe_resource;

/// What failed first, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootCause {
    /// The resource, if it was one.
    pub resource: Option<FailedResource>,
    /// What AWS calls it.
    pub physical_id: String,
    /// The reason, in AWS's words.
    pub reason: String,
}

/// Finds the cause in an operation's events, and behind them in those of stacks inside the stack.
pub(crate) async fn find_root_cause(
    clients: &Clients,
    cluster: Option<&Cluster>,
    part: &StackPart,
    events: &[StackEvent],
) -> Result<Option<RootCause>, AwsError> {
    let Some(event) = first_failure(events) else {
        // Nothing but the stack itself: a template that was refused, a time limit, a cancellation.
        let last = events.iter().rev().find(|event| event.stack_status().is_some() && event.reason.is_some());
        return Ok(last.map(|event| RootCause {
            resource: None,
            physical_id: event.physical_id.clone(),
            reason: event.reason.clone().unwrap_or_default(),
        }));
    };
    let (path, inner) = descend_into_stack(clients, event, event.logical_id.clone()).await?;
    let resource = FailedResource {
        description: cluster.map_or_else(
            || event.logical_id.clone(),
            |cluster| describe_resource(cluster, part, &event.logical_id),
        ),
        path,
        kind: inner.kind,
    };
    Ok(Some(RootCause {
        resource: Some(resource),
        physical_id: inner.physical_id,
        reason: inner.reason.unwrap_or_else(|| inner.status.to_string()),
    }))
}

type Descent<'a> = Pin<Box<dyn Future<Output = Result<(String, StackEvent), AwsError>> + Send + 'a>>;

/// Follows a failed stack inside a stack to what failed in there.
fn descend_into_stack<'a>(clients: &'a Clients, event: &'a StackEvent, path: String) -> Descent<'a> {
    Box::pin(async move {
        if event.kind != STACK_TYPE || event.physical_id.is_empty() {
            return Ok((path, event.clone()));
        }
        let events = clients.stack_events(&event.physical_id, None).await?;
        match first_failure(newest_operation(&events)) {
            Some(inner) => descend_into_stack(clients, inner, format!("{path} / {}", inner.logical_id)).await,
            None => Ok((path, event.clone())),
        }
    })
}
