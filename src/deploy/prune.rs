//! Removes stacks of pools that cluster.yaml no longer names.

use super::failure::DeployError;
use super::follow::{Operation, follow};
use super::live::LiveStack;
use super::progress::Event;
use super::stack_run::report_failure;
use super::stack_status::End;
use super::work::{Work, new_token};
use crate::blueprint::StackPart;

/// Deletes stacks, one after the other, and waits for each.
pub(super) async fn delete_stacks(work: &Work, stacks: Vec<&LiveStack>) -> Result<(), DeployError> {
    for LiveStack { stack, .. } in stacks {
        let Some(part) = StackPart::from_stack_name(&work.blueprint.cluster.name, &stack.name) else {
            continue;
        };
        let token = new_token()?;
        let ours = stack.status != "DELETE_IN_PROGRESS";
        if ours {
            work.clients.delete_stack(&stack.arn, &token).await?;
        }
        work.progress.report(Event::StackBegan {
            stack: stack.name.clone(),
            operation: "delete",
            resources: None,
        });
        let operation = if ours { Operation::Ours { token: &token } } else { Operation::Found };
        let followed = follow(work, &part, &stack.name, &stack.arn, operation).await?;
        let good = followed.end == End::Deleted;
        work.progress.report(Event::StackEnded {
            stack: stack.name.clone(),
            status: followed.status.clone(),
            good,
        });
        if !good {
            return Err(DeployError::Failed(vec![report_failure(work, &part, &stack.name, followed).await?]));
        }
    }
    Ok(())
}
