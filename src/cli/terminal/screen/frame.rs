//! What was drawn last, and the codes that turn it into what is drawn next.
//!
//! The cursor stays in the line below the last one, so that what the user types, and what is printed next, is never in a drawn line.

use std::fmt::Write;

use anstream::adapter::strip_str;

use super::terminal::Size;
use super::width::width_of;

const CLEAR_LINE_END: &str = "\u{1b}[K";
const CLEAR_LINE_ABOVE: &str = "\u{1b}[1A\u{1b}[2K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Lines that are on the terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenFrame {
    lines: Vec<String>,
    /// How wide the terminal was.
    columns: usize,
}

impl ScreenFrame {
    /// The codes that draw other lines in the place of these; empty if nothing changes.
    pub(super) fn replace(&mut self, lines: Vec<String>, size: Size) -> String {
        let same_width = self.columns == size.columns;
        if same_width && self.lines == lines {
            return String::new();
        }
        let mut codes = self.up(size);
        for (number, line) in lines.iter().enumerate() {
            // What is there already is not written again, so that nothing flickers.
            let is_there = same_width && self.lines.get(number) == Some(line);
            if !is_there {
                codes.push_str(line);
                codes.push_str(CLEAR_LINE_END);
            }
            codes.push_str("\r\n");
        }
        codes.push_str(CLEAR_BELOW);
        *self = Self { lines, columns: size.columns };
        codes
    }

    /// The codes that remove the lines.
    pub(super) fn erase(&mut self, size: Size) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        // Line by line: tmux keeps in its history what is cleared from the upper left corner on.
        let codes = format!("\r{}{CLEAR_BELOW}", CLEAR_LINE_ABOVE.repeat(self.rows(size)));
        self.lines.clear();
        codes
    }

    /// The lines are no longer where they were: they stay, and the next ones are drawn below.
    pub(super) fn forget(&mut self) {
        self.lines.clear();
    }

    /// The codes that move the cursor to the first line.
    fn up(&self, size: Size) -> String {
        let mut codes = "\r".to_owned();
        let rows = self.rows(size);
        if rows > 0 {
            // Writing into a text in memory does not fail.
            let _ = write!(codes, "\u{1b}[{rows}A");
        }
        codes
    }

    /// How many of the rows that the lines take are on the screen.
    fn rows(&self, size: Size) -> usize {
        self.rows_at(size.columns).min(size.rows.saturating_sub(1))
    }

    /// How many rows the lines take by now: a terminal that became narrower has broken them.
    fn rows_at(&self, columns: usize) -> usize {
        let rows = |line: &String| {
            let width = width_of(&strip_str(line).to_string());
            width.div_ceil(columns.max(1)).max(1)
        };
        if columns >= self.columns { self.lines.len() } else { self.lines.iter().map(rows).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::{ScreenFrame, Size};

    const WIDE: Size = Size { columns: 20, rows: 10 };

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_lines_that_changed_are_written_again() {
        let mut frame = ScreenFrame::default();
        assert_eq!(frame.replace(lines(&["a", "b"]), WIDE), "\ra\u{1b}[K\r\nb\u{1b}[K\r\n\u{1b}[J");
        assert_eq!(frame.replace(lines(&["a", "b"]), WIDE), "");
        assert_eq!(frame.replace(lines(&["a", "c"]), WIDE), "\r\u{1b}[2A\r\nc\u{1b}[K\r\n\u{1b}[J");
        assert_eq!(frame.replace(lines(&["a", "c", "d"]), WIDE), "\r\u{1b}[2A\r\n\r\nd\u{1b}[K\r\n\u{1b}[J");
        assert_eq!(frame.replace(lines(&["a"]), WIDE), "\r\u{1b}[3A\r\n\u{1b}[J");
        assert_eq!(frame.erase(WIDE), "\r\u{1b}[1A\u{1b}[2K\u{1b}[J");
        assert_eq!(frame.erase(WIDE), "");
    }

    #[test]
    fn a_terminal_that_became_narrower_has_broken_the_lines() {
        let mut frame = ScreenFrame::default();
        frame.replace(lines(&["\u{1b}[1m0123456789012345\u{1b}[0m", "b", "日本語日本"]), WIDE);
        let narrow = Size { columns: 8, rows: 10 };
        assert_eq!(frame.erase(narrow).matches("\u{1b}[1A").count(), 5, "2 + 1 + 2 rows");
        frame.replace(lines(&["0123456"]), narrow);
        // Everything is written again, because all of it may be cut elsewhere now.
        assert_eq!(frame.replace(lines(&["0123456"]), WIDE), "\r\u{1b}[1A0123456\u{1b}[K\r\n\u{1b}[J");
    }

    #[test]
    fn the_cursor_never_goes_above_the_screen_and_forgotten_lines_stay() {
        let mut frame = ScreenFrame::default();
        frame.replace(lines(&["a", "b", "c"]), WIDE);
        assert_eq!(frame.erase(Size { columns: 20, rows: 3 }).matches("\u{1b}[1A").count(), 2);
        frame.replace(lines(&["a"]), WIDE);
        frame.forget();
        assert_eq!(frame.replace(lines(&["a"]), WIDE), "\ra\u{1b}[K\r\n\u{1b}[J");
    }
}
