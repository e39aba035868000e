//! What is reported while a command runs, as data; `cli/progress_view` shows it.

mod arrival;
mod capacity_block;
mod deletion;
mod failure;
mod finding;
mod machine_plan;
mod refusal;
mod stuck;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

use crate::aws::{ResourceStatus, StackStatus};
use crate::blueprint::Role;
use arrival::Arrivals;
pub(crate) use arrival::{MachineState, PlannedMachines, PlannedStack};
pub(crate) use capacity_block::{BlockPhase, MACHINES_END_EARLY, PoolBlock, minute_in_utc};
pub(crate) use deletion::{DestroyItem, Leftover, Resource, ResourceKind};
pub(crate) use failure::{Evidence, FailedResource, FailureKind, FailureReport, Hint};
pub(crate) use finding::{Finding, Severity};
pub(crate) use machine_plan::{
    DisruptedJob, HeldPool, Holder, MachineAction, MachineChange, MachinePlan, Outage, ReleasedPool, Service,
};
pub(crate) use refusal::Refusal;
pub(crate) use stuck::{Stuck, StuckResource};

/// What is done to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StackOperation {
    /// The stack is created.
    Create,
    /// The stack is updated.
    Update,
    /// The stack is deleted.
    Delete,
    /// The stack is rolled back.
    RollBack,
    /// Another process began an operation, and this run follows it.
    Attach,
}

impl StackOperation {
    /// The word for people and programs.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::RollBack => "roll-back",
            Self::Attach => "attach",
        }
    }
}

/// What happened to the record of the public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecordState {
    /// There was no record.
    Created,
    /// The record pointed elsewhere, and `--adopt-record` replaced it.
    Adopted,
    /// The record pointed at an earlier load balancer of this cluster.
    Moved,
    /// The record was right.
    Unchanged,
    /// All name servers have the change.
    InSync,
}

impl RecordState {
    /// The word for people and programs.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
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
pub(crate) enum Event {
    /// A stage of the work begins.
    Stage {
        /// The stage.
        what: &'static str,
    },
    /// Something worth knowing.
    Note {
        /// Human-readable text.
        text: String,
    },
    /// Something that needs attention.
    Warning {
        /// Human-readable text.
        text: String,
    },
    /// A finding of preflight; one event each, before anything is created.
    Preflight {
        /// The finding.
        #[serde(flatten)]
        finding: Finding,
    },
    /// What `up` is about to do to machines; before the first change, and only if there is one to machines.
    Machines {
        /// What happens to machines.
        #[serde(flatten)]
        plan: MachinePlan,
    },
    /// An object was uploaded to the bucket.
    Uploaded {
        /// The key of the object.
        key: String,
        /// The size of the object in bytes.
        bytes: usize,
    },
    /// The stacks that the run will work on, in their order; before the first of them begins.
    Stacks {
        /// The stacks.
        stacks: Vec<PlannedStack>,
    },
    /// An operation on a stack began.
    StackBegan {
        /// The stack.
        stack: String,
        /// The operation.
        operation: StackOperation,
        /// How many resources the operation changes; null if that is not known.
        resources: Option<usize>,
    },
    /// A resource of a stack has another status.
    Resource {
        /// The stack.
        stack: String,
        /// The name of the resource in the template.
        resource: String,
        /// The CloudFormation type of the resource.
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
    /// An Auto Scaling group could not start a machine; reported at once, long before CloudFormation gives up.
    LaunchFailed {
        /// The stack.
        stack: String,
        /// The Auto Scaling group, by its name in the template.
        resource: String,
        /// Why, in AWS's words.
        reason: String,
        /// How often launches failed for this reason so far.
        times: usize,
    },
    /// A machine that was launched while the run watched is further on its way into the cluster.
    Machine {
        /// The role of the machine: `etcd-0`, `controller` or `pool-NAME`.
        #[serde(serialize_with = "machine_plan::role_name")]
        #[schemars(with = "String")]
        role: Role,
        /// The instance id of the machine.
        machine: String,
        /// How far the machine is.
        state: MachineState,
        /// The name of its node, once it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<String>,
    },
    /// An operation on a stack has ended.
    StackEnded {
        /// The stack.
        stack: String,
        /// The status of the stack now, in CloudFormation's words.
        status: StackStatus,
        /// Whether the operation did what was asked for.
        good: bool,
    },
    /// A stack was up to date.
    StackUnchanged {
        /// The stack.
        stack: String,
    },
    /// A stack is skipped, because a stack that it needs failed.
    StackSkipped {
        /// The stack.
        stack: String,
        /// The stack that failed.
        because: String,
    },
    /// A stack could not be created or updated, and this is the one cause; comes after its `stack-ended`.
    StackFailed {
        /// The cause.
        #[serde(flatten)]
        report: FailureReport,
    },
    /// The record of the public name was checked or changed.
    Record {
        /// The name.
        name: String,
        /// What happened to the record.
        state: RecordState,
        /// What the record points at.
        target: String,
    },
    /// The list of what the run waits for has changed.
    Waiting {
        /// What the cluster still waits for before it is ready.
        waiting_for: Vec<String>,
    },
    /// A `destroy` has ended, also when there was nothing to do; its last event.
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
        /// The URL of the API.
        endpoint: String,
    },
}

/// Where events go. Clones report to the same receiver.
#[derive(Clone)]
pub(crate) struct Progress {
    receiver: Arc<dyn Fn(Event) + Send + Sync>,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl Progress {
    /// Sends events to a function.
    #[must_use]
    pub(crate) fn new(receiver: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self { receiver: Arc::new(receiver), arrivals: Arc::default() }
    }

    /// Reports something.
    pub(crate) fn report(&self, event: Event) {
        (self.receiver)(event);
    }

    /// Reports how far a machine is, unless that is known.
    pub(crate) fn machine(&self, role: &Role, machine: &str, state: MachineState) {
        self.advance(role, machine, state, None);
    }

    /// Reports how far the node of a machine is, if the machine was launched while the run watched.
    pub(crate) fn node(&self, machine: &str, state: MachineState, node: &str) {
        let role = self.arrivals().role_of(machine);
        if let Some(role) = role {
            self.advance(&role, machine, state, Some(node.to_owned()));
        }
    }

    /// Whether a machine that was launched while the run watched will be a node, and is not Ready yet.
    pub(crate) fn awaits_nodes(&self) -> bool {
        self.arrivals().awaits_nodes()
    }

    fn advance(&self, role: &Role, machine: &str, state: MachineState, node: Option<String>) {
        let is_news = self.arrivals().advance(role, machine, state);
        if is_news {
            self.report(Event::Machine { role: role.clone(), machine: machine.to_owned(), state, node });
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn text_and_json_use_the_same_words() {
        for operation in [Create, Update, Delete, RollBack, Attach] {
            assert_eq!(json!(operation), operation.name());
        }
        for state in [Created, Adopted, Moved, Unchanged, InSync] {
            assert_eq!(json!(state), state.name());
        }
    }
}
