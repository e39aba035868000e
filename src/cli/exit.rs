//! How a run can end: the codes and what they mean, for the help text, the manual pages and the documents.

use std::fmt::Write as _;
use std::process::ExitCode;

/// The exit codes that runbooks rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Invalid = 2,
    Unhealthy = 3,
    Credentials = 4,
    StillRunning = 5,
    RolledBack = 6,
    LeftBehind = 7,
    Interrupted = 130,
}

impl Exit {
    /// All of them, in order.
    pub(super) const ALL: [Self; 9] = [
        Self::Done,
        Self::Failed,
        Self::Invalid,
        Self::Unhealthy,
        Self::Credentials,
        Self::StillRunning,
        Self::RolledBack,
        Self::LeftBehind,
        Self::Interrupted,
    ];

    /// The number that a shell sees.
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    /// What it says to whoever reads it, in one line of a help text.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done, or nothing to do",
            Self::Failed => {
                "failed, refused by preflight or because something may not change, or declined at a question"
            }
            Self::Invalid => "wrong arguments, or an invalid cluster.yaml, job file or template",
            Self::Unhealthy => {
                "not healthy, no such cluster, or changes where `plan --detailed-exitcode` tells of them"
            }
            Self::Credentials => {
                "AWS credentials are missing, expired or not accepted; what was begun goes on in AWS"
            }
            Self::StillRunning => {
                "still running when the wait ended or the user left; the same command comes back to it"
            }
            Self::RolledBack => "a stack failed and was rolled back",
            Self::LeftBehind => "`destroy` left something behind",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The list that `--help` ends with.
pub(super) fn list() -> String {
    let mut text = "Exit codes:".to_owned();
    for exit in Exit::ALL {
        let _ = write!(text, "\n  {:>3}  {}", exit.code(), exit.meaning());
    }
    text
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
