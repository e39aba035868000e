//! A plan to be shown, and what every way of showing it says: the summary, descriptions, and values without user data.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::Cluster;
use crate::deploy::{
    FileChange, Plan, ResourceAction, ResourceChange, StackAction, StackPlan, describe_resource,
};
use crate::plural::count_of;

/// What is shown in place of user data.
const USER_DATA: &str = "(user data)";

/// A plan, for display.
#[derive(Debug)]
pub(in super::super) struct PlanView<'a> {
    /// The plan.
    pub(in super::super) plan: &'a Plan,
    /// The cluster, as cluster.yaml wants it.
    pub(in super::super) cluster: &'a Cluster,
    /// What changes of user data mean, by stack and logical id.
    pub(in super::super) user_data: &'a BTreeMap<(String, String), Vec<FileChange>>,
    /// Whether the resources of whole stacks are listed, too.
    pub(in super::super) verbose: bool,
}

impl PlanView<'_> {
    /// The plan in one line.
    pub(super) fn summary(&self) -> String {
        if !self.plan.has_changes() {
            return "No changes. The cluster is as cluster.yaml says.".to_owned();
        }
        let counts = Counts::of(self.plan);
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

/// The value without any user data in it.
pub(super) fn shown_value(path: &str, value: &Value) -> Value {
    if is_user_data(path) {
        return USER_DATA.into();
    }
    match value {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), shown_value(key, value))).collect()
        }
        Value::Array(items) => items.iter().map(|item| shown_value("", item)).collect(),
        other => other.clone(),
    }
}

/// How much a plan does.
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
    pub(super) fn of(plan: &Plan) -> Self {
        let mut counts = Self::default();
        for stack in &plan.stacks {
            match stack.action {
                StackAction::Create | StackAction::Recreate => counts.create += 1,
                StackAction::Delete => counts.delete += 1,
                StackAction::Unchanged => counts.unchanged += 1,
                StackAction::Update => {
                    counts.update += 1;
                    for change in &stack.resources {
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

/// As `2 stacks to create, 1 to delete`.
fn enumerate_stacks(noun: &str, counts: &[(usize, String)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0).enumerate();
    let texts = some.map(|(index, (count, action))| match index {
        0 => format!("{} to {action}", count_of(*count, noun)),
        _ => format!("{count} to {action}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
