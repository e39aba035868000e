//! What `up` does next with a stack, for every status.

use crate::aws::{Accepts, StackStatus};

/// What `up` does next with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
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
pub(crate) fn next_step(status: Option<&StackStatus>) -> NextStep {
    match status.map_or(Accepts::Creation, StackStatus::accepts) {
        Accepts::Creation => NextStep::Create,
        Accepts::Update => NextStep::Compare,
        Accepts::Nothing => NextStep::Follow,
        Accepts::Deletion => NextStep::DeleteAndCreate,
        Accepts::RollBack | Accepts::ContinueRollback => NextStep::RollBack,
        Accepts::AnotherDeletion => NextStep::FinishDeletion,
        Accepts::Undocumented => NextStep::Inspect,
    }
}

#[cfg(test)]
mod tests {
    use super::{NextStep, next_step};
    use crate::aws::StackStatus;

    #[test]
    fn every_status_has_its_step() {
        let cases = [
            ("CREATE_IN_PROGRESS", NextStep::Follow),
            ("CREATE_COMPLETE", NextStep::Compare),
            ("CREATE_FAILED", NextStep::DeleteAndCreate),
            ("ROLLBACK_IN_PROGRESS", NextStep::Follow),
            ("ROLLBACK_COMPLETE", NextStep::DeleteAndCreate),
            ("ROLLBACK_FAILED", NextStep::DeleteAndCreate),
            ("REVIEW_IN_PROGRESS", NextStep::DeleteAndCreate),
            ("UPDATE_IN_PROGRESS", NextStep::Follow),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", NextStep::Follow),
            ("UPDATE_COMPLETE", NextStep::Compare),
            ("UPDATE_FAILED", NextStep::RollBack),
            ("UPDATE_ROLLBACK_IN_PROGRESS", NextStep::Follow),
            ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", NextStep::Follow),
            ("UPDATE_ROLLBACK_COMPLETE", NextStep::Compare),
            ("UPDATE_ROLLBACK_FAILED", NextStep::RollBack),
            ("DELETE_IN_PROGRESS", NextStep::Follow),
            ("DELETE_COMPLETE", NextStep::Create),
            ("DELETE_FAILED", NextStep::FinishDeletion),
            ("IMPORT_IN_PROGRESS", NextStep::Follow),
            ("IMPORT_COMPLETE", NextStep::Compare),
            ("IMPORT_ROLLBACK_IN_PROGRESS", NextStep::Follow),
            ("IMPORT_ROLLBACK_COMPLETE", NextStep::Compare),
            ("IMPORT_ROLLBACK_FAILED", NextStep::Inspect),
            ("MELTED", NextStep::Inspect),
        ];
        for (status, step) in cases {
            assert_eq!(next_step(Some(&StackStatus::from(status))), step, "{status}");
        }
        assert_eq!(next_step(None), NextStep::Create);
    }
}
