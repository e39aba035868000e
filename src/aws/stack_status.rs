//! The statuses of stacks, of their resources and of change sets.
//!
//! In: CloudFormation's texts. Out: one enum each, with what is known about every status. No other file of `src/` spells a status.

use super::text_enum::text_enum;

/// What CloudFormation accepts next for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Nothing but an end of the operation in progress.
    Nothing,
    /// An update, or a deletion.
    Update,
    /// A rollback of the update that failed (`RollbackStack`).
    RollBack,
    /// Another attempt at the rollback that failed (`ContinueUpdateRollback`).
    ContinueRollback,
    /// A deletion, for a stack that holds nothing worth keeping.
    Deletion,
    /// Another attempt at the deletion that failed.
    AnotherDeletion,
    /// A new stack of the same name.
    Creation,
    /// AWS does not document it.
    Undocumented,
}

/// How an operation on a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The operation did what was asked for.
    Good,
    /// The operation failed, and the stack is what it was before, or empty.
    RolledBack,
    /// The operation failed, and so did CloudFormation's way back, or there was none.
    Failed,
    /// The stack is deleted.
    Deleted,
}

/// What a status says about the last step of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The step has begun.
    InProgress,
    /// The step is done.
    Complete,
    /// The step has failed.
    Failed,
}

macro_rules! stack_statuses {
    ($($variant:ident | $text:literal | $accepts:ident | $end:expr;)*) => {
        text_enum! {
            /// The status of a stack.
            StackStatus { $($variant $text)* }
        }

        impl StackStatus {
            /// What CloudFormation accepts next.
            #[must_use]
            pub(crate) fn accepts(&self) -> Accepts {
                match self {
                    $(Self::$variant => Accepts::$accepts,)*
                    Self::Unknown(_) => Accepts::Undocumented,
                }
            }

            /// How an operation that arrives at this status has ended; none while it is in progress. An unknown status is an end that
            /// failed.
            #[must_use]
            pub(crate) fn end(&self) -> Option<End> {
                match self {
                    $(Self::$variant => $end,)*
                    Self::Unknown(_) => Some(End::Failed),
                }
            }
        }
    };
}

// The one table of stack statuses: what CloudFormation accepts next, whether it is an end, and whether that end is good.
stack_statuses! {
    CreateInProgress                | "CREATE_IN_PROGRESS"                           | Nothing          | None;
    CreateComplete                  | "CREATE_COMPLETE"                              | Update           | Some(End::Good);
    CreateFailed                    | "CREATE_FAILED"                                | Deletion         | Some(End::Failed);
    RollbackInProgress              | "ROLLBACK_IN_PROGRESS"                         | Nothing          | None;
    RollbackComplete                | "ROLLBACK_COMPLETE"                            | Deletion         | Some(End::RolledBack);
    RollbackFailed                  | "ROLLBACK_FAILED"                              | Deletion         | Some(End::Failed);
    ReviewInProgress                | "REVIEW_IN_PROGRESS"                           | Deletion         | None;
    UpdateInProgress                | "UPDATE_IN_PROGRESS"                           | Nothing          | None;
    UpdateCleanupInProgress         | "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"          | Nothing          | None;
    UpdateComplete                  | "UPDATE_COMPLETE"                              | Update           | Some(End::Good);
    UpdateFailed                    | "UPDATE_FAILED"                                | RollBack         | Some(End::Failed);
    UpdateRollbackInProgress        | "UPDATE_ROLLBACK_IN_PROGRESS"                  | Nothing          | None;
    UpdateRollbackCleanupInProgress | "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS" | Nothing          | None;
    UpdateRollbackComplete          | "UPDATE_ROLLBACK_COMPLETE"                     | Update           | Some(End::RolledBack);
    UpdateRollbackFailed            | "UPDATE_ROLLBACK_FAILED"                       | ContinueRollback | Some(End::Failed);
    DeleteInProgress                | "DELETE_IN_PROGRESS"                           | Nothing          | None;
    DeleteComplete                  | "DELETE_COMPLETE"                              | Creation         | Some(End::Deleted);
    DeleteFailed                    | "DELETE_FAILED"                                | AnotherDeletion  | Some(End::Failed);
    ImportInProgress                | "IMPORT_IN_PROGRESS"                           | Nothing          | None;
    ImportComplete                  | "IMPORT_COMPLETE"                              | Update           | Some(End::Good);
    ImportRollbackInProgress        | "IMPORT_ROLLBACK_IN_PROGRESS"                  | Nothing          | None;
    ImportRollbackComplete          | "IMPORT_ROLLBACK_COMPLETE"                     | Update           | Some(End::RolledBack);
    ImportRollbackFailed            | "IMPORT_ROLLBACK_FAILED"                       | Undocumented     | Some(End::Failed);
}

