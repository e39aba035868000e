//! Why something failed: the events of an operation into one root cause, and AWS's messages into what the user can do.
//!
//! In: stack events and error texts. Out: `FailureReport` and `Hint`. Nothing is changed here.

pub(crate) mod failure_report;
pub(crate) mod hint;
pub(crate) mod operation_events;
pub(crate) mod root_cause;
