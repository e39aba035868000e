//! How far a transfer is: a bar on a terminal, now and then a line elsewhere.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::transfer_event::{Direction, Subject, TransferEvent, write_event};
use crate::cli::printer::{Output, Printer};
use crate::cli::session::Session;
use crate::job::data::{Progress, bytes_in_words};

/// Between two events.
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
const BAR: &str = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {msg}";

/// Shows how far a transfer is.
pub(in crate::cli) struct TransferView {
    bar: Option<ProgressBar>,
    printer: Printer,
    /// What programs read, if they do.
    events: Option<(Direction, Subject)>,
    last_line: Mutex<Option<Instant>>,
}

impl TransferView {
    pub(in crate::cli) fn new(direction: Direction, subject: Subject, session: &Session) -> Self {
        let has_bar = session.output == Output::Text && io::stderr().is_terminal();
        let bar = has_bar.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The style is a constant, so that it is understood.
            bar.set_style(ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let events = (session.output == Output::Json).then_some((direction, subject));
        Self { bar, printer: session.printer.clone(), events, last_line: Mutex::new(None) }
    }

    /// Shows how far it is.
    pub(in crate::cli) fn show(&self, progress: Progress) {
        let files = format!("{}/{} files", progress.done_files, progress.files);
        if let Some(bar) = &self.bar {
            bar.set_length(progress.bytes);
            bar.set_position(progress.done_bytes);
            bar.set_message(files);
            return;
        }
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        let every = if self.events.is_some() { EVENT_EVERY } else { LINE_EVERY };
        let is_first = last.is_none();
        // Programs are told the last step in any case.
        let is_last = self.events.is_some() && progress.done_files == progress.files && !is_first;
        if !is_last && last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        let Progress { files: all_files, bytes, done_files, done_bytes } = progress;
        if let Some((direction, subject)) = self.events {
            let event = if is_first {
                TransferEvent::TransferBegan { direction, subject, files: all_files, bytes }
            } else {
                TransferEvent::TransferProgress { done_files, files: all_files, done_bytes, bytes }
            };
            write_event(event, &self.printer);
        } else if !is_first {
            let (done, all) = (bytes_in_words(progress.done_bytes), bytes_in_words(progress.bytes));
            self.printer.note(format_args!("  {done} of {all}, {files}"));
        }
    }

    /// Takes the bar off the terminal.
    pub(in crate::cli) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
