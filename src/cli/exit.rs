//! How a command can end: the exit codes and what they mean, for the help text, the manual pages and the documents.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::outcome::Outcome;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    Failed,
    Invalid,
    Unhealthy,
    /// `infra plan --detailed-exitcode` found changes, or `infra drift` found drift.
    HasChanges,
    Credentials,
    StillRunning,
    RolledBack,
    LeftBehind,
    Interrupted,
    /// `infra job shell`: that of the program in the pod, or the number of a signal and 128.
    OfProgram(u8),
}

/// The exit codes that runbooks rely on, and what each says in one line of a help text.
pub(super) const CODES: [(u8, &str); 9] = [
    (0, "done, or nothing to do"),
    (1, "failed, refused by preflight or because something may not change, or declined at a question"),
    (2, "wrong arguments, or an invalid cluster.yaml, job file or template"),
    (3, "not healthy, no such cluster, drift, or `plan --detailed-exitcode` found changes"),
    (4, "AWS credentials are missing, expired or not accepted; started operations continue in AWS"),
    (5, "still running when the wait ended or the user detached; the same command resumes"),
    (6, "a stack failed and was rolled back"),
    (7, "`destroy` left something behind"),
    (130, "interrupted"),
];

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::Unhealthy | Self::HasChanges => 3,
            Self::Credentials => 4,
            Self::StillRunning => 5,
            Self::RolledBack => 6,
            Self::LeftBehind => 7,
            Self::Interrupted => 130,
            Self::OfProgram(code) => code,
        }
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Failed | Outcome::Unreachable | Outcome::Refused => Self::Failed,
            Outcome::Invalid => Self::Invalid,
            Outcome::Credentials => Self::Credentials,
            Outcome::StillRunning => Self::StillRunning,
            Outcome::RolledBack => Self::RolledBack,
            Outcome::Interrupted => Self::Interrupted,
        }
    }
}

/// The one command that ends as another program did, and what is said of its code.
pub(super) const OF_PROGRAM: (&str, &str) = ("any", "`job shell`: that of the program in the pod");

/// The list that `--help` ends with.
pub(super) fn list_exit_codes() -> String {
    let mut text = "Exit codes:".to_owned();
    for (code, meaning) in CODES {
        let _ = write!(text, "\n  {code:>3}  {meaning}");
    }
    let (code, meaning) = OF_PROGRAM;
    let _ = write!(text, "\n  {code:>3}  {meaning}");
    text
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
