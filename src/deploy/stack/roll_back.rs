//! `infra rollback`: returns stacks to what they were before a change whose rollback failed too.

use super::operation::Operation;
use super::watch::{OperationBeginning, WatchedStack};
use crate::aws::{Accepts, End, Stack};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::StackOperation;
use crate::deploy::explain::failure_report::report_failure;
use crate::deploy::explain::operation_events::{failed_rollback, newest_operation};
use crate::deploy::run::{Run, new_token};
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::step::{NextStep, next_step};

/// Rolls back every stack that needs it, and follows rollbacks in progress; returns the names of all these stacks.
pub(crate) async fn roll_back(
    run: &Run,
    live: &LiveCluster,
    skip: &[String],
) -> Result<Vec<String>, DeployError> {
    let stacks = || live.stacks.iter().map(|(part, live)| (part, &live.stack));
    let stuck: Vec<(&StackPart, &Stack)> =
        stacks().filter(|(_, stack)| next_step(Some(&stack.status)) == NextStep::RollBack).collect();
    let mut failed = Vec::new();
    for (_, stack) in &stuck {
        failed.push(failed_resources(run, stack).await?);
    }
    let known: Vec<&String> = failed.iter().flatten().collect();
    if let Some(unknown) = skip.iter().find(|id| !known.contains(id)) {
        let failed = known.into_iter().cloned().collect();
        return Err(DeployError::RollbackNotFailed { resource: unknown.clone(), failed });
    }
    for ((part, stack), failed) in stuck.iter().zip(&failed) {
        let skipped: Vec<String> = skip.iter().filter(|id| failed.contains(id)).cloned().collect();
        roll_back_one(run, part, stack, &skipped).await?;
    }
    let in_progress: Vec<(&StackPart, &Stack)> =
        stacks().filter(|(_, stack)| stack.status.is_rolling_back_update()).collect();
    for (part, stack) in &in_progress {
        follow_rollback(run, part, stack, StackOperation::Attach, OperationBeginning::NewestRollback).await?;
    }
    Ok(stuck.into_iter().chain(in_progress).map(|(_, stack)| stack.name.clone()).collect())
}

async fn roll_back_one(
    run: &Run,
    part: &StackPart,
    stack: &Stack,
    skip: &[String],
) -> Result<(), DeployError> {
    let token = new_token()?;
    if stack.status.accepts() == Accepts::RollBack {
        run.clients.roll_back(&stack.arn, &token).await?;
    } else {
        run.clients.continue_rollback(&stack.arn, skip, &token).await?;
    }
    follow_rollback(
        run,
        part,
        stack,
        StackOperation::RollBack,
        OperationBeginning::OurRollback { token: &token },
    )
    .await
}

async fn follow_rollback(
    run: &Run,
    part: &StackPart,
    stack: &Stack,
    kind: StackOperation,
    beginning: OperationBeginning<'_>,
) -> Result<(), DeployError> {
    let target = WatchedStack::of(part, stack);
    let operation = Operation { target, kind, beginning, wanted: Some(End::RolledBack), resources: None };
    let ended = operation.follow(run).await?;
    if ended.end == End::RolledBack {
        return Ok(());
    }
    let report = report_failure(run, part, &stack.name, ended.into_failed()).await?;
    Err(DeployError::Stuck {
        stack: stack.name.clone(),
        status: report.status.clone(),
        reason: report.to_string(),
        help: match &report.resource {
            Some(resource) => {
                format!("fix that, or continue without it: `infra rollback --skip {}`", resource.path)
            }
            None => "read the stack's events in the CloudFormation console".to_owned(),
        },
    })
}

/// The resources whose rollback failed.
async fn failed_resources(run: &Run, stack: &Stack) -> Result<Vec<String>, DeployError> {
    let events = run.clients.stack_events(&stack.arn, None).await?;
    let failed = failed_rollback(newest_operation(&events)).iter().filter(|event| event.is_failure());
    let mut names: Vec<String> = failed.map(|event| event.logical_id.clone()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::roll_back;
    use crate::aws::test_script::Script;
    use crate::blueprint::StackPart;
    use crate::deploy::state::live::{LiveCluster, LiveStack, LiveTemplate};
    use crate::deploy::test_run::TestRun;
    use crate::deploy::test_stack::{NETWORK_ARN, network_stack};
    use crate::outcome::Explain;

    fn event(number: usize, (id, status): (&str, &str)) -> String {
        let (physical, kind) = if id == "paddle-network" {
            (NETWORK_ARN, "AWS::CloudFormation::Stack")
        } else {
            ("vpc-1", "AWS::EC2::VPC")
        };
        format!(
            "<member><EventId>{number}</EventId><LogicalResourceId>{id}</LogicalResourceId><PhysicalResourceId>{physical}\
             </PhysicalResourceId><ResourceType>{kind}</ResourceType><ResourceStatus>{status}</ResourceStatus></member>"
        )
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_stopped_the_newest_attempt_can_be_skipped() -> Result<(), Box<dyn std::error::Error>> {
        let script = Script::new(|_| {
            let stack = "paddle-network";
            let story = [
                (stack, "UPDATE_IN_PROGRESS"),
                ("Forth", "UPDATE_FAILED"),
                (stack, "UPDATE_ROLLBACK_IN_PROGRESS"),
                ("Fixed", "UPDATE_FAILED"),
                (stack, "UPDATE_ROLLBACK_FAILED"),
                (stack, "UPDATE_ROLLBACK_IN_PROGRESS"),
                ("Fixed", "UPDATE_COMPLETE"),
                ("Broken", "UPDATE_FAILED"),
                (stack, "UPDATE_ROLLBACK_FAILED"),
            ];
            let events: String =
                story.into_iter().enumerate().rev().map(|(number, told)| event(number, told)).collect();
            let body = format!(
                "<DescribeStackEventsResponse><DescribeStackEventsResult><StackEvents>{events}</StackEvents>\
                 </DescribeStackEventsResult></DescribeStackEventsResponse>"
            );
            (200, body)
        });
        let test = TestRun::new(&script).await?;
        let live =
            LiveStack { stack: network_stack("UPDATE_ROLLBACK_FAILED"), template: LiveTemplate::NotRead };
        let live =
            LiveCluster { stacks: BTreeMap::from([(StackPart::Network, live)]), ..LiveCluster::default() };
        let refused = roll_back(&test.run, &live, &["Fixed".to_owned()]).await.err();
        let refused = refused.ok_or("it was skipped")?;
        assert_eq!(refused.to_string(), "Fixed is not a resource whose rollback failed");
        assert_eq!(refused.help().as_deref(), Some("those that failed: Broken"));
        Ok(())
    }
}
