//! `infra status --watch` at a terminal: one screen that stays where it is, and marks what has changed.
//!
//! A line that has changed is marked for a minute and says what it was, so that a look now and then is enough. Where lines cannot be drawn
//! again, or a screen reader is used, only what has changed is printed.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use time::OffsetDateTime;

use super::lines::{StatusLine, StatusLines};
use crate::cli::progress_view::clock_time;
use crate::cli::session::Session;
use crate::cli::terminal::foreign_text::clean_line;
use crate::cli::terminal::printer::{Output, Printer, align_columns};
use crate::cli::terminal::screen::{Ending, Size, Stream, cut_end};
use crate::cli::terminal::styled_text::StyledText;

/// How long a change is marked.
const MARKED_FOR: Duration = Duration::from_mins(1);
const MARK: &str = "»";
const CHANGED: Style = AnsiColor::Yellow.on_default().bold();

/// A watch at a terminal.
pub(super) struct StatusWatch {
    printer: Printer,
    is_live: bool,
    board: Arc<Mutex<StatusBoard>>,
}

impl StatusWatch {
    /// None where programs read the status, or a file keeps it: there all of it is printed each time.
    pub(super) fn new(session: &Session) -> Option<Self> {
        let is_for_people = session.output == Output::Text && io::stdout().is_terminal();
        let is_live = session.can_redraw(Stream::Stdout);
        is_for_people.then(|| Self { printer: session.printer.clone(), is_live, board: Arc::default() })
    }

    /// Shows the status as it is now.
    pub(super) fn show(&self, status: StatusLines, now: OffsetDateTime) {
        let mut board = lock_board(&self.board);
        let is_first = board.read_at.is_none();
        let news = board.apply(status, now);
        let whole = board.status.text();
        drop(board);
        if !self.is_live {
            let text = if is_first { whole } else { news.join("\n") };
            if !text.is_empty() {
                // A reader that is gone ends the command by a signal.
                let _ = self.printer.data(text);
            }
            return;
        }
        if is_first {
            let board = Arc::clone(&self.board);
            self.printer.begin_block(Stream::Stdout, move |size| lock_board(&board).lines(size));
        } else {
            self.printer.draw_block();
        }
    }
}

/// The last status stays on the screen.
impl Drop for StatusWatch {
    fn drop(&mut self) {
        self.printer.end_block(Ending::Stay);
    }
}

/// What is on the screen.
#[derive(Debug, Default)]
struct StatusBoard {
    status: StatusLines,
    read_at: Option<OffsetDateTime>,
    /// When what a line is about changed, and what it was.
    changes: BTreeMap<String, Change>,
}

#[derive(Debug)]
struct Change {
    at: OffsetDateTime,
    /// The line before; none if there was none.
    before: Option<StatusLine>,
}

impl StatusBoard {
    /// Takes over another status. Gives what has changed, a line each.
    fn apply(&mut self, status: StatusLines, now: OffsetDateTime) -> Vec<String> {
        let before = std::mem::replace(&mut self.status, status);
        let is_first = self.read_at.replace(now).is_none();
        self.changes.retain(|_, change| now - change.at < MARKED_FOR);
        if is_first {
            return Vec::new();
        }
        let mut news = Vec::new();
        let time = clock_time(now);
        if before.title != self.status.title {
            self.changes.insert(String::new(), Change { at: now, before: None });
            news.push(format!("{time} {}", self.status.title));
        }
        for line in &self.status.lines {
            let old = before.lines.iter().find(|old| old.about == line.about);
            if old.is_none_or(|old| old.fact() != line.fact()) {
                self.changes.insert(line.about.clone(), Change { at: now, before: old.cloned() });
                news.push(format!("{time} {}{}", line.cells.join("  "), former_line(old, line)));
            }
        }
        for gone in before.lines.iter().filter(|old| !self.status.has_line_about(&old.about)) {
            self.changes.insert(gone.about.clone(), Change { at: now, before: Some(gone.clone()) });
            news.push(format!("{time} {}  gone", gone.cells.join("  ")));
        }
        for (mark, remark) in self.status.remarks.iter().filter(|remark| !before.remarks.contains(remark)) {
            self.changes.insert(remark.clone(), Change { at: now, before: None });
            news.push(format!("{time} {mark} {remark}"));
        }
        for (_, remark) in before.remarks.iter().filter(|remark| !self.status.remarks.contains(remark)) {
            news.push(format!("{time} no longer: {remark}"));
        }
        news
    }

