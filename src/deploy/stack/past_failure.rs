//! Why a stack is in the status in which a run finds it, read from the events of its newest operation.

use crate::aws::Stack;
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::FailureReport;
use crate::deploy::explain::failure_report::{FailedOperation, is_stuck, report_failure};
use crate::deploy::explain::operation_events::{failed_rollback, newest_operation};
use crate::deploy::run::Run;
use crate::deploy::state::step::{NextStep, next_step};

/// The report of a failure that another run has left.
pub(super) async fn report_past_failure(
    run: &Run,
    part: &StackPart,
    stack: &Stack,
) -> Result<FailureReport, DeployError> {
    let events = run.clients.stack_events(&stack.arn, None).await?;
    let operation = newest_operation(&events);
    let events = if is_stuck(&stack.status) { failed_rollback(operation) } else { operation };
    let failed = FailedOperation {
        status: stack.status.clone(),
        events: events.to_vec(),
        evidence: Vec::new(),
        gave_up: None,
    };
    report_failure(run, part, &stack.name, failed).await
}

/// The error for a stack that `up` cannot change, with the way out.
pub(super) async fn explain_stuck(run: &Run, part: &StackPart, stack: &Stack) -> DeployError {
    let reason = match report_past_failure(run, part, stack).await {
        Ok(report) => report.resource.map_or(report.reason.clone(), |resource| {
            format!("{} ({}): {}", resource.description, resource.path, report.reason)
        }),
        Err(error) => error.to_string(),
    };
    let help = match next_step(Some(&stack.status)) {
        NextStep::RollBack => {
            "fix the cause, then run `infra rollback`; `infra rollback --skip ID` continues without that resource"
        }
        NextStep::FinishDeletion => "finish the deletion with `infra destroy`, then run `infra up` again",
        _ => "inspect the stack in the CloudFormation console; infra does not use that operation",
    };
    DeployError::Stuck {
        stack: stack.name.clone(),
        status: stack.status.clone(),
        reason,
        help: help.to_owned(),
    }
}
