//! Deletes one stack from any state, retries while that helps, and reports what holds the stack when it does not.

use super::concurrent_deletion::deletion_token;
use super::operation::Operation;
use super::watch::{OperationBeginning, WatchedStack};
use crate::aws::{End, ResourceStatus, Stack, StackEvent, StackStatus};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::{StackOperation, Stuck, StuckResource};
use crate::deploy::run::Run;
use crate::deploy::state::step::{NextStep, next_step};

/// Resources that depend on each other may need several deletions.
const MOST_ATTEMPTS: usize = 4;

impl Stuck {
    /// As an error, for a caller that cannot continue.
    pub(crate) fn into_error(self) -> DeployError {
        let reasons: Vec<String> = self
            .resources
            .iter()
            .map(|stuck| format!("{} {}: {}", stuck.resource, stuck.id, stuck.reason))
            .collect();
        DeployError::Stuck {
            stack: self.stack,
            status: StackStatus::DeleteFailed,
            reason: reasons.join("; "),
            help: "delete what holds it, then run the same command again".to_owned(),
        }
    }
}

/// Deletes a stack; gives what is stuck, if anything is.
pub(crate) async fn delete_stack(
    run: &Run,
    part: &StackPart,
    stack: &Stack,
) -> Result<Option<Stuck>, DeployError> {
    if next_step(Some(&stack.status)) == NextStep::Follow
        && !matches!(stack.status, StackStatus::CreateInProgress | StackStatus::DeleteInProgress)
    {
        // CloudFormation deletes nothing in the middle of an update.
        attach_to_deletion(run, part, stack).await?;
    }
    let Some(mut current) = run.clients.stack(&stack.arn).await? else { return Ok(None) };
    let mut before = Vec::new();
    for _ in 0..MOST_ATTEMPTS {
        if current.status == StackStatus::DeleteComplete {
            return Ok(None);
        }
        if current.protected
            && let Err(error) = run.clients.protect_stack(&current.arn, false).await
        {
            // Another process may have lifted the protection and begun the deletion.
            match run.clients.stack(&current.arn).await? {
                None => return Ok(None),
                Some(now) if now.status.is_deletion() => current = now,
                Some(_) => return Err(error.into()),
            }
            if current.status == StackStatus::DeleteComplete {
                return Ok(None);
            }
        }
        let Some(left) = delete_once(run, part, &current).await? else { return Ok(None) };
        // The same things stuck as last time will be stuck next time.
        if are_the_same(&left.resources, &before) {
            return Ok(Some(left));
        }
        before = left.resources;
        match run.clients.stack(&current.arn).await? {
            Some(next) => current = next,
            None => return Ok(None),
        }
    }
    Ok(Some(Stuck { stack: stack.name.clone(), resources: before }))
}

async fn attach_to_deletion(run: &Run, part: &StackPart, stack: &Stack) -> Result<(), DeployError> {
    let operation = Operation {
        target: WatchedStack::of(part, stack),
        kind: StackOperation::Attach,
        beginning: OperationBeginning::Newest,
        wanted: None,
        resources: None,
    };
    operation.follow(run).await.map(|_| ())
}

async fn delete_once(run: &Run, part: &StackPart, stack: &Stack) -> Result<Option<Stuck>, DeployError> {
    let token = deletion_token()?;
    let beginning = if stack.status == StackStatus::DeleteInProgress {
        OperationBeginning::Newest
    } else {
        match run.clients.delete_stack(&stack.arn, &token).await {
            Err(error) if error.is_termination_protected() => {
                return Err(protected_again(stack));
            }
            begun => begun?,
        }
        if stack.status == StackStatus::DeleteFailed {
            OperationBeginning::OurCall { token: &token }
        } else {
            OperationBeginning::FirstDeletion
        }
    };
    let operation = Operation {
        target: WatchedStack::of(part, stack),
        kind: StackOperation::Delete,
        beginning,
        wanted: Some(End::Deleted),
        resources: None,
    };
    let ended = operation.follow(run).await?;
    if ended.end == End::Deleted {
        return Ok(None);
    }
    Ok(Some(Stuck { stack: stack.name.clone(), resources: failed_deletions(&ended.events) }))
}

/// Another process has protected the stack since this run lifted the protection.
fn protected_again(stack: &Stack) -> DeployError {
    DeployError::ProtectedAgain { stack: stack.name.clone() }
}

/// Whether the same things are stuck. Reasons do not count: AWS writes another request's id into each.
fn are_the_same(before: &[StuckResource], now: &[StuckResource]) -> bool {
    fn names(list: &[StuckResource]) -> Vec<(&str, &str)> {
        list.iter().map(|stuck| (stuck.resource.as_str(), stuck.id.as_str())).collect()
    }
    names(before) == names(now)
}

/// Each resource that could not be deleted, once, with the last reason.
fn failed_deletions(events: &[StackEvent]) -> Vec<StuckResource> {
    let mut failed = std::collections::BTreeMap::new();
    let is_failure = |event: &&StackEvent| event.resource_status() == Some(&ResourceStatus::DeleteFailed);
    for event in events.iter().filter(is_failure) {
        let reason = event.reason.clone().unwrap_or_default();
        failed.insert(event.logical_id.clone(), (event.physical_id.clone(), reason));
    }
    failed.into_iter().map(|(resource, (id, reason))| StuckResource { resource, id, reason }).collect()
}

#[cfg(test)]
mod tests {
    use super::{StuckResource, are_the_same};

    #[test]
    fn reasons_that_differ_in_the_request_id_are_the_same() {
        let stuck = |id: &str, request: &str| StuckResource {
            resource: "Subnet0".to_owned(),
            id: id.to_owned(),
            reason: format!(
                "The subnet has dependencies (Request ID: {request}, HandlerErrorCode: InvalidRequest)"
            ),
        };
        assert!(are_the_same(&[stuck("subnet-1", "a-1")], &[stuck("subnet-1", "b-2")]));
        assert!(!are_the_same(&[stuck("subnet-1", "a-1")], &[stuck("subnet-2", "a-1")]));
        assert!(!are_the_same(&[stuck("subnet-1", "a-1")], &[]));
    }
}
