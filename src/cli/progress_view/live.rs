//! Progress for a person at a terminal: one line per stack, which is drawn again and again, and above these what stays.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::stack_work::StackWork;
use super::wording::{FAILURE, duration, failed_status, lines_for, one_line};
use crate::aws::StackStatus;
use crate::cli::foreign_text::clean_line;
use crate::cli::printer::Printer;
use crate::cli::styled_text::StyledText;
use crate::deploy::{Event, is_echo};

/// Often enough that no second of the elapsed time is left out.
const TICK: Duration = Duration::from_millis(250);
/// The message is cut where the terminal ends.
const TEMPLATE: &str = "{prefix}  {duration}  {wide_msg}";

/// The lines that are drawn.
#[derive(Debug)]
pub(super) struct Live {
    lines: MultiProgress,
    stacks: BTreeMap<String, (StackWork, ProgressBar)>,
    waiting: Option<ProgressBar>,
}

impl Live {
    pub(super) fn on_stderr() -> Self {
        Self::on(ProgressDrawTarget::stderr())
    }

    fn on(target: ProgressDrawTarget) -> Self {
        Self { lines: MultiProgress::with_draw_target(target), stacks: BTreeMap::new(), waiting: None }
    }

    /// Draws an event, and prints what stays of it above the lines.
    pub(super) fn show(&mut self, event: &Event, printer: &Printer) {
        let staying = self.apply_event(event);
        // A terminal that is gone shows itself here; `suspend` would panic about it.
        if !staying.is_empty() && self.lines.clear().is_ok() {
            self.lines.suspend(|| printer.note(StyledText::lines(staying)));
        }
    }

    /// Removes all lines.
    pub(super) fn clear(&mut self) {
        self.stop_waiting();
        for (_, line) in std::mem::take(&mut self.stacks).into_values() {
            self.remove(&line);
        }
        // Nothing is left to be drawn on a terminal that is gone.
        let _ = self.lines.clear();
    }

    /// Brings the live lines up to date. Gives the lines that stay.
    fn apply_event(&mut self, event: &Event) -> Vec<StyledText> {
        match event {
            Event::StackBegan { stack, operation, resources } => {
                self.stop_waiting();
                self.end(stack);
                let line = self.add(stack);
                self.stacks.insert(stack.clone(), (StackWork::new(*operation, *resources), line));
                self.write_lines();
                Vec::new()
            }
            Event::Resource { stack, resource, status, reason, .. } => {
                let Some((work, _)) = self.stacks.get_mut(stack) else { return Vec::new() };
                let is_first_failure = work.apply(resource, status);
                self.write_lines();
                if is_first_failure && !reason.as_deref().is_some_and(is_echo) {
                    let failure = failed_status(resource, status, reason.as_deref());
                    let mark = StyledText::styled(FAILURE, "✗");
                    return vec![mark.then(format_args!(" {stack}  ")).then(failure)];
                }
                Vec::new()
            }
            Event::UndoBegan { stack, operation } => {
                if let Some((work, _)) = self.stacks.get_mut(stack) {
                    work.undo(*operation);
                    self.write_lines();
                }
                Vec::new()
            }
            Event::StackEnded { stack, status, good } => {
                let work = self.end(stack);
                self.write_lines();
                vec![ended_line(stack, work.as_ref(), status, *good)]
            }
            Event::StackUnchanged { stack } => vec![format!("= {stack}  unchanged").into()],
            Event::StackSkipped { stack, because } => {
                vec![format!("- {stack}  skipped, because {because} failed").into()]
            }
            Event::Waiting { waiting_for } => {
                self.wait_for(waiting_for);
                Vec::new()
            }
            Event::Stage { .. } | Event::Ready { .. } => {
                self.stop_waiting();
                lines_for(event)
            }
            other => lines_for(other),
        }
    }

    fn wait_for(&mut self, things: &[String]) {
        if things.is_empty() {
            return self.stop_waiting();
        }
        let line = match self.waiting.take() {
            Some(line) => line,
            None => self.add("waiting"),
        };
        line.set_message(clean_line(&one_line(&things.join(", "))));
        self.waiting = Some(line);
    }

    fn stop_waiting(&mut self) {
        if let Some(line) = self.waiting.take() {
            self.remove(&line);
        }
    }

    fn end(&mut self, stack: &str) -> Option<StackWork> {
        let (work, line) = self.stacks.remove(stack)?;
        self.remove(&line);
        Some(work)
    }

    fn add(&self, prefix: &str) -> ProgressBar {
        let line = ProgressBar::no_length().with_style(progress_style()).with_prefix(clean_line(prefix));
        let line = self.lines.add(line);
        line.enable_steady_tick(TICK);
        line
    }

    fn remove(&self, line: &ProgressBar) {
        line.finish_and_clear();
        self.lines.remove(line);
    }

    fn write_lines(&self) {
        let width = self.stacks.keys().map(|name| name.chars().count()).max().unwrap_or_default();
        for (name, (work, line)) in &self.stacks {
            let prefix = format!("{name:<width$}  {}  {}", work.operation().name(), work.count());
            line.set_prefix(clean_line(&prefix));
            line.set_message(clean_line(work.waits_for().unwrap_or_default()));
        }
    }
}