impl StackStatus {
    /// Whether a stack's own event with this status begins an operation. A rollback belongs to the operation that it undoes.
    #[must_use]
    pub(crate) fn begins_operation(&self) -> bool {
        matches!(self, Self::CreateInProgress | Self::UpdateInProgress | Self::DeleteInProgress)
    }

    /// Whether a stack's own event with this status begins a rollback.
    #[must_use]
    pub(crate) fn begins_rollback(&self) -> bool {
        matches!(
            self,
            Self::RollbackInProgress | Self::UpdateRollbackInProgress | Self::ImportRollbackInProgress
        )
    }

    /// Whether an update is being rolled back.
    #[must_use]
    pub(crate) fn is_rolling_back_update(&self) -> bool {
        matches!(self, Self::UpdateRollbackInProgress | Self::UpdateRollbackCleanupInProgress)
    }

    /// Whether a deletion of the stack has begun, failed or ended.
    #[must_use]
    pub(crate) fn is_deletion(&self) -> bool {
        matches!(self, Self::DeleteInProgress | Self::DeleteFailed | Self::DeleteComplete)
    }
}

macro_rules! resource_statuses {
    ($($variant:ident | $text:literal | $phase:ident;)*) => {
        text_enum! {
            /// The status of a resource of a stack.
            ResourceStatus { $($variant $text)* }
        }

        impl ResourceStatus {
            /// How far the resource's last step is.
            #[must_use]
            pub(crate) fn phase(&self) -> Phase {
                match self {
                    $(Self::$variant => Phase::$phase,)*
                    Self::Unknown(text) if text.ends_with("_IN_PROGRESS") => Phase::InProgress,
                    Self::Unknown(text) if text.ends_with("_FAILED") => Phase::Failed,
                    Self::Unknown(_) => Phase::Complete,
                }
            }
        }
    };
}

