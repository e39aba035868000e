//! What `up` does with a stack, for every status that CloudFormation knows.

/// What comes next for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is not there: make it.
    Create,
    /// It stands: compare, and change it if need be.
    Compare,
    /// Something is under way: watch it to its end, then look again.
    Follow,
    /// It holds nothing worth keeping and cannot be changed: remove it and make it again.
    RemoveAndCreate,
    /// Only a rollback helps.
    RollBack,
    /// Its deletion failed half-way; going on would bring half of it back.
    FinishDeletion,
    /// Nobody here can tell what is right.
    Inspect,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it was meant to.
    Good,
    /// It failed, and what was there before is there again, or nothing is.
    RolledBack,
    /// It failed and needs help.
    Failed,
    /// The stack is gone.
    Deleted,
}

/// Every status with what it means for a stack that shall be there, and for an operation that arrives at it.
const TABLE: [(&str, Step, Option<End>); 23] = [
    ("CREATE_IN_PROGRESS", Step::Follow, None),
    ("CREATE_COMPLETE", Step::Compare, Some(End::Good)),
    ("CREATE_FAILED", Step::RemoveAndCreate, Some(End::Failed)),
    ("ROLLBACK_IN_PROGRESS", Step::Follow, None),
    ("ROLLBACK_COMPLETE", Step::RemoveAndCreate, Some(End::RolledBack)),
    ("ROLLBACK_FAILED", Step::RemoveAndCreate, Some(End::Failed)),
    ("REVIEW_IN_PROGRESS", Step::RemoveAndCreate, None),
    ("UPDATE_IN_PROGRESS", Step::Follow, None),
    ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Step::Follow, None),
    ("UPDATE_COMPLETE", Step::Compare, Some(End::Good)),
    ("UPDATE_FAILED", Step::RollBack, Some(End::Failed)),
    ("UPDATE_ROLLBACK_IN_PROGRESS", Step::Follow, None),
    ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", Step::Follow, None),
    ("UPDATE_ROLLBACK_COMPLETE", Step::Compare, Some(End::RolledBack)),
    ("UPDATE_ROLLBACK_FAILED", Step::RollBack, Some(End::Failed)),
    ("DELETE_IN_PROGRESS", Step::Follow, None),
    ("DELETE_COMPLETE", Step::Create, Some(End::Deleted)),
    ("DELETE_FAILED", Step::FinishDeletion, Some(End::Failed)),
    ("IMPORT_IN_PROGRESS", Step::Follow, None),
    ("IMPORT_COMPLETE", Step::Compare, Some(End::Good)),
    ("IMPORT_ROLLBACK_IN_PROGRESS", Step::Follow, None),
    ("IMPORT_ROLLBACK_COMPLETE", Step::Compare, Some(End::RolledBack)),
    ("IMPORT_ROLLBACK_FAILED", Step::Inspect, Some(End::Failed)),
];

/// What comes next for a stack with this status; none means that there is no stack.
#[must_use]
pub fn next_step(status: Option<&str>) -> Step {
    let Some(status) = status else { return Step::Create };
    TABLE.iter().find(|(name, ..)| *name == status).map_or(Step::Inspect, |(_, step, _)| *step)
}

/// How an operation has ended, or none while it goes on. A status that nobody knows is an end that failed.
#[must_use]
pub fn end_of(status: &str) -> Option<End> {
    TABLE.iter().find(|(name, ..)| *name == status).map_or(Some(End::Failed), |(_, _, end)| *end)
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types::StackStatus;

    use super::{End, Step, TABLE, end_of, next_step};

    #[test]
    fn every_status_that_the_sdk_knows_has_a_line_and_no_other() {
        let mut known = StackStatus::values().to_vec();
        let mut listed: Vec<&str> = TABLE.iter().map(|(name, ..)| *name).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn what_goes_on_is_watched_and_what_ended_is_not() {
        for (name, step, end) in TABLE {
            let goes_on = name.ends_with("_IN_PROGRESS") && name != "REVIEW_IN_PROGRESS";
            assert_eq!(step == Step::Follow, goes_on, "{name}");
            assert_eq!(end.is_none(), name.ends_with("_IN_PROGRESS"), "{name}");
        }
    }

    #[test]
    fn nothing_is_made_and_the_unknown_is_left_alone() {
        assert_eq!(next_step(None), Step::Create);
        assert_eq!(next_step(Some("MELTED")), Step::Inspect);
        assert_eq!(end_of("MELTED"), Some(End::Failed));
    }
}
