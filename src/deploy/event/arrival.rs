//! Stacks that a run will work on, and machines on their way into the cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::machine_plan::role_name;
use crate::blueprint::Role;

/// A stack that a run will work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedStack {
    /// The stack.
    pub stack: String,
    /// The stacks of this run that come first.
    pub after: Vec<String>,
    /// How many resources the stack has; null if that is not known.
    pub resources: Option<usize>,
    /// The machines that the stack will have, by role.
    pub machines: Vec<PlannedMachines>,
}

/// How many machines of a role a stack will have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedMachines {
    /// The role of the machines: `etcd-0`, `controller` or `pool-NAME`.
    #[serde(serialize_with = "role_name")]
    #[schemars(with = "String")]
    pub role: Role,
    /// How many.
    pub count: u32,
}

/// How far a machine is. Each state includes those before it, which are not reported when they were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MachineState {
    /// Auto Scaling started the machine.
    Launched,
    /// The machine was heard of: it signalled CloudFormation.
    Booted,
    /// The machine is a node of the cluster.
    Joined,
    /// The node is Ready.
    Ready,
}

impl MachineState {
    /// The word for people and programs.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Launched => "launched",
            Self::Booted => "booted",
            Self::Joined => "joined",
            Self::Ready => "ready",
        }
    }
}

/// The machines that a run has seen on their way, and how far each was.
#[derive(Debug, Default)]
pub(super) struct Arrivals(BTreeMap<String, (Role, MachineState)>);

impl Arrivals {
    /// Says whether a machine is further than before.
    pub(super) fn advance(&mut self, role: &Role, machine: &str, state: MachineState) -> bool {
        if self.0.get(machine).is_some_and(|(_, before)| *before >= state) {
            return false;
        }
        self.0.insert(machine.to_owned(), (role.clone(), state));
        true
    }

    /// Whether a machine that will be a node is not Ready yet.
    pub(super) fn awaits_nodes(&self) -> bool {
        let is_awaited = |(role, state): &(Role, MachineState)| {
            !matches!(role, Role::EtcdMember(_)) && *state < MachineState::Ready
        };
        self.0.values().any(is_awaited)
    }

    /// The role of a machine that was seen.
    pub(super) fn role_of(&self, machine: &str) -> Option<Role> {
        self.0.get(machine).map(|(role, _)| role.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MachineState::{Booted, Joined, Launched, Ready};
    use super::{Arrivals, Role};

    #[test]
    fn text_and_json_use_the_same_words() {
        for state in [Launched, Booted, Joined, Ready] {
            assert_eq!(json!(state), state.name());
        }
    }

    #[test]
    fn a_machine_never_returns_to_an_earlier_state() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.role_of("i-1"), None);
        assert!(arrivals.advance(&Role::Controller, "i-1", Booted));
        assert!(!arrivals.advance(&Role::Controller, "i-1", Launched));
        assert!(!arrivals.advance(&Role::Controller, "i-1", Booted));
        assert!(arrivals.awaits_nodes());
        assert!(arrivals.advance(&Role::Controller, "i-1", Ready));
        assert!(arrivals.advance(&Role::EtcdMember(0), "i-2", Launched));
        assert!(!arrivals.awaits_nodes(), "a member of etcd never is a node");
        assert_eq!(arrivals.role_of("i-2"), Some(Role::EtcdMember(0)));
    }
}
