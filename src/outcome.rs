//! What an error means for the user: what to do next, and how the command ends. The errors of every layer say it by one trait.

use std::error::Error;

/// How a command ends that an error stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing more is known than the error's text.
    Failed,
    /// The arguments or a file of the user's are wrong.
    Invalid,
    /// AWS does not accept the credentials, or there are none.
    Credentials,
    /// AWS could not be reached.
    Unreachable,
    /// AWS refused a call.
    Refused,
    /// AWS or the cluster continues with what was started.
    StillRunning,
    /// CloudFormation rolled a stack back.
    RolledBack,
    /// The user ended the command.
    Interrupted,
}

/// An error that explains itself.
pub(crate) trait Explain: Error {
    /// What the user can do about it.
    fn help(&self) -> Option<String> {
        None
    }

    /// How a command ends with it.
    fn outcome(&self) -> Outcome {
        Outcome::Failed
    }
}
