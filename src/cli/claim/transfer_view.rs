//! How far a transfer is: a line that is drawn again on a terminal, now and then a line elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::transfer_event::{Direction, Subject, TransferEvent, write_event};
use crate::cli::progress_view::duration_in_words;
use crate::cli::session::Session;
use crate::cli::terminal::printer::{Output, Printer};
use crate::cli::terminal::screen::{Ending, Mark, Row, Share, Stream, lay_out};
use crate::job::data::{Progress, bytes_in_words};

/// Between two events.
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a transfer is.
pub(in crate::cli) struct TransferView {
    printer: Printer,
    direction: Direction,
    subject: Subject,
    format: Format,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Live,
    Lines,
    Events,
}

#[derive(Default)]
struct State {
    /// Since when, and how much was there already.
    began: Option<(Instant, u64)>,
    last_line: Option<Instant>,
    progress: Option<Progress>,
    is_drawn: bool,
}

impl TransferView {
    pub(in crate::cli) fn new(direction: Direction, subject: Subject, session: &Session) -> Self {
        let format = match session.output {
            Output::Json => Format::Events,
            _ if session.can_redraw(Stream::Stderr) => Format::Live,
            _ => Format::Lines,
        };
        Self { printer: session.printer.clone(), direction, subject, format, state: Arc::default() }
    }

    /// Shows how far it is.
    pub(in crate::cli) fn show(&self, progress: Progress) {
        let mut state = lock_view_state(&self.state);
        let is_first = state.began.is_none();
        state.began.get_or_insert((Instant::now(), progress.done_bytes));
        state.progress = Some(progress);
        match self.format {
            Format::Live => {
                let begins = !std::mem::replace(&mut state.is_drawn, true);
                drop(state);
                self.draw(begins);
            }
            Format::Lines | Format::Events => {
                // Programs get the last step in any case.
                let is_last =
                    self.format == Format::Events && progress.done_files == progress.files && !is_first;
                let every = if self.format == Format::Events { EVENT_EVERY } else { LINE_EVERY };
                if !is_last && state.last_line.is_some_and(|last| last.elapsed() < every) {
                    return;
                }
                state.last_line = Some(Instant::now());
                drop(state);
                self.print(progress, is_first);
            }
        }
    }

    /// Takes the line off the terminal.
    pub(in crate::cli) fn finish(&self) {
        if std::mem::take(&mut lock_view_state(&self.state).is_drawn) {
            self.printer.end_block(Ending::Vanish);
        }
    }

    fn draw(&self, begins: bool) {
        if !begins {
            return self.printer.draw_block();
        }
        let (direction, subject, state) = (self.direction, self.subject, Arc::clone(&self.state));
        self.printer.begin_block(Stream::Stderr, move |size| {
            let width = size.usable_columns();
            let rows: Vec<Row> = lock_view_state(&state).row(direction, subject).into_iter().collect();
            lay_out(&rows, width, width / 3)
        });
    }

    fn print(&self, progress: Progress, is_first: bool) {
        let Progress { files, bytes, done_files, done_bytes } = progress;
        let (direction, subject) = (self.direction, self.subject);
        match self.format {
            Format::Events if is_first => {
                let event = TransferEvent::TransferBegan { direction, subject, files, bytes };
                write_event(event, &self.printer);
            }
            Format::Events => {
                let event = TransferEvent::TransferProgress { done_files, files, done_bytes, bytes };
                write_event(event, &self.printer);
            }
            _ if is_first => {}
            _ => self.printer.note(format_args!("  {}", transferred_amount(progress))),
        }
    }
}

impl State {
    fn row(&self, direction: Direction, subject: Subject) -> Option<Row> {
        let (progress, (began, before)) = (self.progress?, self.began?);
        let elapsed = began.elapsed();
        let moved = progress.done_bytes.saturating_sub(before);
        let second = moved.checked_div(elapsed.as_secs()).map(|bytes| format!("{}/s", bytes_in_words(bytes)));
        Some(Row {
            mark: Mark::Running,
            name: match subject {
                Subject::Files => "files".to_owned(),
                Subject::Code => "code".to_owned(),
                Subject::Data => "data".to_owned(),
            },
            work: match direction {
                Direction::Put => "put".to_owned(),
                Direction::Get => "get".to_owned(),
            },
            share: Some(Share { done: progress.done_bytes, all: progress.bytes }),
            count: transferred_percentage(progress),
            elapsed: duration_in_words(elapsed),
            detail: transferred_amount(progress),
            aside: second.unwrap_or_default(),
            ..Row::default()
        })
    }
}

fn transferred_amount(progress: Progress) -> String {
    let (done, all) = (bytes_in_words(progress.done_bytes), bytes_in_words(progress.bytes));
    format!("{done} of {all}, {}/{} files", progress.done_files, progress.files)
}

/// Rounded down, so that it is 100 only at the end.
fn transferred_percentage(progress: Progress) -> String {
    let part = u128::from(progress.done_bytes) * 100 / u128::from(progress.bytes.max(1));
    format!("{}%", if progress.bytes == 0 { 100 } else { part })
}

fn lock_view_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Direction, State, Subject, lay_out, transferred_percentage};
    use crate::job::data::Progress;

    const HALF: Progress = Progress { files: 4, bytes: 2048, done_files: 1, done_bytes: 1024 };

    #[test]
    fn a_transfer_has_the_columns_of_a_stack() {
        let state = State { began: Some((Instant::now(), 0)), progress: Some(HALF), ..State::default() };
        let row = state.row(Direction::Put, Subject::Files);
        let rows: Vec<_> = row.into_iter().collect();
        let line = |width| lay_out(&rows, width, width / 3)[0].bare();
        assert_eq!(line(79), "▸ files  put  ━━━━━━──────  50%  0s  1 KiB of 2 KiB, 1/4 files");
        assert_eq!(line(49), "▸ files  50%  0s  1 KiB of 2 KiB, 1/4 files");
        assert!(State::default().row(Direction::Get, Subject::Code).is_none(), "nothing is known yet");
    }

    #[test]
    fn a_transfer_is_at_100_percent_only_at_its_end() {
        assert_eq!(transferred_percentage(HALF), "50%");
        assert_eq!(transferred_percentage(Progress { done_bytes: 2047, ..HALF }), "99%");
        assert_eq!(transferred_percentage(Progress { bytes: 0, done_bytes: 0, ..HALF }), "100%");
    }
}
