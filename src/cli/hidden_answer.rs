//! Asks a person for a secret at the terminal: what is typed is not shown, and not kept by any buffer of the standard library.

use std::fs::File;
use std::io::{self, Read};

use anyhow::Context;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::{Zeroize, Zeroizing};

use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::terminal::printer::Printer;
use crate::credentials::SecretText;

const TERMINAL: &str = "/dev/tty";
/// No answer is longer; a buffer that grows would leave copies behind.
const LONGEST_ANSWER: usize = 128 * 1024;
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];
const ERASE_LINE: u8 = 0x15;

/// Asks until something was typed. Ctrl-C ends the command, with the terminal as it was.
pub(super) fn ask_hidden(question: &str, printer: &Printer) -> anyhow::Result<SecretText> {
    let terminal = File::open(TERMINAL).context("opening the terminal")?;
    loop {
        let quiet = QuietTerminal::new(&terminal).context("turning the terminal's echo off")?;
        printer.question(format_args!("{question} (not shown):"));
        let answer = read_line(&terminal);
        drop(quiet);
        // The line end that was typed is not shown either.
        printer.note("");
        let answer = answer?;
        if !answer.expose().is_empty() {
            return Ok(answer);
        }
        printer.note("  it is empty; Ctrl-C leaves");
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct QuietTerminal<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> QuietTerminal<'a> {
    /// Ctrl-C is read as any other key, since a signal would end the process with the terminal in this state. What was typed before,
    /// and shown, is thrown away.
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for QuietTerminal<'_> {
    fn drop(&mut self) {
        // There is no other way to undo it.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// One line, key by key.
fn read_line(mut terminal: &File) -> anyhow::Result<SecretText> {
    let mut typed = Zeroizing::new(Vec::with_capacity(LONGEST_ANSWER));
    let mut key = Zeroizing::new([0; 1]);
    loop {
        let is_closed = terminal.read(&mut *key).context("reading the answer")? == 0;
        match key[0] {
            _ if is_closed => {
                return Err(Refusal::new("the question was not answered; nothing was changed").into());
            }
            b'\n' | b'\r' => break,
            INTERRUPT => return Err(Interrupted::BeforeChanges.into()),
            END if typed.is_empty() => {
                return Err(Refusal::new("the question was not answered; nothing was changed").into());
            }
            END => break,
            ERASE_LINE => typed.zeroize(),
            erase if BACKSPACE.contains(&erase) => erase_character(&mut typed),
            _ if typed.len() == LONGEST_ANSWER => return Err(Refusal::new("the answer is too long").into()),
            byte => typed.push(byte),
        }
    }
    into_text(&mut typed).ok_or_else(|| Refusal::new("what was typed is not UTF-8 text").into())
}

/// All bytes of the last character.
fn erase_character(typed: &mut Vec<u8>) {
    while let Some(byte) = typed.pop() {
        if byte & 0xc0 != 0x80 {
            return;
        }
    }
}

/// Bytes as text, without a copy that stays; nothing if they are no text.
pub(super) fn into_text(bytes: &mut Zeroizing<Vec<u8>>) -> Option<SecretText> {
    match String::from_utf8(std::mem::take(&mut **bytes)) {
        Ok(text) => Some(SecretText::new(text)),
        Err(error) => {
            error.into_bytes().zeroize();
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::{erase_character, into_text};

    #[test]
    fn a_character_is_erased_whole() {
        let mut typed = "né".as_bytes().to_vec();
        erase_character(&mut typed);
        assert_eq!(typed, b"n");
        erase_character(&mut typed);
        erase_character(&mut typed);
        assert_eq!(typed, b"");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(into_text(&mut Zeroizing::new(vec![0xff])).is_none());
        assert_eq!(into_text(&mut Zeroizing::new(b"a".to_vec())).map(|text| text.expose().len()), Some(1));
    }
}
