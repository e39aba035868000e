//! The lines of one log among several: whole, each behind the name of who printed it.
//!
//! In: bytes as they come. Out: complete lines. The beginning of a line is kept until its end comes; a line that is too long to keep is
//! printed in parts.

use crate::cli::terminal::foreign_text::{clean_foreign_text, clean_line};

/// The most that is kept of a line: with a thousand replicas, 64 MiB.
const LONGEST_LINE: usize = 64 << 10;

/// Bytes of one log into lines with a prefix.
#[derive(Debug)]
pub(in crate::cli) struct PrefixedLines {
    prefix: String,
    /// Whether a terminal shows the lines.
    is_cleaned: bool,
    /// The beginning of a line.
    line: Vec<u8>,
    after_return: bool,
}

impl PrefixedLines {
    /// Lines behind a name that is as wide as the others.
    pub(in crate::cli) fn new(name: &str, width: usize, is_cleaned: bool) -> Self {
        let prefix = format!("{:<width$} │ ", clean_line(name));
        Self { prefix, is_cleaned, line: Vec::new(), after_return: false }
    }

    /// The lines that end in the next bytes. A return ends a line too: what a progress bar overwrites is a line of another log here.
    pub(in crate::cli) fn add(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(bytes.len() + self.prefix.len());
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match part.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (part, None),
            };
            self.line.extend_from_slice(text);
            let is_second_half = std::mem::take(&mut self.after_return) && self.line.is_empty();
            match end {
                Some(b'\n') if is_second_half => {}
                // A progress bar begins with one.
                Some(b'\r') if self.line.is_empty() => {}
                Some(end) => {
                    self.end_line(&mut lines);
                    self.after_return = end == b'\r';
                }
                None => self.cut_long_line(&mut lines),
            }
        }
        lines
    }

    /// The line that has no end when the log ends or breaks off.
    pub(in crate::cli) fn finish(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut lines);
        }
        lines
    }

    fn end_line(&mut self, lines: &mut Vec<u8>) {
        lines.extend_from_slice(self.prefix.as_bytes());
        if self.is_cleaned {
            lines.extend_from_slice(clean_foreign_text(&String::from_utf8_lossy(&self.line)).as_bytes());
        } else {
            lines.extend_from_slice(&self.line);
        }
        lines.push(b'\n');
        self.line.clear();
    }

    fn cut_long_line(&mut self, lines: &mut Vec<u8>) {
        while self.line.len() > LONGEST_LINE {
            // Bytes of this form continue a character.
            let is_inside = |at: &usize| self.line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
            let at = (LONGEST_LINE - 3..=LONGEST_LINE).rev().find(|at| !is_inside(at));
            let rest = self.line.split_off(at.unwrap_or(LONGEST_LINE));
            self.end_line(lines);
            self.line = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_LINE, PrefixedLines};

    fn lines(text: &str, size: usize, is_cleaned: bool) -> String {
        let mut lines = PrefixedLines::new("a", 2, is_cleaned);
        let mut printed: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| lines.add(piece)).collect();
        printed.extend(lines.finish());
        String::from_utf8_lossy(&printed).into_owned()
    }

    #[test]
    fn each_line_is_behind_its_name_wherever_its_bytes_are_cut() {
        let table = [
            ("one\ntwo\n", "a  │ one\na  │ two\n"),
            ("one\n\ntwo", "a  │ one\na  │ \na  │ two\n"),
            ("one\r\ntwo\r\n", "a  │ one\na  │ two\n"),
            ("one\r\n\r\ntwo\n", "a  │ one\na  │ \na  │ two\n"),
            ("\r10 %\r20 %\rdone\n", "a  │ 10 %\na  │ 20 %\na  │ done\n"),
            ("é→😀\n", "a  │ é→😀\n"),
            ("", ""),
        ];
        for (text, expected) in table {
            for size in 1..=text.len().max(1) {
                assert_eq!(lines(text, size, false), expected, "pieces of {size}");
            }
        }
    }

    #[test]
    fn control_codes_are_kept_for_a_pipe_and_replaced_on_a_terminal() {
        let text = "\u{1b}[32mgreen\u{1b}[0m\u{1b}[2J\n";
        for size in 1..text.len() {
            assert_eq!(lines(text, size, false), format!("a  │ {text}"));
            assert_eq!(lines(text, size, true), "a  │ green�[2J\n");
        }
    }

    #[test]
    fn a_line_without_an_end_is_printed_in_parts_and_none_of_it_is_lost() {
        let mut all = PrefixedLines::new("a", 1, false);
        let mut printed = Vec::new();
        for _ in 0..100 {
            printed.extend(all.add("é".repeat(4096).as_bytes()));
            assert!(all.line.len() <= LONGEST_LINE);
        }
        printed.extend(all.finish());
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert_eq!(printed.matches('é').count(), 100 * 4096);
        assert!(!printed.contains('\u{fffd}') && printed.lines().all(|line| line.starts_with("a │ é")));
        assert_eq!(printed.lines().count(), (100 * 8192_usize).div_ceil(LONGEST_LINE));
    }
}
