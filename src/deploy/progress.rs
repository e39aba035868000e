//! What is reported while a command works, as data; how it looks is somebody else's affair.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::destroy::{DestroyItem, Leftover};
use super::failure::FailureReport;
use super::preflight::Finding;
use super::stack_deletion::Stuck;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Event {
    /// A stage of the work begins.
    Stage {
        /// What is done now.
        what: &'static str,
    },
    /// Something worth knowing.
    Note {
        /// It.
        text: String,
    },
    /// Something that should be looked at.
    Warning {
        /// It.
        text: String,
    },
    /// Preflight found something.
    Preflight {
        /// It.
        #[serde(flatten)]
        finding: Finding,
    },
    /// An object was uploaded.
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
        /// `create`, `update`, `delete`, `roll-back`, or `attach` for what somebody else began.
        operation: &'static str,
        /// How many resources it is about, if that is known.
        resources: Option<usize>,
    },
    /// A resource of a stack has another status.
    Resource {
        /// The stack.
        stack: String,
        /// Its name in the template.
        resource: String,
        /// Its type.
        kind: String,
        /// The status.
        status: String,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A machine could not be started.
    LaunchFailed {
        /// The stack.
        stack: String,
        /// The group, by its name in the template.
        resource: String,
        /// What AWS says.
        reason: String,
        /// How often it said so.
        times: usize,
    },
    /// Work on a stack has ended.
    StackEnded {
        /// The stack.
        stack: String,
        /// Its status now.
        status: String,
        /// Whether that is what was wanted.
        good: bool,
    },
    /// A stack was as it should be.
    StackUnchanged {
        /// The stack.
        stack: String,
    },
    /// A stack was not touched, because another one failed.
    StackSkipped {
        /// The stack.
        stack: String,
        /// The one that failed.
        because: String,
    },
    /// A stack failed.
    StackFailed {
        /// Why.
        #[serde(flatten)]
        report: FailureReport,
    },
    /// The public record.
    Record {
        /// The name.
        name: String,
        /// `created`, `unchanged`, `moved`, `adopted`, `in-sync`.
        state: &'static str,
        /// Where it leads.
        target: String,
    },
    /// What the cluster still waits for before it is ready.
    Waiting {
        /// Each thing.
        waiting_for: Vec<String>,
    },
    /// A cluster was taken away as far as it would go.
    Destroyed {
        /// The cluster.
        cluster: String,
        /// Whether nothing is left but what stays on purpose.
        gone: bool,
        /// Stacks that would not go.
        stuck: Vec<Stuck>,
        /// Who stands in their way.
        blockers: Vec<String>,
        /// What is left besides.
        leftovers: Vec<Leftover>,
        /// What stays on purpose.
        stays: Vec<DestroyItem>,
    },
    /// The cluster is ready.
    Ready {
        /// Where its API is.
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

    pub(super) fn stage(&self, what: &'static str) {
        self.report(Event::Stage { what });
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        self.report(Event::Note { text: text.into() });
    }

    pub(super) fn warn(&self, text: impl Into<String>) {
        self.report(Event::Warning { text: text.into() });
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Progress")
    }
}
