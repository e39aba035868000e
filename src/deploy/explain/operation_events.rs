//! The events of a stack into the operations that they belong to, and the first failure among them.

use crate::aws::{StackEvent, StackStatus};

/// Words of events that only say that something else had failed before.
const FOLLOW_UP_REASONS: [&str; 4] =
    ["creation cancelled", "update cancelled", "deletion cancelled", "The following resource(s) failed to"];

/// The events of the newest operation among all events, oldest first. A rollback belongs to what it undoes.
#[must_use]
pub(crate) fn newest_operation(events: &[StackEvent]) -> &[StackEvent] {
    let start = events.iter().rposition(begins_operation).unwrap_or(0);
    &events[start..]
}

/// Whether an operation on a stack begins with this event.
#[must_use]
pub(crate) fn begins_operation(event: &StackEvent) -> bool {
    event.stack_status().is_some_and(StackStatus::begins_operation)
}

/// The part of an operation that shows why its rollback failed; all of it, if none does.
#[must_use]
pub(crate) fn failed_rollback(operation: &[StackEvent]) -> &[StackEvent] {
    let begins = |event: &StackEvent| event.stack_status() == Some(&StackStatus::UpdateRollbackInProgress);
    let start = operation.iter().rposition(begins).unwrap_or(0);
    let rollback = &operation[start..];
    if first_failure(rollback).is_some() { rollback } else { operation }
}

/// Whether a reason only says that something else had failed before.
#[must_use]
pub(crate) fn is_echo(reason: &str) -> bool {
    FOLLOW_UP_REASONS.iter().any(|echo| reason.contains(echo))
}

/// The first event of a failure that is not the consequence of another.
#[must_use]
pub(crate) fn first_failure(events: &[StackEvent]) -> Option<&StackEvent> {
    let own_failure = |event: &&StackEvent| {
        let reason = event.reason.as_deref().unwrap_or_default();
        event.is_failure() && !is_echo(reason)
    };
    events.iter().find(own_failure)
}

#[cfg(test)]
mod tests {
    use super::{failed_rollback, first_failure, newest_operation};
    use crate::aws::{EventStatus, STACK_TYPE, StackEvent};

    const STACK: &str = "c";

    fn event(logical_id: &str, kind: &str, status: &str, reason: &str) -> StackEvent {
        let arn = format!("arn:aws:cloudformation:us-west-2:111122223333:stack/{logical_id}/1");
        StackEvent {
            id: format!("{logical_id}-{status}"),
            at: None,
            logical_id: logical_id.to_owned(),
            physical_id: if kind == STACK_TYPE { arn } else { String::new() },
            kind: kind.to_owned(),
            status: if kind == STACK_TYPE {
                EventStatus::Stack(status.into())
            } else {
                EventStatus::Resource(status.into())
            },
            reason: Some(reason.to_owned()),
            token: None,
        }
    }

    fn stack(status: &str) -> StackEvent {
        event(STACK, STACK_TYPE, status, "")
    }

    fn resource(logical_id: &str, status: &str, reason: &str) -> StackEvent {
        event(logical_id, "T", status, reason)
    }

    #[track_caller]
    fn expect_cause(events: &[StackEvent], logical_id: &str) {
        assert_eq!(first_failure(events).map(|event| event.logical_id.as_str()), Some(logical_id));
    }

    #[test]
    fn the_first_failure_of_its_own_is_the_cause_not_its_echoes() {
        let events = [
            event(STACK, STACK_TYPE, "CREATE_IN_PROGRESS", "User Initiated"),
            event("Vpc", "AWS::EC2::VPC", "CREATE_FAILED", "Resource creation cancelled"),
            event("Nodes", "AWS::AutoScaling::AutoScalingGroup", "CREATE_FAILED", "no capacity"),
            event("Zone", "AWS::Route53::HostedZone", "CREATE_FAILED", "too many zones"),
            event(
                STACK,
                STACK_TYPE,
                "ROLLBACK_IN_PROGRESS",
                "The following resource(s) failed to create: [Nodes, Zone].",
            ),
        ];
        expect_cause(&events, "Nodes");
    }

    #[test]
    fn an_older_operation_is_ignored_and_a_rollback_belongs_to_its_operation() {
        let events = [
            stack("CREATE_IN_PROGRESS"),
            resource("Old", "CREATE_FAILED", "long ago"),
            stack("UPDATE_IN_PROGRESS"),
            resource("New", "UPDATE_FAILED", "now"),
            stack("UPDATE_ROLLBACK_IN_PROGRESS"),
            stack("UPDATE_ROLLBACK_COMPLETE"),
        ];
        let newest = newest_operation(&events);
        assert_eq!(newest.len(), 4);
        expect_cause(newest, "New");
        assert_eq!(failed_rollback(newest), newest, "the rollback was good");
    }

    #[test]
    fn what_stops_a_rollback_is_not_what_it_was_for() {
        let events = [
            stack("UPDATE_IN_PROGRESS"),
            resource("Forth", "UPDATE_FAILED", "no"),
            stack("UPDATE_ROLLBACK_IN_PROGRESS"),
            resource("Back", "UPDATE_FAILED", "no way back"),
            stack("UPDATE_ROLLBACK_FAILED"),
        ];
        expect_cause(failed_rollback(&events), "Back");
    }
}
