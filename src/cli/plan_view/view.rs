//! What all views of a plan share: the summary, descriptions, and values without user data.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cost_change::CostChange;
use crate::config::Cluster;
use crate::deploy::{
    FileChange, ImageOrigin, MachinePlan, Plan, ResourceAction, ResourceChange, StackAction, StackPlan,
    describe_resource,
};
use crate::plural::count_of;

/// What is shown in place of user data.
const USER_DATA: &str = "(user data)";

/// A plan, for display.
#[derive(Debug)]
pub(in super::super) struct PlanView<'a> {
    /// The plan.
    pub(in super::super) plan: &'a Plan,
    /// What the plan does to machines.
    pub(in super::super) machines: &'a MachinePlan,
    /// The cluster that cluster.yaml describes.
    pub(in super::super) cluster: &'a Cluster,
    /// The image that machines boot, if it exists.
    pub(in super::super) image: Option<&'a ImageOrigin>,
    /// The changes of files and units that a change of user data means, by stack and logical id.
    pub(in super::super) user_data: &'a BTreeMap<(String, String), Vec<FileChange>>,
    /// What changes in the cost of the cluster, if prices are known.
    pub(in super::super) cost: Option<CostChange>,
    /// Whether the resources of stacks that are created or deleted as a whole are listed too, and those that only get other tags.
    pub(in super::super) verbose: bool,
}

impl PlanView<'_> {
    /// The plan in one line.
    pub(super) fn summary(&self) -> String {
        if !self.plan.has_changes() {
            return "No changes. The cluster is as cluster.yaml says.".to_owned();
        }
        let counts = Counts::of(self.plan, |stack, change| !stack.changes_only_stack_tags_of(change));
        let actions = ["change", "replace", "create", "delete"].map(str::to_owned);
        let inside =
            enumerate_stacks("resource", &counts.resources.into_iter().zip(actions).collect::<Vec<_>>());
        let update = if inside.is_empty() { "update".to_owned() } else { format!("update ({inside})") };
        let stacks = [
            (counts.create, "create".to_owned()),
            (counts.update, update),
            (counts.delete, "delete".to_owned()),
        ];
        format!("Plan: {}", enumerate_stacks("stack", &stacks))
    }

    pub(super) fn describe(&self, stack: &StackPlan, change: &ResourceChange) -> String {
        describe_resource(self.cluster, &stack.part, &change.logical_id)
    }

    pub(super) fn files(&self, stack: &StackPlan, change: &ResourceChange) -> Option<&[FileChange]> {
        let place = (stack.stack.clone(), change.logical_id.clone());
        self.user_data.get(&place).map(Vec::as_slice)
    }
}

pub(super) fn is_user_data(path: &str) -> bool {
    path.contains("UserData")
}

/// The value with its user data masked.
pub(in super::super) fn mask_user_data(path: &str, value: &Value) -> Value {
    if is_user_data(path) {
        return USER_DATA.into();
    }
    match value {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), mask_user_data(key, value))).collect()
        }
        Value::Array(items) => items.iter().map(|item| mask_user_data("", item)).collect(),
        other => other.clone(),
    }
}

/// The number of stacks and resources by what happens to them.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) create: usize,
    pub(super) update: usize,
    pub(super) delete: usize,
    pub(super) unchanged: usize,
    /// Of stacks that are updated: changed, replaced, created, deleted.
    pub(super) resources: [usize; 4],
}

impl Counts {
    /// Counts the resources that are wanted.
    pub(super) fn of(plan: &Plan, is_wanted: impl Fn(&StackPlan, &ResourceChange) -> bool) -> Self {
        let mut counts = Self::default();
        for stack in &plan.stacks {
            match stack.action {
                StackAction::Create | StackAction::Recreate => counts.create += 1,
                StackAction::Delete => counts.delete += 1,
                StackAction::Unchanged => counts.unchanged += 1,
                StackAction::Update => {
                    counts.update += 1;
                    for change in stack.resources.iter().filter(|change| is_wanted(stack, change)) {
                        let place = match change.action {
                            ResourceAction::Change => 0,
                            ResourceAction::Replace => 1,
                            ResourceAction::Create => 2,
                            ResourceAction::Delete => 3,
                        };
                        counts.resources[place] += 1;
                    }
                }
            }
        }
        counts
    }
}

/// Counts as text: `2 stacks to create, 1 to delete`.
fn enumerate_stacks(noun: &str, counts: &[(usize, String)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0).enumerate();
    let texts = some.map(|(index, (count, action))| match index {
        0 => format!("{} to {action}", count_of(*count, noun)),
        _ => format!("{count} to {action}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
