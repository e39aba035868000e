//! What `up` does next with a stack, for every status.

use crate::aws::{Accepts, StackStatus};

/// What `up` does next with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no stack: create it.
    Create,
    /// The stack is complete: compare, and update it if it differs.
    Compare,
    /// An operation is in progress: follow it to its end, then read the stack again.
    Follow,
    /// The stack holds nothing worth keeping and cannot be updated: delete it and create it again.
    DeleteAndCreate,
    /// Only a rollback helps.
    RollBack,
    /// A deletion failed half-way; an update would bring half of the stack back.
    FinishDeletion,
    /// Only the user can decide.
    Inspect,
}

/// What `up` does next with a stack of this status; none means that there is no stack.
#[must_use]
pub(crate) fn next_step(status: Option<&StackStatus>) -> Step {
    match status.map_or(Accepts::Creation, StackStatus::accepts) {
        Accepts::Creation => Step::Create,
        Accepts::Update => Step::Compare,
        Accepts::Nothing => Step::Follow,
        Accepts::Deletion => Step::DeleteAndCreate,
        Accepts::RollBack | Accepts::ContinueRollback => Step::RollBack,
        Accepts::AnotherDeletion => Step::FinishDeletion,
        Accepts::Undocumented => Step::Inspect,
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, next_step};
    use crate::aws::StackStatus;

    #[test]
    fn every_status_has_its_step() {
        let cases = [
            ("CREATE_IN_PROGRESS", Step::Follow),
            ("CREATE_COMPLETE", Step::Compare),
            ("CREATE_FAILED", Step::DeleteAndCreate),
            ("ROLLBACK_IN_PROGRESS", Step::Follow),
            ("ROLLBACK_COMPLETE", Step::DeleteAndCreate),
            ("ROLLBACK_FAILED", Step::DeleteAndCreate),
            ("REVIEW_IN_PROGRESS", Step::DeleteAndCreate),
            ("UPDATE_IN_PROGRESS", Step::Follow),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Step::Follow),
            ("UPDATE_COMPLETE", Step::Compare),
            ("UPDATE_FAILED", Step::RollBack),
            ("UPDATE_ROLLBACK_IN_PROGRESS", Step::Follow),
            ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", Step::Follow),
            ("UPDATE_ROLLBACK_COMPLETE", Step::Compare),
            ("UPDATE_ROLLBACK_FAILED", Step::RollBack),
            ("DELETE_IN_PROGRESS", Step::Follow),
            ("DELETE_COMPLETE", Step::Create),
            ("DELETE_FAILED", Step::FinishDeletion),
            ("IMPORT_IN_PROGRESS", Step::Follow),
            ("IMPORT_COMPLETE", Step::Compare),
            ("IMPORT_ROLLBACK_IN_PROGRESS", Step::Follow),
            ("IMPORT_ROLLBACK_COMPLETE", Step::Compare),
            ("IMPORT_ROLLBACK_FAILED", Step::Inspect),
            ("MELTED", Step::Inspect),
        ];
        for (status, step) in cases {
            assert_eq!(next_step(Some(&StackStatus::from(status))), step, "{status}");
        }
        assert_eq!(next_step(None), Step::Create);
    }
}