fn progress_style() -> ProgressStyle {
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("duration", |state: &ProgressState, text: &mut dyn Write| {
        // Writing into a line in memory does not fail.
        let _ = text.write_str(&duration(state.elapsed()));
    })
}

fn ended_line(stack: &str, work: Option<&StackWork>, status: &StackStatus, good: bool) -> StyledText {
    let mark = if good { "✓".into() } else { StyledText::styled(FAILURE, "✗") };
    let Some(work) = work else { return mark.then(format_args!(" {stack}  {status}")) };
    let time = duration(work.elapsed());
    match work.past_operation().filter(|_| good) {
        Some(done) => mark.then(format_args!(" {stack}  {done} in {time}")),
        None => mark.then(format_args!(" {stack}  {status} after {time}")),
    }
}

#[cfg(test)]
mod tests {
    use indicatif::{ProgressBar, ProgressDrawTarget};

    use super::{Live, TEMPLATE, progress_style};
    use crate::deploy::{Event, StackOperation};

    fn began(stack: &str, operation: StackOperation, resources: Option<usize>) -> Event {
        Event::StackBegan { stack: stack.to_owned(), operation, resources }
    }

    fn resource(stack: &str, resource: &str, status: &str) -> Event {
        Event::Resource {
            stack: stack.to_owned(),
            resource: resource.to_owned(),
            kind: "AWS::EC2::VPC".to_owned(),
            status: status.into(),
            reason: Some("limit".to_owned()),
        }
    }

    fn ended(stack: &str, status: &str, good: bool) -> Event {
        Event::StackEnded { stack: stack.to_owned(), status: status.into(), good }
    }

    fn apply_events(live: &mut Live, events: &[Event]) -> Vec<String> {
        events.iter().flat_map(|event| live.apply_event(event)).map(|line| line.bare()).collect()
    }

    fn drawn(live: &Live) -> Vec<(String, String)> {
        let text = |line: &ProgressBar| (line.prefix(), line.message());
        live.stacks.values().map(|(_, line)| text(line)).chain(live.waiting.iter().map(text)).collect()
    }

    fn pair(prefix: &str, message: &str) -> (String, String) {
        (prefix.to_owned(), message.to_owned())
    }

    #[test]
    fn the_template_is_one() {
        assert!(indicatif::ProgressStyle::with_template(TEMPLATE).is_ok());
        // Cloned with its own key, as indicatif does.
        let _ = progress_style().clone();
    }

    #[test]
    fn stacks_have_a_line_while_they_are_worked_on_and_one_that_stays() {
        let mut live = Live::on(ProgressDrawTarget::hidden());
        let staying = apply_events(
            &mut live,
            &[
                began("paddle-network", StackOperation::Create, Some(2)),
                began("paddle-pool", StackOperation::Delete, None),
                resource("paddle-network", "Vpc", "CREATE_COMPLETE"),
                resource("paddle-network", "Zone", "CREATE_IN_PROGRESS"),
                resource("unknown", "Zone", "CREATE_IN_PROGRESS"),
            ],
        );
        assert!(staying.is_empty(), "{staying:?}");
        assert_eq!(
            drawn(&live),
            [pair("paddle-network  create  1/2", "Zone"), pair("paddle-pool     delete  0", "")]
        );
        let staying = apply_events(
            &mut live,
            &[
                ended("paddle-network", "CREATE_COMPLETE", true),
                resource("paddle-pool", "Group", "DELETE_FAILED"),
                ended("paddle-pool", "DELETE_FAILED", false),
                Event::StackUnchanged { stack: "paddle-storage".to_owned() },
            ],
        );
        assert_eq!(
            staying,
            [
                "✓ paddle-network  created in 0s",
                "✗ paddle-pool  Group DELETE_FAILED: limit",
                "✗ paddle-pool  DELETE_FAILED after 0s",
                "= paddle-storage  unchanged"
            ]
        );
        assert!(drawn(&live).is_empty());
    }

    #[test]
    fn what_was_attached_to_ends_with_its_status() {
        let mut live = Live::on(ProgressDrawTarget::hidden());
        let events = [
            began("a", StackOperation::Attach, None),
            ended("a", "UPDATE_COMPLETE", true),
            ended("b", "X", true),
        ];
        assert_eq!(apply_events(&mut live, &events), ["✓ a  UPDATE_COMPLETE after 0s", "✓ b  X"]);
    }

    #[test]
    fn the_line_of_a_wait_is_removed_with_its_stage() {
        let mut live = Live::on(ProgressDrawTarget::hidden());
        let waiting = |name: &str| Event::Waiting { waiting_for: vec![name.to_owned(), "b".to_owned()] };
        assert!(apply_events(&mut live, &[waiting("a"), waiting("two\nlines")]).is_empty());
        assert_eq!(drawn(&live), [pair("waiting", "two lines, b")]);
        assert_eq!(apply_events(&mut live, &[Event::Stage { what: "next" }]), ["next"]);
        assert!(drawn(&live).is_empty());
        apply_events(&mut live, &[began("a", StackOperation::Create, None), waiting("a")]);
        live.clear();
        assert!(drawn(&live).is_empty());
    }
}