resource_statuses! {
    CreateInProgress         | "CREATE_IN_PROGRESS"          | InProgress;
    CreateComplete           | "CREATE_COMPLETE"             | Complete;
    CreateFailed             | "CREATE_FAILED"               | Failed;
    UpdateInProgress         | "UPDATE_IN_PROGRESS"          | InProgress;
    UpdateComplete           | "UPDATE_COMPLETE"             | Complete;
    UpdateFailed             | "UPDATE_FAILED"               | Failed;
    DeleteInProgress         | "DELETE_IN_PROGRESS"          | InProgress;
    DeleteComplete           | "DELETE_COMPLETE"             | Complete;
    DeleteFailed             | "DELETE_FAILED"               | Failed;
    DeleteSkipped            | "DELETE_SKIPPED"              | Complete;
    RollbackInProgress       | "ROLLBACK_IN_PROGRESS"        | InProgress;
    RollbackComplete         | "ROLLBACK_COMPLETE"           | Complete;
    RollbackFailed           | "ROLLBACK_FAILED"             | Failed;
    UpdateRollbackInProgress | "UPDATE_ROLLBACK_IN_PROGRESS" | InProgress;
    UpdateRollbackComplete   | "UPDATE_ROLLBACK_COMPLETE"    | Complete;
    UpdateRollbackFailed     | "UPDATE_ROLLBACK_FAILED"      | Failed;
    ImportInProgress         | "IMPORT_IN_PROGRESS"          | InProgress;
    ImportComplete           | "IMPORT_COMPLETE"             | Complete;
    ImportFailed             | "IMPORT_FAILED"               | Failed;
    ImportRollbackInProgress | "IMPORT_ROLLBACK_IN_PROGRESS" | InProgress;
    ImportRollbackComplete   | "IMPORT_ROLLBACK_COMPLETE"    | Complete;
    ImportRollbackFailed     | "IMPORT_ROLLBACK_FAILED"      | Failed;
    ExportInProgress         | "EXPORT_IN_PROGRESS"          | InProgress;
    ExportComplete           | "EXPORT_COMPLETE"             | Complete;
    ExportFailed             | "EXPORT_FAILED"               | Failed;
    ExportRollbackInProgress | "EXPORT_ROLLBACK_IN_PROGRESS" | InProgress;
    ExportRollbackComplete   | "EXPORT_ROLLBACK_COMPLETE"    | Complete;
    ExportRollbackFailed     | "EXPORT_ROLLBACK_FAILED"      | Failed;
}

text_enum! {
    /// The status of a change set.
    ChangeSetStatus {
        CreatePending "CREATE_PENDING"
        CreateInProgress "CREATE_IN_PROGRESS"
        CreateComplete "CREATE_COMPLETE"
        DeletePending "DELETE_PENDING"
        DeleteInProgress "DELETE_IN_PROGRESS"
        DeleteComplete "DELETE_COMPLETE"
        DeleteFailed "DELETE_FAILED"
        Failed "FAILED"
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types;
    use serde_json::json;

    use super::{Accepts, ChangeSetStatus, End, Phase, ResourceStatus, StackStatus};

    #[test]
    fn every_status_that_the_sdk_knows_is_in_its_list() {
        for text in types::StackStatus::values() {
            let status = StackStatus::from(*text);
            assert!(!matches!(status, StackStatus::Unknown(_)), "{text}");
            assert_eq!((status.to_string().as_str(), json!(status)), (*text, json!(text)));
        }
        for text in types::ResourceStatus::values() {
            let status = ResourceStatus::from(*text);
            assert!(!matches!(status, ResourceStatus::Unknown(_)), "{text}");
            assert_eq!(status.as_str(), *text);
            // Statuses that come later are read by the same endings.
            assert_eq!(ResourceStatus::Unknown((*text).to_owned()).phase(), status.phase(), "{text}");
        }
        for text in types::ChangeSetStatus::values() {
            assert!(!matches!(ChangeSetStatus::from(*text), ChangeSetStatus::Unknown(_)), "{text}");
        }
    }

    #[test]
    fn nothing_is_accepted_before_the_end_of_an_operation() {
        for text in types::StackStatus::values() {
            let status = StackStatus::from(*text);
            let is_in_progress = text.ends_with("_IN_PROGRESS");
            assert_eq!(status.end().is_none(), is_in_progress, "{text}");
            let is_review = status == StackStatus::ReviewInProgress;
            assert_eq!(status.accepts() == Accepts::Nothing, is_in_progress && !is_review, "{text}");
        }
    }

    #[test]
    fn an_unknown_status_keeps_its_text_and_is_a_failed_end() {
        let unknown = StackStatus::from("MELTED");
        assert_eq!((unknown.to_string().as_str(), json!(unknown)), ("MELTED", json!("MELTED")));
        assert_eq!((unknown.accepts(), unknown.end()), (Accepts::Undocumented, Some(End::Failed)));
        assert_eq!(ResourceStatus::from("MELTED").phase(), Phase::Complete);
    }
}
