//! What `up` would do, stack by stack.
//!
//! In: live stacks and desired stacks. Out: what changes by resource and property, what is refused, which machines
//! are replaced, and which jobs run on them.

pub(crate) mod change_preview;
pub(crate) mod change_set;
pub(crate) mod comparison;
mod credential_refusal;
pub(crate) mod disruption;
mod machines;
mod outage;
pub(crate) mod pool_end;
pub(crate) mod preparation;
pub(crate) mod refusal;
pub(crate) mod refused_change_set;
mod stack_tags;
pub(crate) mod template_values;
pub(crate) mod user_data_change;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::state::desired::DesiredStack;
use super::state::live::{LiveCluster, LiveStack};
use super::state::pool_hold::Hold;
use super::state::step::{NextStep, next_step};
use crate::aws::SCHEDULED_ACTION_TYPE;
use crate::blueprint::StackPart;
use comparison::{PropertyChange, ResourceAction, ResourceChange, Version, compare_stacks};

/// What happens to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StackAction {
    /// The stack is created.
    Create,
    /// What a failed creation left is deleted, and the stack is created again.
    Recreate,
    /// The stack is updated.
    Update,
    /// The stack is up to date.
    Unchanged,
    /// The stack is deleted.
    Delete,
}

/// What happens to a stack and everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackPlan {
    /// Which part of the cluster it is.
    pub part: StackPart,
    /// The name of the stack.
    pub stack: String,
    /// What happens to the stack.
    pub action: StackAction,
    /// What happens to its resources.
    pub resources: Vec<ResourceChange>,
    /// Tags of the stack that change; they apply to all of its resources.
    pub tags: Vec<PropertyChange>,
    /// The stacks whose own changes may change more here.
    pub after: Vec<String>,
}

/// What happens to a whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The stacks, in the order of the work; those that are deleted come last.
    pub stacks: Vec<StackPlan>,
    /// The stacks of pools whose own limits are set again, since no schedule holds them any more.
    pub releases: Vec<StackPart>,
}

impl Plan {
    /// Compares everything.
    #[must_use]
    pub(crate) fn new(desired: &[DesiredStack], live: &LiveCluster) -> Self {
        let outputs = live.outputs();
        let mut stacks: Vec<StackPlan> = Vec::new();
        for stack in desired {
            let changing = |part: &StackPart| {
                let plan = stacks.iter().find(|plan| plan.part == *part)?;
                let new = desired.iter().find(|desired| desired.part == *part)?;
                may_change_outputs(plan, new, live).then(|| plan.stack.clone())
            };
            let after = stack.part.needs().iter().filter_map(changing).collect();
            stacks.push(plan_stack(stack, live.stacks.get(&stack.part), &outputs, after));
        }
        let gone = live.stacks.iter().filter(|(part, _)| desired.iter().all(|stack| stack.part != **part));
        stacks.extend(gone.map(|(part, live)| plan_deletion(part, live)));
        let released = desired.iter().filter(|stack| stack.hold(live) == Hold::Released);
        Self { stacks, releases: released.map(|stack| stack.part.clone()).collect() }
    }

    /// Whether anything changes.
    #[must_use]
    pub(crate) fn has_changes(&self) -> bool {
        self.stacks.iter().any(|stack| stack.action != StackAction::Unchanged) || !self.releases.is_empty()
    }

    /// The stacks that would be deleted.
    pub(crate) fn deletions(&self) -> impl Iterator<Item = &StackPlan> {
        self.stacks.iter().filter(|stack| stack.action == StackAction::Delete)
    }

    /// How many resources of updated stacks would be replaced or deleted.
    #[must_use]
    pub(crate) fn losses(&self) -> usize {
        let kept = self.stacks.iter().filter(|stack| stack.action == StackAction::Update);
        kept.flat_map(|stack| &stack.resources)
            .filter(|change| matches!(change.action, ResourceAction::Replace | ResourceAction::Delete))
            // An entry of a schedule is written again with the next change of cluster.yaml.
            .filter(|change| change.kind != SCHEDULED_ACTION_TYPE)
            .count()
    }

    /// The plan with only some of the stacks.
    #[must_use]
    pub(crate) fn only(mut self, wanted: impl Fn(&StackPart) -> bool) -> Self {
        self.stacks.retain(|stack| wanted(&stack.part));
        self.releases.retain(wanted);
        self
    }
}

/// Whether the outputs of a stack may have other values afterwards. Tags change none.
fn may_change_outputs(plan: &StackPlan, new: &DesiredStack, live: &LiveCluster) -> bool {
    let outputs = live.stacks.get(&plan.part).map(|live| &live.template()["Outputs"]);
    let has_other_tags_only = plan.action == StackAction::Update
        && plan.resources.is_empty()
        && outputs == Some(&new.template.document()["Outputs"]);
    plan.action != StackAction::Unchanged && !has_other_tags_only
}

fn plan_stack(
    desired: &DesiredStack,
    live: Option<&LiveStack>,
    outputs: &BTreeMap<String, String>,
    after: Vec<String>,
) -> StackPlan {
    let step = next_step(live.map(|live| &live.stack.status));
    // The outputs of other stacks are not known before those are updated; the present ones are the best guess.
    let unknown = BTreeMap::new();
    let parameters = desired.parameters(outputs).unwrap_or(unknown);
    let new = Version { template: desired.template.document(), parameters: &parameters };
    let plan = |action, resources, tags| StackPlan {
        part: desired.part.clone(),
        stack: desired.name.clone(),
        action,
        resources,
        tags,
        after: if action == StackAction::Unchanged { Vec::new() } else { after },
    };
    match (live, step) {
        (None, _) | (_, NextStep::Create) => plan(StackAction::Create, compare_stacks(None, new), Vec::new()),
        (_, NextStep::DeleteAndCreate) => plan(StackAction::Recreate, compare_stacks(None, new), Vec::new()),
        (Some(live), _) => {
            let old = Version { template: live.template(), parameters: &live.stack.parameters };
            let resources = compare_stacks(Some(old), new);
            let tags = compare_tags(&live.stack.tags, &desired.tags);
            let action = if desired.is_unchanged(live, &parameters) {
                StackAction::Unchanged
            } else {
                StackAction::Update
            };
            plan(action, resources, tags)
        }
    }
}

fn plan_deletion(part: &StackPart, live: &LiveStack) -> StackPlan {
    let nothing = serde_json::json!({});
    let old = Version { template: live.template(), parameters: &live.stack.parameters };
    let empty = BTreeMap::new();
    StackPlan {
        part: part.clone(),
        stack: live.stack.name.clone(),
        action: StackAction::Delete,
        resources: compare_stacks(Some(old), Version { template: &nothing, parameters: &empty }),
        tags: Vec::new(),
        after: Vec::new(),
    }
}

fn compare_tags(live: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> Vec<PropertyChange> {
    let keys: std::collections::BTreeSet<&String> = live.keys().chain(wanted.keys()).collect();
    let changed = keys.into_iter().filter(|key| live.get(*key) != wanted.get(*key));
    changed
        .map(|key| PropertyChange {
            path: key.clone(),
            from: live.get(key).map(|value| value.as_str().into()),
            to: wanted.get(key).map(|value| value.as_str().into()),
            replaces: false,
        })
        .collect()
}
