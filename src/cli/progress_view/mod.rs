//! Shows what happens while a command works: live lines for a person, plain lines for a log, events for a program.

mod board;
#[cfg(test)]
mod board_tests;
mod machine_board;
mod plain;
mod stack_work;
mod typical_time;
mod wording;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::cli::terminal::printer::{Output, Printer};
use crate::cli::terminal::screen::{Ending, Stream};
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::{Event, Progress};
use board::ProgressBoard;
use plain::Plain;
pub(super) use wording::{clock_time, duration_in_words, finding_lines};

/// Shows events. Clones show the same.
#[derive(Clone, Debug)]
pub(super) struct ProgressView {
    printer: Printer,
    format: Format,
}

#[derive(Clone, Debug)]
enum Format {
    Events,
    Live(Arc<Mutex<Live>>),
    Plain(Arc<Mutex<Plain>>),
}

#[derive(Debug, Default)]
struct Live {
    board: ProgressBoard,
    is_drawn: bool,
    is_over: bool,
}

/// One line of `infra up`, `infra rollback` and `infra destroy`. Every line has `time` and `type`; the type says what else it has.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(super) struct TimedEvent<'a> {
    /// When it was seen here, not when AWS did it: RFC 3339, UTC, whole seconds.
    #[schemars(extend("format" = "date-time"))]
    time: String,
    #[serde(flatten)]
    event: &'a Event,
}

impl ProgressView {
    /// For people, lines are drawn again where they can be.
    pub(super) fn new(output: Output, printer: Printer, redraws: bool) -> Self {
        let format = match output {
            Output::Json => Format::Events,
            Output::Text | Output::Markdown | Output::Html if redraws => Format::Live(Arc::default()),
            Output::Text | Output::Markdown | Output::Html => Format::Plain(Arc::default()),
        };
        Self { printer, format }
    }

    /// Where the events of a command go.
    pub(super) fn progress(&self) -> Progress {
        let view = self.clone();
        Progress::new(move |event| view.show(&event))
    }

    /// The work is done, or has ended otherwise: the live lines stay as they are.
    pub(super) fn finish(&self, is_complete: bool) {
        let Format::Live(live) = &self.format else { return };
        let mut state = lock_view_state(live);
        if is_complete {
            state.board.complete();
        }
        state.is_over = true;
        let was_drawn = std::mem::take(&mut state.is_drawn);
        drop(state);
        if was_drawn {
            self.printer.end_block(Ending::Stay);
        }
    }

    fn show(&self, event: &Event) {
        let now = OffsetDateTime::now_utc();
        match &self.format {
            Format::Events => {
                if let Some(line) = event_line(event, now) {
                    // A reader that is gone, or a full disk, does not stop what AWS is doing.
                    let _ = self.printer.json_text(&line);
                }
            }
            Format::Live(live) => self.show_live(event, live),
            Format::Plain(plain) => {
                // Held while printing, so that lines of stacks that run in parallel do not mix.
                for line in lock_view_state(plain).lines(event) {
                    self.printer.note(StyledText::from(format_args!("{} ", clock_time(now))).then(line));
                }
            }
        }
    }

    /// The board is not held while something is printed or drawn: drawing reads it.
    fn show_live(&self, event: &Event, live: &Arc<Mutex<Live>>) {
        let mut state = lock_view_state(live);
        let staying = state.board.apply_event(event);
        let begins = !state.is_drawn && !state.is_over && !state.board.is_empty();
        state.is_drawn |= begins;
        drop(state);
        if begins {
            let live = Arc::clone(live);
            self.printer.begin_block(Stream::Stderr, move |size| lock_view_state(&live).board.lines(size));
        }
        if staying.is_empty() {
            self.printer.draw_block();
        } else {
            self.printer.note(StyledText::lines(staying));
        }
    }
}

fn lock_view_state<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn event_line(event: &Event, now: OffsetDateTime) -> Option<String> {
    let time = now.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()?;
    serde_json::to_string(&TimedEvent { time, event }).ok()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::event_line;
    use crate::deploy::event::{FailedResource, FailureReport};
    use crate::deploy::preflight::{Finding, Severity};
    use crate::deploy::{Event, StackOperation};

    fn line(event: &Event) -> String {
        event_line(event, datetime!(2026-03-01 12:03:05.678 UTC)).unwrap_or_default()
    }

    #[test]
    fn an_event_is_one_line_with_the_time_first() {
        let began = Event::StackBegan {
            stack: "paddle-pool".to_owned(),
            operation: StackOperation::Delete,
            resources: None,
        };
        assert_eq!(
            line(&began),
            r#"{"time":"2026-03-01T12:03:05Z","type":"stack-began","stack":"paddle-pool","operation":"delete","resources":null}"#
        );
        let waiting = Event::Waiting { waiting_for: vec!["two\nlines".to_owned()] };
        assert_eq!(
            line(&waiting),
            r#"{"time":"2026-03-01T12:03:05Z","type":"waiting","waitingFor":["two\nlines"]}"#
        );
    }

    #[test]
    fn fields_of_findings_and_reports_are_the_events_own() {
        let finding = Finding {
            severity: Severity::Refused,
            subject: "key pair",
            what: "none".to_owned(),
            why: "ssh".to_owned(),
            fix: "make it".to_owned(),
        };
        assert_eq!(
            line(&Event::Preflight { finding }),
            r#"{"time":"2026-03-01T12:03:05Z","type":"preflight","severity":"refused","subject":"key pair","what":"none","why":"ssh","fix":"make it"}"#
        );
        let resource = FailedResource {
            path: "Vpc".to_owned(),
            kind: "AWS::EC2::VPC".to_owned(),
            description: "the VPC".to_owned(),
        };
        let report = FailureReport {
            stack: "paddle-network".to_owned(),
            status: "ROLLBACK_COMPLETE".into(),
            resource: Some(resource),
            reason: "no".to_owned(),
            hint: None,
            evidence: Vec::new(),
        };
        assert_eq!(
            line(&Event::StackFailed { report }),
            r#"{"time":"2026-03-01T12:03:05Z","type":"stack-failed","stack":"paddle-network","status":"ROLLBACK_COMPLETE","resource":{"path":"Vpc","type":"AWS::EC2::VPC","description":"the VPC"},"reason":"no"}"#
        );
    }
}
