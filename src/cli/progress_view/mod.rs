//! Shows what happens while a command works: live lines for a person, plain lines for a log, events for a program.

mod live;
mod plain;
mod stack_work;
mod wording;

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::printer::{Output, Printer};
use super::styled_text::StyledText;
use crate::deploy::{Event, Progress};
use live::Live;
use plain::Plain;
use wording::clock;
pub(super) use wording::finding_lines;

/// Shows events. Clones show the same.
#[derive(Clone, Debug)]
pub(super) struct ProgressView(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    printer: Printer,
    format: Mutex<Format>,
}

#[derive(Debug)]
enum Format {
    Events,
    Live(Live),
    Plain(Plain),
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
    /// With `quiet` logs, lines can be drawn again: nothing else is written between them.
    pub(super) fn new(output: Output, printer: Printer, quiet: bool) -> Self {
        let terminal = TerminalInfo {
            terminal: io::stderr().is_terminal(),
            ci: std::env::var_os("CI").is_some(),
            term: std::env::var_os("TERM"),
        };
        let format = match output {
            Output::Json => Format::Events,
            Output::Text | Output::Markdown | Output::Html if quiet && terminal.can_redraw() => {
                Format::Live(Live::on_stderr())
            }
            Output::Text | Output::Markdown | Output::Html => Format::Plain(Plain::default()),
        };
        Self(Arc::new(Shared { printer, format: Mutex::new(format) }))
    }

    /// Where the events of a command go.
    pub(super) fn progress(&self) -> Progress {
        let view = self.clone();
        Progress::new(move |event| view.show(&event))
    }

    /// Removes the live lines. Must be called before anything else is printed or asked.
    pub(super) fn finish(&self) {
        if let Format::Live(live) = &mut *self.format() {
            live.clear();
        }
    }

    fn show(&self, event: &Event) {
        let printer = &self.0.printer;
        let now = OffsetDateTime::now_utc();
        // Held while printing, so that lines of stacks that run in parallel do not mix.
        match &mut *self.format() {
            Format::Events => {
                if let Some(line) = event_line(event, now) {
                    // A reader that is gone, or a full disk, does not stop what AWS is doing.
                    let _ = printer.json_text(&line);
                }
            }
            Format::Live(live) => live.show(event, printer),
            Format::Plain(plain) => {
                for line in plain.lines(event) {
                    printer.note(StyledText::from(format_args!("{} ", clock(now))).then(line));
                }
            }
        }
    }

    fn format(&self) -> MutexGuard<'_, Format> {
        self.0.format.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What decides whether lines can be drawn again.
struct TerminalInfo<T> {
    terminal: bool,
    ci: bool,
    term: Option<T>,
}

impl<T: AsRef<OsStr>> TerminalInfo<T> {
    fn can_redraw(&self) -> bool {
        let capable = self.term.as_ref().is_some_and(|term| term.as_ref() != "dumb");
        self.terminal && !self.ci && capable
    }
}

fn event_line(event: &Event, now: OffsetDateTime) -> Option<String> {
    let time = now.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()?;
    serde_json::to_string(&TimedEvent { time, event }).ok()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{TerminalInfo, event_line};
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

    #[test]
    fn lines_are_drawn_again_only_where_a_person_looks() {
        let can_redraw = |terminal, ci, term| TerminalInfo { terminal, ci, term }.can_redraw();
        assert!(can_redraw(true, false, Some("xterm-256color")));
        assert!(!can_redraw(false, false, Some("xterm-256color")));
        assert!(!can_redraw(true, true, Some("xterm-256color")));
        assert!(!can_redraw(true, false, Some("dumb")));
        assert!(!can_redraw(true, false, None));
    }
}
