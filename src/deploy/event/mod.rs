//! What is reported while a command works, as data; how it looks is somebody else's affair.

mod deletion;
mod failure;
mod finding;
mod refusal;
mod stuck;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::aws::{ResourceStatus, StackStatus};
pub use deletion::{DestroyItem, Leftover, Resource, ResourceKind};
pub use failure::{Evidence, FailedResource, FailureKind, FailureReport, Hint};
pub use finding::{Finding, Severity};
pub use refusal::Refusal;
pub use stuck::{Stuck, StuckResource};

/// What is done to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackOperation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// It goes back to what it was.
    RollBack,
    /// Somebody else began something, and this run follows it.
    Attach,
}

impl StackOperation {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::RollBack => "roll-back",
            Self::Attach => "attach",
        }
    }
}

/// What came of the record of the public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// There was none.
    Created,
    /// It was somebody else's, and `--adopt-record` made it this cluster's.
    Adopted,
    /// It led to an earlier load balancer of this cluster.
    Moved,
    /// It was as it should be.
    Unchanged,
    /// All name servers know the change.
    InSync,
}

impl RecordState {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Adopted => "adopted",
            Self::Moved => "moved",
            Self::Unchanged => "unchanged",
            Self::InSync => "in-sync",
        }
    }
}

// The descriptions below are what docs/reference/events.md is made of.

/// Something that happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Event {
    /// A part of the work begins.
    Stage {
        /// What is done now.
        what: &'static str,
    },
    /// There is something worth knowing.
    Note {
        /// What, for people.
        text: String,
    },
    /// Something should be looked at.
    Warning {
        /// What, for people.
        text: String,
    },
    /// Preflight found something; a line each, before anything is made.
    Preflight {
        /// It.
        #[serde(flatten)]
        finding: Finding,
    },
    /// An object was not in the bucket yet, and is now.
    Uploaded {
        /// Its key.
        key: String,
        /// Its size.
        bytes: usize,
    },
    /// Work on a stack begins.
    StackBegan {
        /// The stack.
        stack: String,
        /// What is done to it.
        operation: StackOperation,
        /// How many resources it is about; null if that is not known.
        resources: Option<usize>,
    },
    /// A resource of a stack has another status.
    Resource {
        /// The stack.
        stack: String,
        /// Its name in the template.
        resource: String,
        /// Its CloudFormation type.
        kind: String,
        /// The status, in CloudFormation's words.
        status: ResourceStatus,
        /// Why, if AWS gives a reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// CloudFormation began to undo what was begun on a stack.
    UndoBegan {
        /// The stack.
        stack: String,
        /// `roll-back`, or `delete` for a creation that was given up.
        operation: StackOperation,
    },
    /// A group could not start a machine; told at once, long before CloudFormation gives up.
    LaunchFailed {
        /// The stack.
        stack: String,
        /// The group, by its name in the template.
        resource: String,
        /// Why, in AWS's words.
        reason: String,
        /// How often it was this reason so far.
        times: usize,
    },
    /// Work on a stack has ended.
    StackEnded {
        /// The stack.
        stack: String,
        /// Its status now, in CloudFormation's words.
        status: StackStatus,
        /// Whether that is what was wanted.
        good: bool,
    },
    /// A stack was as it should be.
    StackUnchanged {
        /// The stack.
        stack: String,
    },
    /// A stack is not touched, because one that it needs failed.
    StackSkipped {
        /// The stack.
        stack: String,
        /// The one that failed.
        because: String,
    },
    /// A stack could not be created or updated, and this is the one cause; comes after its `stack-ended`.
    StackFailed {
        /// Why.
        #[serde(flatten)]
        report: FailureReport,
    },
    /// The record of the public name was looked at or changed.
    Record {
        /// The name.
        name: String,
        /// What came of it.
        state: RecordState,
        /// Where it leads.
        target: String,
    },
    /// The list of what is waited for has changed.
    Waiting {
        /// What the cluster still waits for before it is ready.
        waiting_for: Vec<String>,
    },
    /// A `destroy` got to its end, also when there was nothing to do; its last line.
    Destroyed {
        /// The cluster.
        cluster: String,
        /// Whether nothing is left but what was kept on purpose; if not, the exit code is 7.
        complete: bool,
        /// Stacks that could not be deleted.
        stuck: Vec<Stuck>,
        /// Stacks that were created meanwhile; what they need is kept.
        created_meanwhile: Vec<String>,
        /// What is in the network of stacks that could not be deleted, with its owners.
        blockers: Vec<String>,
        /// What else is left.
        leftovers: Vec<Leftover>,
        /// What was kept on purpose.
        kept: Vec<DestroyItem>,
    },
    /// The API answers, and every node is ready.
    Ready {
        /// Where the API is.
        endpoint: String,
    },
}

/// Where events go.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Event) + Send + Sync>);

impl Progress {
    /// Sends events to a function.
    #[must_use]
    pub fn new(receiver: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receiver))
    }

    /// Reports something.
    pub fn report(&self, event: Event) {
        (self.0)(event);
    }

    pub(crate) fn stage(&self, what: &'static str) {
        self.report(Event::Stage { what });
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.report(Event::Note { text: text.into() });
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.report(Event::Warning { text: text.into() });
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Progress")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RecordState::{Adopted, Created, InSync, Moved, Unchanged};
    use super::StackOperation::{Attach, Create, Delete, RollBack, Update};

    #[test]
    fn people_and_programs_read_the_same_words() {
        for operation in [Create, Update, Delete, RollBack, Attach] {
            assert_eq!(json!(operation), operation.name());
        }
        for state in [Created, Adopted, Moved, Unchanged, InSync] {
            assert_eq!(json!(state), state.name());
        }
    }
}
