//! One stack, from any status to where it should be: create, update, delete, roll back, and all of them in the order of their needs.
//!
//! In: a desired stack or the name of a live one. Out: the stack as asked for, its outputs, or one cause of the failure.

pub(crate) mod bring_up;
pub(crate) mod concurrent_deletion;
pub(crate) mod delete;
pub(crate) mod graph;
#[cfg(test)]
mod lost_event_tests;
mod operation;
mod past_failure;
pub(crate) mod protection;
pub(crate) mod roll_back;
#[cfg(test)]
mod test_cloudformation;
mod watch;
#[cfg(test)]
mod watch_tests;
