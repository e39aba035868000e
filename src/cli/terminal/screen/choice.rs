//! Whether lines are drawn again, or every line is printed once: for logs, terminals that cannot move the cursor, and screen readers.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use super::terminal::Stream;

/// What the user asked for: the values of `INFRA_PROGRESS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) enum ProgressChoice {
    /// Lines are drawn again where that can be.
    #[default]
    Auto,
    /// Every line is printed once.
    Plain,
}

impl FromStr for ProgressChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "auto" => Ok(Self::Auto),
            "plain" => Ok(Self::Plain),
            _ => Err(format!("'{text}' is neither auto nor plain")),
        }
    }
}

impl ProgressChoice {
    /// Whether lines are drawn again on a stream.
    pub(in crate::cli) fn can_redraw(self, stream: Stream) -> bool {
        let terminal = TerminalInfo {
            terminal: match stream {
                Stream::Stdout => io::stdout().is_terminal(),
                Stream::Stderr => io::stderr().is_terminal(),
            },
            ci: std::env::var_os("CI").is_some(),
            term: std::env::var_os("TERM"),
        };
        self == Self::Auto && terminal.can_redraw()
    }
}

/// What decides whether lines can be drawn again.
struct TerminalInfo<T> {
    terminal: bool,
    ci: bool,
    term: Option<T>,
}

impl<T: AsRef<OsStr>> TerminalInfo<T> {
    fn can_redraw(&self) -> bool {
        let capable =
            self.term.as_ref().is_some_and(|term| !matches!(term.as_ref().to_str(), Some("dumb" | "")));
        self.terminal && !self.ci && capable
    }
}

#[cfg(test)]
mod tests {
    use super::{ProgressChoice, TerminalInfo};

    #[test]
    fn live_lines_are_drawn_only_on_a_terminal() {
        let can_redraw = |terminal, ci, term| TerminalInfo { terminal, ci, term }.can_redraw();
        assert!(can_redraw(true, false, Some("xterm-256color")));
        assert!(!can_redraw(false, false, Some("xterm-256color")));
        assert!(!can_redraw(true, true, Some("xterm-256color")));
        assert!(!can_redraw(true, false, Some("dumb")));
        assert!(!can_redraw(true, false, Some("")));
        assert!(!can_redraw(true, false, None));
    }

    #[test]
    fn a_choice_is_one_of_two_words() {
        assert_eq!("plain".parse(), Ok(ProgressChoice::Plain));
        assert_eq!("auto".parse(), Ok(ProgressChoice::Auto));
        assert_eq!("".parse(), Ok(ProgressChoice::Auto));
        assert_eq!("Plain".parse::<ProgressChoice>(), Err("'Plain' is neither auto nor plain".to_owned()));
    }
}
