//! Text that others wrote, as a pod's message, an event or a log: without the characters that control a terminal. They could move the
//! cursor, change what was printed before, or answer for the user.

use std::fmt::Write;
use std::mem;

const ESCAPE: u8 = 0x1b;
/// The longest code for a colour that is recognised.
const LONGEST_COLOR: usize = 64;

/// The text as a terminal may show it. Codes for colours are left out; every other character that controls a terminal is replaced by
/// U+FFFD.
pub(in crate::cli) fn clean_foreign_text(text: &str) -> String {
    let mut cleaner = TextCleaner::default();
    let mut shown = cleaner.clean(text.as_bytes());
    shown.push_str(&cleaner.finish());
    shown
}

/// As [`clean`], in one line.
pub(in crate::cli) fn clean_line(text: &str) -> String {
    clean_foreign_text(text).replace(['\n', '\t'], " ")
}

/// JSON in which every character that controls a terminal is escaped; serde does so only below U+0020.
pub(in crate::cli) fn escape_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_controlling(character) {
            // Writing into a text in memory does not fail, and none of them is above U+FFFF.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Whether a character controls a terminal or the direction of what follows; line ends and tabulators are harmless.
pub(in crate::cli) fn is_controlling(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// Cleans bytes that come piece by piece; a character or a colour may be cut anywhere.
#[derive(Debug, Default)]
pub(in crate::cli) struct TextCleaner {
    /// The beginning of a character or of a colour.
    incomplete: Vec<u8>,
    after_return: bool,
}

impl TextCleaner {
    /// The next piece.
    pub(in crate::cli) fn clean(&mut self, bytes: &[u8]) -> String {
        let mut whole = mem::take(&mut self.incomplete);
        whole.extend_from_slice(bytes);
        self.incomplete = whole.split_off(complete_length(&whole));
        self.replace(&String::from_utf8_lossy(&whole))
    }

    /// What is left when no more comes.
    pub(in crate::cli) fn finish(&mut self) -> String {
        let rest = mem::take(&mut self.incomplete);
        self.replace(&String::from_utf8_lossy(&rest))
    }

    fn replace(&mut self, text: &str) -> String {
        let mut cleaned = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(length) = color_length(rest.as_bytes()) {
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
            let is_second_half = mem::replace(&mut self.after_return, character == '\r') && character == '\n';
            match character {
                // A progress bar overwrites its line; here each state of it gets a line of its own.
                '\r' => cleaned.push('\n'),
                _ if is_second_half => {}
                _ if is_controlling(character) => cleaned.push(char::REPLACEMENT_CHARACTER),
                _ => cleaned.push(character),
            }
        }
        cleaned
    }
}

/// The length of a code for a colour, as `ESC [ 1 ; 32 m`, at the beginning.
fn color_length(bytes: &[u8]) -> Option<usize> {
    let inside = bytes.strip_prefix(&[ESCAPE, b'['])?;
    let end = inside.iter().take(LONGEST_COLOR).position(|byte| !is_part_of_color(*byte))?;
    (inside.get(end) == Some(&b'm')).then_some(end + 3)
}

fn is_part_of_color(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b';' | b':')
}

/// How many bytes can be judged before the next piece is there.
fn complete_length(bytes: &[u8]) -> usize {
    let length = bytes.len();
    let tail = length.saturating_sub(LONGEST_COLOR);
    let last = bytes.get(tail..).unwrap_or_default();
    if let Some(at) = last.iter().rposition(|byte| *byte == ESCAPE) {
        match last.get(at + 1..) {
            Some([] | [b'[']) => return tail + at,
            Some([b'[', inside @ ..]) if inside.iter().all(|byte| is_part_of_color(*byte)) => {
                return tail + at;
            }
            _ => {}
        }
    }
    // The first byte of a character says how many belong to it.
    let cut = (1..=3.min(length)).find(|back| bytes.get(length - back).is_some_and(|byte| *byte >= 0xc0));
    match cut {
        Some(back) if back < character_length(bytes.get(length - back).copied().unwrap_or_default()) => {
            length - back
        }
        _ => length,
    }
}

fn character_length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{TextCleaner, clean_foreign_text, clean_line, escape_json};

    #[test]
    fn what_controls_a_terminal_is_replaced() {
        let table = [
            ("x\u{1b}]0;OWNED\u{7}\u{1b}[2J\u{1b}[1;1Hdone", "x�]0;OWNED��[2J�[1;1Hdone"),
            ("a\u{9b}31mb\u{7f}\u{85}\u{90}", "a�31mb���"),
            ("a\u{8}\u{0}b", "a��b"),
            ("name\u{202e}gnp.exe\u{2066}", "name�gnp.exe�"),
            ("one\n\ttwo → ✓ é", "one\n\ttwo → ✓ é"),
            ("one\r\ntwo\rthree\r\n\nfour\r", "one\ntwo\nthree\n\nfour\n"),
            ("\u{1b}[1;32mgreen\u{1b}[0m \u{1b}[mplain \u{1b}[38:5:1mred", "green plain red"),
            ("\u{1b}[1;32", "�[1;32"),
            ("\u{1b}\u{1b}[0m[2J", "�[2J"),
            ("\u{1b}", "�"),
        ];
        for (text, cleaned) in table {
            assert_eq!(clean_foreign_text(text), cleaned, "{text:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(1000));
        assert_eq!(clean_foreign_text(&long).replace('�', "\u{1b}"), long);
        assert_eq!(clean_line("a\n b\tc\u{1b}"), "a  b c�");
    }

    #[test]
    fn text_that_arrives_in_pieces_is_cleaned_like_whole_text() {
        let text = "a\r\n\u{1b}[1;32mé→😀\u{1b}[0m\u{1b}[2J\u{9b}x\r\u{1b}[";
        let expected = clean_foreign_text(text);
        for size in 1..text.len() {
            let mut cleaner = TextCleaner::default();
            let pieces = text.as_bytes().chunks(size).map(|piece| cleaner.clean(piece));
            let shown = pieces.collect::<String>() + &cleaner.finish();
            assert_eq!(shown, expected, "pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut cleaner = TextCleaner::default();
        assert_eq!(cleaner.clean(b"a\x9b31m\xff\xe2\x86"), "a�31m�");
        assert_eq!(cleaner.clean(b"b\xe2"), "�b");
        assert_eq!(cleaner.finish(), "�");
    }

    #[test]
    fn json_says_the_same_without_controlling_a_terminal() -> Result<(), serde_json::Error> {
        let value = serde_json::json!({"a": "\u{1b}[2J\u{9b}1m\u{7f}\u{202e}\né"});
        let text = escape_json(&serde_json::to_string_pretty(&value)?);
        assert!(text.contains(r"\u001b[2J\u009b1m\u007f\u202e\né"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text)?, value);
        Ok(())
    }
}
