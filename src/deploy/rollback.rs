//! `infra rollback`: brings stacks back to where they were before a change whose rollback failed too.

use super::failure::DeployError;
use super::failure_report::report_failure;
use super::follow::{Operation, follow};
use super::live::LiveCluster;
use super::means::{Means, new_token};
use super::progress::{Event, StackOperation};
use super::root_cause::newest_operation;
use super::stack_status::{End, Step, next_step};
use crate::aws::Stack;
use crate::blueprint::StackPart;

/// Rolls back whatever needs it; gives the names of the stacks that did.
pub async fn roll_back(
    means: &Means,
    live: &LiveCluster,
    skip: &[String],
) -> Result<Vec<String>, DeployError> {
    let stuck: Vec<(&StackPart, &Stack)> = live
        .stacks
        .iter()
        .map(|(part, live)| (part, &live.stack))
        .filter(|(_, stack)| next_step(Some(&stack.status)) == Step::RollBack)
        .collect();
    let mut failed = Vec::new();
    for (_, stack) in &stuck {
        failed.push(failed_resources(means, stack).await?);
    }
    let known: Vec<&String> = failed.iter().flatten().collect();
    if let Some(unknown) = skip.iter().find(|id| !known.contains(id)) {
        let names: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
        return Err(DeployError::Unusable {
            what: format!("{unknown} is not a resource whose rollback failed"),
            help: if names.is_empty() {
                "no stack of this cluster needs a rollback".to_owned()
            } else {
                format!("those that failed: {}", names.join(", "))
            },
        });
    }
    for ((part, stack), failed) in stuck.iter().zip(&failed) {
        let skipped: Vec<String> = skip.iter().filter(|id| failed.contains(id)).cloned().collect();
        roll_back_one(means, part, stack, &skipped).await?;
    }
    Ok(stuck.into_iter().map(|(_, stack)| stack.name.clone()).collect())
}

async fn roll_back_one(
    means: &Means,
    part: &StackPart,
    stack: &Stack,
    skip: &[String],
) -> Result<(), DeployError> {
    let token = new_token()?;
    if stack.status == "UPDATE_FAILED" {
        means.clients.roll_back(&stack.arn, &token).await?;
    } else {
        means.clients.continue_rollback(&stack.arn, skip, &token).await?;
    }
    means.progress.report(Event::StackBegan {
        stack: stack.name.clone(),
        operation: StackOperation::RollBack,
        resources: None,
    });
    let followed =
        follow(means, part, &stack.name, &stack.arn, Operation::OurRollback { token: &token }).await?;
    let good = followed.end == End::RolledBack;
    means.progress.report(Event::StackEnded {
        stack: stack.name.clone(),
        status: followed.status.clone(),
        good,
    });
    if good {
        return Ok(());
    }
    let report = report_failure(means, part, &stack.name, followed).await?;
    Err(DeployError::Stuck {
        stack: stack.name.clone(),
        status: report.status.clone(),
        reason: report.to_string(),
        help: match &report.resource {
            Some(resource) => {
                format!("mend that, or go on without it: `infra rollback --skip {}`", resource.path)
            }
            None => "look at the stack's events in the CloudFormation console".to_owned(),
        },
    })
}

/// The resources that stand in the way of a rollback.
async fn failed_resources(means: &Means, stack: &Stack) -> Result<Vec<String>, DeployError> {
    let events = means.clients.stack_events(&stack.arn, None).await?;
    let operation = newest_operation(&events);
    let start = operation.iter().position(|event| event.status == "UPDATE_ROLLBACK_IN_PROGRESS").unwrap_or(0);
    let failed = operation[start..]
        .iter()
        .filter(|event| event.status.ends_with("_FAILED") && event.physical_id != stack.arn);
    let mut names: Vec<String> = failed.map(|event| event.logical_id.clone()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
