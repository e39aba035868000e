//! What a plan does to the things in the picture.

use std::collections::BTreeMap;

use crate::blueprint::{Role, StackPart};
use crate::config::values::PoolName;
use crate::deploy::event::{MachineAction, MachinePlan};
use crate::deploy::plan::comparison::ResourceAction;
use crate::deploy::plan::{Plan, StackAction};

/// What happens to a thing; it is shown by a sign, a word and a line, not by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// The thing is changed in place.
    Change,
    /// The thing is created.
    Create,
    /// Another one takes its place.
    Replace,
    /// The thing is deleted.
    Delete,
}

impl Mark {
    /// The end of the class of marked elements.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Change => "changed",
            Self::Create => "created",
            Self::Replace => "replaced",
            Self::Delete => "deleted",
        }
    }

    /// The sign that stands before the word.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Change => "~",
            Self::Create => "+",
            Self::Replace => "±",
            Self::Delete => "−",
        }
    }
}

impl From<ResourceAction> for Mark {
    fn from(action: ResourceAction) -> Self {
        match action {
            ResourceAction::Create => Self::Create,
            ResourceAction::Change => Self::Change,
            ResourceAction::Replace => Self::Replace,
            ResourceAction::Delete => Self::Delete,
        }
    }
}

/// What happens to machines of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineMark {
    pub(crate) mark: Mark,
    pub(crate) machines: u32,
    /// What a reader calls it.
    pub(crate) word: &'static str,
}

/// Everything that a plan marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    machines: BTreeMap<Role, Vec<MachineMark>>,
    resources: BTreeMap<(StackPart, String), Mark>,
    deleted_pools: Vec<PoolName>,
}

impl Marks {
    /// What a plan and its machines mark.
    pub(crate) fn new(plan: &Plan, machines: &MachinePlan) -> Self {
        let mut marks = Self::default();
        for change in &machines.machines {
            let (mark, word) = match change.change {
                MachineAction::Create => (Mark::Create, "created"),
                MachineAction::Replace { .. }
                | MachineAction::ReplaceGroup
                | MachineAction::ReplaceUnfitting => (Mark::Replace, "replaced"),
                MachineAction::StayOutdated => (Mark::Change, "stay outdated"),
                MachineAction::Terminate => (Mark::Delete, "terminated"),
            };
            let found = marks.machines.entry(change.role.clone()).or_default();
            found.push(MachineMark { mark, machines: change.machines, word });
        }
        for stack in &plan.stacks {
            for change in stack.changes_beyond_tags() {
                let place = (stack.part.clone(), change.logical_id.clone());
                marks.resources.insert(place, change.action.into());
            }
            if let (StackAction::Delete, StackPart::Pool(pool)) = (stack.action, &stack.part) {
                marks.deleted_pools.push(pool.clone());
            }
        }
        marks
    }

    /// What happens to machines of a role.
    pub(super) fn machines(&self, role: &Role) -> &[MachineMark] {
        self.machines.get(role).map_or(&[], Vec::as_slice)
    }

    /// What happens to a resource.
    pub(super) fn resource(&self, part: &StackPart, logical_id: &str) -> Option<Mark> {
        self.resources.get(&(part.clone(), logical_id.to_owned())).copied()
    }

    /// The pools that cluster.yaml no longer has.
    pub(super) fn deleted_pools(&self) -> &[PoolName] {
        &self.deleted_pools
    }
}
