//! Stacks that another process deletes while this run needs them: none of them is created again.

use crate::aws::{AwsError, Clients, Stack, StackEvent, StackStatus};
use crate::deploy::error::DeployError;
use crate::deploy::run::new_token;
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;

/// Begins the tokens of deletions that are meant to last, so that the stack's events distinguish them from all others.
const FINAL_DELETION_PREFIX: &str = "away-";

/// A token for the deletion of a stack that is not to be created again.
pub(crate) fn deletion_token() -> Result<String, AwsError> {
    Ok(format!("{FINAL_DELETION_PREFIX}{}", new_token()?))
}

/// Whether a stack is being deleted by an `infra destroy` or a `--prune`. One that is deleted by hand, or by a run that retries a failed
/// creation, may be created again.
pub(crate) async fn is_being_destroyed(clients: &Clients, stack: &Stack) -> Result<bool, AwsError> {
    if stack.status != StackStatus::DeleteInProgress {
        return Ok(false);
    }
    let begins = |event: &StackEvent| event.stack_status() == Some(&StackStatus::DeleteInProgress);
    let events = clients.stack_events_since(&stack.arn, begins).await?;
    let token = events.into_iter().find(begins).and_then(|event| event.token);
    Ok(token.is_some_and(|token| token.starts_with(FINAL_DELETION_PREFIX)))
}

/// Refuses to begin while `infra destroy` deletes one of the desired stacks.
pub(crate) async fn refuse_while_destroyed(
    clients: &Clients,
    desired: &[DesiredStack],
    live: &LiveCluster,
) -> Result<(), DeployError> {
    for stack in desired {
        let Some(found) = live.stacks.get(&stack.part) else { continue };
        if is_being_destroyed(clients, &found.stack).await? {
            return Err(DeployError::BeingDeleted { stack: found.stack.name.clone() });
        }
    }
    Ok(())
}

/// Checks that the stacks that were brought up still exist.
pub(crate) async fn check_all_exist(clients: &Clients, names: &[String]) -> Result<(), DeployError> {
    if names.is_empty() {
        return Ok(());
    }
    let stacks = clients.stacks().await?;
    let is_there =
        |name: &&String| stacks.iter().any(|stack| stack.name == **name && !stack.status.is_deletion());
    match names.iter().find(|name| !is_there(name)) {
        Some(name) => Err(DeployError::DeletedMeanwhile { stack: name.clone() }),
        None => Ok(()),
    }
}
