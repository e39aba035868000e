//! One thing that must be true of a live cluster before a job is sent to it.

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// The job cannot run.
    Unmet(String),
    /// The job can run, and its author should know this: mostly what it waits for.
    Remark(String),
    /// The job can run, and something may become of it that its author does not want.
    Warning(String),
}
