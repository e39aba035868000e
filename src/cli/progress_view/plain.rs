//! Progress for a log: a line for everything that has come to an end.

use std::collections::BTreeMap;
use std::time::Instant;

use super::wording::{FAILURE, duration_in_words, failed_status, lines_for, one_line};
use crate::aws::{Phase, ResourceStatus};
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::{Event, StackOperation, is_echo};

/// What has been printed so far.
#[derive(Debug, Default)]
pub(super) struct Plain {
    began: BTreeMap<String, Instant>,
    waiting_for: Vec<String>,
}

impl Plain {
    /// The lines for an event, without the time of day.
    pub(super) fn lines(&mut self, event: &Event) -> Vec<StyledText> {
        match event {
            Event::StackBegan { stack, operation, resources } => {
                self.began.insert(stack.clone(), Instant::now());
                vec![format!("{stack}: {}", describe_beginning(*operation, *resources)).into()]
            }
            Event::Resource { stack, resource, status, reason, .. } => {
                resource_text(resource, status, reason.as_deref())
                    .map(|text| StyledText::from(format_args!("{stack}: ")).then(text))
                    .into_iter()
                    .collect()
            }
            Event::StackEnded { stack, status, good } => {
                let after = match self.began.remove(stack) {
                    Some(began) => format!(" after {}", duration_in_words(began.elapsed())),
                    None => String::new(),
                };
                let status = if *good { status.into() } else { StyledText::styled(FAILURE, status) };
                vec![StyledText::from(format_args!("{stack}: ")).then(status).then(after)]
            }
            Event::StackUnchanged { stack } => vec![format!("{stack}: unchanged").into()],
            Event::StackSkipped { stack, because } => {
                vec![format!("{stack}: skipped, because {because} failed").into()]
            }
            Event::Waiting { waiting_for } => {
                if waiting_for.is_empty() || *waiting_for == self.waiting_for {
                    return Vec::new();
                }
                self.waiting_for.clone_from(waiting_for);
                vec![format!("waiting for {}", one_line(&waiting_for.join(", "))).into()]
            }
            Event::Stage { .. } => {
                self.waiting_for.clear();
                lines_for(event)
            }
            other => lines_for(other),
        }
    }
}

fn describe_beginning(operation: StackOperation, resources: Option<usize>) -> String {
    let word = operation.name();
    match (operation, resources) {
        (StackOperation::Attach, _) => "another operation is in progress; following it".to_owned(),
        (_, None) => format!("{word} begins"),
        (_, Some(1)) => format!("{word} of 1 resource begins"),
        (_, Some(number)) => format!("{word} of {number} resources begins"),
    }
}

/// What is still in progress is no news in a log, and what was cancelled hides the failure that it was cancelled for.
fn resource_text(resource: &str, status: &ResourceStatus, reason: Option<&str>) -> Option<StyledText> {
    match status.phase() {
        Phase::InProgress => None,
        _ if reason.is_some_and(is_echo) => None,
        Phase::Failed => Some(failed_status(resource, status, reason)),
        Phase::Complete => Some(format!("{resource} {status}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Plain, describe_beginning};
    use crate::deploy::{Event, StackOperation};

    fn told(events: &[Event]) -> Vec<String> {
        let mut plain = Plain::default();
        let lines = events.iter().flat_map(|event| plain.lines(event));
        lines.map(|line| line.bare()).collect()
    }

    fn resource(status: &str, reason: Option<&str>) -> Event {
        Event::Resource {
            stack: "paddle-network".to_owned(),
            resource: "Vpc".to_owned(),
            kind: "AWS::EC2::VPC".to_owned(),
            status: status.into(),
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn a_stack_is_reported_from_beginning_to_end() {
        let stack = || "paddle-network".to_owned();
        let lines = told(&[
            Event::StackBegan { stack: stack(), operation: StackOperation::Create, resources: Some(34) },
            resource("CREATE_IN_PROGRESS", None),
            resource("CREATE_COMPLETE", Some("not printed")),
            resource("CREATE_FAILED", Some("limit")),
            resource("CREATE_FAILED", Some("Resource creation cancelled")),
            Event::StackEnded { stack: stack(), status: "ROLLBACK_COMPLETE".into(), good: false },
            Event::StackEnded { stack: stack(), status: "CREATE_COMPLETE".into(), good: true },
        ]);
        assert_eq!(
            lines,
            [
                "paddle-network: create of 34 resources begins",
                "paddle-network: Vpc CREATE_COMPLETE",
                "paddle-network: Vpc CREATE_FAILED: limit",
                "paddle-network: ROLLBACK_COMPLETE after 0s",
                "paddle-network: CREATE_COMPLETE"
            ]
        );
    }

    #[test]
    fn the_beginning_of_an_operation_is_reported_with_its_kind_and_size() {
        assert_eq!(describe_beginning(StackOperation::Delete, None), "delete begins");
        assert_eq!(describe_beginning(StackOperation::Update, Some(1)), "update of 1 resource begins");
        assert_eq!(
            describe_beginning(StackOperation::Attach, None),
            "another operation is in progress; following it"
        );
    }

    #[test]
    fn the_same_wait_is_reported_once_per_stage() {
        let waiting = |names: &[&str]| Event::Waiting {
            waiting_for: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let lines = told(&[
            waiting(&["a", "b"]),
            waiting(&["a", "b"]),
            waiting(&["b"]),
            Event::Stage { what: "again" },
            waiting(&["b"]),
        ]);
        assert_eq!(lines, ["waiting for a, b", "waiting for b", "again", "waiting for b"]);
    }
}