    fn lines(&self, size: Size) -> Vec<StyledText> {
        let width = size.usable_columns();
        let gone = self.changes.iter().filter(|(about, _)| !self.status.has_line_about(about));
        let gone = gone.filter_map(|(_, change)| change.before.as_ref());
        let rows: Vec<(&StatusLine, String)> = self
            .status
            .lines
            .iter()
            .map(|line| {
                let change = self.changes.get(&line.about);
                (line, change.map(|change| former_line(change.before.as_ref(), line)).unwrap_or_default())
            })
            .chain(gone.map(|line| (line, "  gone".to_owned())))
            .collect();
        let cells: Vec<[String; 3]> = rows.iter().map(|(line, _)| line.cells.clone()).collect();
        let mut lines = vec![self.heading(width)];
        let table = align_columns(&cells);
        lines.extend(table.lines().zip(&rows).map(|(text, (line, note))| {
            self.line(&line.about, &format!("{text}{}", clean_line(note)), width)
        }));
        let remarks = self.status.remarks.iter();
        lines.extend(
            remarks.map(|(mark, text)| self.line(text, &format!("{mark} {}", clean_line(text)), width)),
        );
        fit_lines_into_rows(lines, size.rows.saturating_sub(1), width)
    }

    fn heading(&self, width: usize) -> StyledText {
        let read =
            self.read_at.map(|at| format!("   {} UTC · Ctrl-C ends", clock_time(at))).unwrap_or_default();
        self.line("", &format!("{}{read}", self.status.title), width)
    }

    /// A line behind its mark.
    fn line(&self, about: &str, text: &str, width: usize) -> StyledText {
        if self.changes.contains_key(about) {
            StyledText::styled(CHANGED, cut_end(&format!("{MARK} {text}"), width))
        } else {
            cut_end(&format!("  {text}"), width).into()
        }
    }
}

impl StatusLines {
    fn has_line_about(&self, about: &str) -> bool {
        about.is_empty()
            || self.lines.iter().any(|line| line.about == about)
            || self.remarks.iter().any(|(_, remark)| remark == about)
    }
}

/// What a line was, if it was something else.
fn former_line(before: Option<&StatusLine>, now: &StatusLine) -> String {
    let Some(before) = before else { return "  (new)".to_owned() };
    let ([_, old_state, old_detail], [_, state, _]) = (&before.cells, &now.cells);
    format!("  (was {})", if old_state == state { old_detail } else { old_state })
}

/// As many lines as there are rows; the last one says how many are left out.
fn fit_lines_into_rows(mut lines: Vec<StyledText>, rows: usize, width: usize) -> Vec<StyledText> {
    if lines.len() > rows {
        let left_out = lines.len() - rows.saturating_sub(1);
        lines.truncate(rows.saturating_sub(1));
        lines.push(cut_end(&format!("  … {left_out} more; the terminal is too low"), width).into());
    }
    lines
}

