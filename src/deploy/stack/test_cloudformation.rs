//! CloudFormation as a script: lists of events that appear as time passes.

use std::time::Duration;

use super::watch::{EndedOperation, OperationBeginning, WatchedStack, watch_stack};
use crate::aws::test_script::{Asked, Script};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::test_run::TestRun;

pub(super) const ARN: &str = "arn:aws:cloudformation:us-west-2:111122223333:stack/paddle-network/1";
pub(super) const NAME: &str = "paddle-network";

/// An event, as CloudFormation writes it.
pub(super) struct ScriptedEvent {
    /// Seconds after the beginning.
    pub(super) at: u64,
    id: &'static str,
    kind: &'static str,
    pub(super) status: &'static str,
    token: &'static str,
}

pub(super) fn of_stack(at: u64, status: &'static str, token: &'static str) -> ScriptedEvent {
    ScriptedEvent { at, id: NAME, kind: "AWS::CloudFormation::Stack", status, token }
}

pub(super) fn of_resource(at: u64, id: &'static str, status: &'static str) -> ScriptedEvent {
    ScriptedEvent { at, id, kind: "AWS::EC2::VPC", status, token: "ours" }
}

fn xml(number: usize, event: &ScriptedEvent) -> String {
    let physical = if event.id == NAME { ARN } else { "physical" };
    format!(
        "<member><EventId>event-{number}</EventId><StackId>{ARN}</StackId><StackName>{NAME}</StackName>\
         <LogicalResourceId>{}</LogicalResourceId><PhysicalResourceId>{physical}</PhysicalResourceId><ResourceType>{}</ResourceType>\
         <Timestamp>2026-11-16T10:00:00Z</Timestamp><ResourceStatus>{}</ResourceStatus>\
         <ClientRequestToken>{}</ClientRequestToken></member>",
        event.id, event.kind, event.status, event.token
    )
}

/// Events in pages of `size`, newest first, as far as they have happened by then.
pub(super) fn describe_events(story: &[ScriptedEvent], asked: &Asked, size: usize) -> (u16, String) {
    let happened = story.iter().enumerate().filter(|(_, event)| Duration::from_secs(event.at) <= asked.at);
    let newest_first: Vec<String> = happened.map(|(number, event)| xml(number, event)).rev().collect();
    let page: usize = asked
        .form
        .split("NextToken=")
        .nth(1)
        .and_then(|rest| rest.split('&').next()?.parse().ok())
        .unwrap_or(0);
    let items: String = newest_first.iter().skip(page * size).take(size).cloned().collect();
    let next = if newest_first.len() > (page + 1) * size {
        format!("<NextToken>{}</NextToken>", page + 1)
    } else {
        String::new()
    };
    let body = format!(
        "<DescribeStackEventsResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\"><DescribeStackEventsResult>\
         <StackEvents>{items}</StackEvents>{next}</DescribeStackEventsResult></DescribeStackEventsResponse>"
    );
    (200, body)
}

pub(super) fn describe_stack(status: &str) -> String {
    format!(
        "<DescribeStacksResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\"><DescribeStacksResult><Stacks><member>\
         <StackId>{ARN}</StackId><StackName>{NAME}</StackName><CreationTime>2026-11-16T10:00:00Z</CreationTime>\
         <StackStatus>{status}</StackStatus></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
    )
}

/// CloudFormation, with its events in pages of a hundred, newest first.
pub(super) fn cloudformation(story: &[ScriptedEvent], asked: &Asked) -> (u16, String) {
    lossy_cloudformation(story, story, asked)
}

/// The same, but with events that differ from the history of the stack: some are missing, or come later.
pub(super) fn lossy_cloudformation(
    events: &[ScriptedEvent],
    stack: &[ScriptedEvent],
    asked: &Asked,
) -> (u16, String) {
    if asked.action != "DescribeStacks" {
        return describe_events(events, asked, 100);
    }
    let mut happened =
        stack.iter().filter(|event| event.id == NAME && Duration::from_secs(event.at) <= asked.at);
    match happened.next_back() {
        Some(event) => (200, describe_stack(event.status)),
        None => refuse(400, "ValidationError"),
    }
}

pub(super) fn refuse(status: u16, code: &str) -> (u16, String) {
    (
        status,
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
        ),
    )
}

pub(super) struct Run {
    pub(super) result: Result<EndedOperation, DeployError>,
    pub(super) events: Vec<Event>,
}

/// Follows a scripted operation with two hours to spare.
pub(super) async fn run(
    script: &Script,
    beginning: OperationBeginning<'_>,
) -> Result<Run, Box<dyn std::error::Error>> {
    let test = TestRun::new(script).await?;
    let result = watch_stack(&test.run, TARGET, beginning).await;
    Ok(Run { result, events: test.events() })
}

pub(super) const OURS: OperationBeginning<'_> = OperationBeginning::OurCall { token: "ours" };
pub(super) const TARGET: WatchedStack<'_> = WatchedStack { part: &StackPart::Network, name: NAME, arn: ARN };
