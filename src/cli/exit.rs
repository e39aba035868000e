//! How a run can end.

use std::process::ExitCode;

/// The exit codes that runbooks rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// Failed, refused or declined.
    Failed = 1,
    /// Wrong arguments or an invalid file.
    Invalid = 2,
    /// Not healthy, no such cluster, or changes where that was asked.
    Unhealthy = 3,
    /// AWS does not know who is calling.
    Credentials = 4,
    /// AWS goes on with it.
    StillRunning = 5,
    /// A stack failed.
    RolledBack = 6,
    /// Something is left that should not be.
    LeftBehind = 7,
    /// The user ended it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