fn lock_board(board: &Mutex<StatusBoard>) -> MutexGuard<'_, StatusBoard> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use time::{Duration, OffsetDateTime};

    use super::{Size, StatusBoard, StatusLine, StatusLines};

    const BEGIN: OffsetDateTime = datetime!(2026-03-01 12:00:00 UTC);
    const WIDE: Size = Size { columns: 100, rows: 30 };

    fn line(what: &str, state: &str, detail: &str) -> StatusLine {
        StatusLine {
            about: format!("{what}/{detail}"),
            cells: [what, state, detail].map(str::to_owned),
            is_age: what == "saved",
        }
    }

    fn status(title: &str, lines: Vec<StatusLine>, problems: &[&str]) -> StatusLines {
        let remarks = problems.iter().map(|problem| ('!', (*problem).to_owned())).collect();
        StatusLines { title: title.to_owned(), lines, remarks }
    }

    fn drawn(board: &StatusBoard, size: Size) -> Vec<String> {
        board.lines(size).iter().map(|line| line.bare().trim_end().to_owned()).collect()
    }

    #[test]
    fn what_has_changed_is_marked_for_a_minute_and_says_what_it_was() {
        let mut board = StatusBoard::default();
        let first = vec![line("nodes", "1/3 Ready", "gpu"), line("saved", "2 minutes ago", "key")];
        assert!(board.apply(status("x: NOT HEALTHY", first, &["gpu: 1 of 3"]), BEGIN).is_empty());
        assert_eq!(
            drawn(&board, WIDE),
            [
                "  x: NOT HEALTHY   12:00:00 UTC · Ctrl-C ends",
                "  nodes  1/3 Ready      gpu",
                "  saved  2 minutes ago  key",
                "  ! gpu: 1 of 3",
            ]
        );
        let second = || vec![line("nodes", "3/3 Ready", "gpu"), line("saved", "3 minutes ago", "key")];
        let news = board.apply(status("x: healthy", second(), &[]), BEGIN + Duration::seconds(10));
        assert_eq!(
            news,
            [
                "12:00:10 x: healthy",
                "12:00:10 nodes  3/3 Ready  gpu  (was 1/3 Ready)",
                "12:00:10 no longer: gpu: 1 of 3"
            ]
        );
        let marked = [
            "» x: healthy   12:00:10 UTC · Ctrl-C ends",
            "» nodes  3/3 Ready      gpu  (was 1/3 Ready)",
            "  saved  3 minutes ago  key",
        ];
        assert_eq!(drawn(&board, WIDE), marked, "an age is no news");
        assert!(board.apply(status("x: healthy", second(), &[]), BEGIN + Duration::seconds(60)).is_empty());
        assert!(drawn(&board, WIDE)[1].starts_with('»'), "for a minute");
        board.apply(status("x: healthy", second(), &[]), BEGIN + Duration::seconds(71));
        assert_eq!(drawn(&board, WIDE)[1], "  nodes  3/3 Ready      gpu");
    }

    #[test]
    fn what_comes_and_what_goes_is_marked_too() {
        let mut board = StatusBoard::default();
        board.apply(status("x: healthy", vec![line("stack", "CREATE_COMPLETE", "a")], &[]), BEGIN);
        let other = vec![line("stack", "CREATE_IN_PROGRESS", "b")];
        board.apply(status("x: healthy", other, &["b is not complete"]), BEGIN + Duration::seconds(10));
        assert_eq!(
            drawn(&board, WIDE)[1..],
            [
                "» stack  CREATE_IN_PROGRESS  b  (new)",
                "» stack  CREATE_COMPLETE     a  gone",
                "» ! b is not complete",
            ]
        );
    }

    #[test]
    fn a_small_terminal_says_what_it_leaves_out() {
        let mut board = StatusBoard::default();
        let lines = ["a", "b", "c", "d"].map(|name| line("stack", "CREATE_COMPLETE", name)).to_vec();
        board.apply(status("x: healthy", lines, &[]), BEGIN);
        assert_eq!(
            drawn(&board, Size { columns: 20, rows: 4 }),
            ["  x: healthy   12:…", "  stack  CREATE_CO…", "  … 3 more; the te…"]
        );
        board.apply(status("x: there is no such cluster", Vec::new(), &[]), BEGIN);
        assert_eq!(drawn(&board, WIDE).len(), 1 + 4, "what is gone stays for a minute");
    }
}
