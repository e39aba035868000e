//! The terminal that lines are drawn on: its size, whether it is ours now, and what has happened to it.

use std::io::{self, Write};

use rustix::process::{Signal, getpgrp};
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::signal::unix::SignalKind;

/// What a terminal that does not know its size is taken for.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Size {
    pub(in crate::cli) columns: usize,
    pub(in crate::cli) rows: usize,
}

impl Size {
    /// The columns to write to: in the last one some terminals begin a new line at once.
    pub(in crate::cli) fn usable_columns(self) -> usize {
        self.columns.saturating_sub(1)
    }

    fn known(columns: u16, rows: u16) -> Self {
        let or_usual = |size: u16, usual| if size == 0 { usual } else { usize::from(size) };
        Self { columns: or_usual(columns, USUAL_SIZE.columns), rows: or_usual(rows, USUAL_SIZE.rows) }
    }
}

/// Where lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(super) fn size(self) -> Size {
        let size = match self {
            Self::Stdout => tcgetwinsize(io::stdout()),
            Self::Stderr => tcgetwinsize(io::stderr()),
        };
        size.map_or(USUAL_SIZE, |size| Size::known(size.ws_col, size.ws_row))
    }

    /// Whether this process may draw: one in the background would draw into what the user does now.
    pub(super) fn is_ours(self) -> bool {
        let foreground = match self {
            Self::Stdout => tcgetpgrp(io::stdout()),
            Self::Stderr => tcgetpgrp(io::stderr()),
        };
        foreground.map_or(true, |group| group == getpgrp())
    }

    /// Writes at once. A terminal that is gone ends the process by a signal; there is no other place to report it to.
    pub(super) fn write(self, text: &str) {
        let _ = match self {
            Self::Stdout => write_all(&mut io::stdout().lock(), text),
            Self::Stderr => write_all(&mut io::stderr().lock(), text),
        };
    }
}

fn write_all(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// The signal of a process that runs again, after Ctrl-Z and `fg`.
pub(super) fn continuation_signal() -> SignalKind {
    SignalKind::from_raw(Signal::CONT.as_raw())
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn a_terminal_without_a_size_has_the_usual_one() {
        assert_eq!(Size::known(0, 0), Size { columns: 80, rows: 24 });
        assert_eq!(Size::known(60, 0), Size { columns: 60, rows: 24 });
        assert_eq!(Size::known(1, 1).usable_columns(), 0);
    }
}
