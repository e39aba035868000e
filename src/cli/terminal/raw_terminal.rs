//! The user's terminal, given to a program elsewhere: every key goes to that program, and nothing is changed in what it draws.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::kube::WindowSize;

/// Whether there is a terminal to give away: one where the user types, and sees what is printed.
pub(in crate::cli) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// What is typed or piped, unbuffered: nothing of it may stay behind in a buffer of ours.
pub(in crate::cli) fn open_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// A terminal that passes every key on, until this is dropped.
#[derive(Debug)]
pub(in crate::cli) struct RawTerminal {
    terminal: File,
    before: Termios,
}

impl RawTerminal {
    /// Keys that were typed before are kept: they are for the program.
    pub(in crate::cli) fn new() -> io::Result<Self> {
        let terminal = open_input()?;
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(Self { terminal, before })
    }

    /// The size of its window now.
    pub(in crate::cli) fn window(&self) -> io::Result<WindowSize> {
        let size = tcgetwinsize(&self.terminal)?;
        Ok(WindowSize { columns: size.ws_col, rows: size.ws_row })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // There is no other way to undo it.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
