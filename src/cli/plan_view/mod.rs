//! A plan as text for a terminal, as Markdown for a pull request, and as JSON for a program.
//!
//! User data is never shown as it is, in none of them: only what it means for files on the machine.

mod document;
mod lines;
mod markdown;
mod text;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::Cluster;
use crate::deploy::{
    FileChange, Plan, ResourceAction, ResourceChange, StackAction, StackPlan, describe_resource,
};
use crate::plural::count_of;
pub(super) use document::PlanDocument;

/// What stands in the place of user data.
const USER_DATA: &str = "(user data)";

/// A plan to be looked at.
#[derive(Debug)]
pub(super) struct PlanView<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The cluster, as cluster.yaml wants it.
    pub cluster: &'a Cluster,
    /// What changes of user data mean, by stack and logical id.
    pub user_data: &'a BTreeMap<(String, String), Vec<FileChange>>,
    /// Whether the resources of whole stacks are listed, too.
    pub verbose: bool,
}

impl PlanView<'_> {
    /// For a terminal, with escape codes for colour and without a line end.
    pub(super) fn text(&self) -> String {
        text::render(self)
    }

    /// For a pull request.
    pub(super) fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// For a program.
    pub(super) fn document(&self) -> PlanDocument {
        PlanDocument::new(self)
    }

    /// The plan in one line.
    pub(super) fn summary(&self) -> String {
        if !self.plan.has_changes() {
            return "No changes. The cluster is as cluster.yaml says.".to_owned();
        }
        let counts = Counts::of(self.plan);
        let actions = ["change", "replace", "create", "delete"].map(str::to_owned);
        let inside = enumerate("resource", &counts.resources.into_iter().zip(actions).collect::<Vec<_>>());
        let update = if inside.is_empty() { "update".to_owned() } else { format!("update ({inside})") };
        let stacks = [
            (counts.create, "create".to_owned()),
            (counts.update, update),
            (counts.delete, "delete".to_owned()),
        ];
        format!("Plan: {}", enumerate("stack", &stacks))
    }

    fn describe(&self, stack: &StackPlan, change: &ResourceChange) -> String {
        describe_resource(self.cluster, &stack.part, &change.logical_id)
    }

    fn files(&self, stack: &StackPlan, change: &ResourceChange) -> Option<&[FileChange]> {
        let place = (stack.stack.clone(), change.logical_id.clone());
        self.user_data.get(&place).map(Vec::as_slice)
    }
}

fn is_user_data(path: &str) -> bool {
    path.contains("UserData")
}

/// The value without any user data in it.
fn shown_value(path: &str, value: &Value) -> Value {
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
struct Counts {
    create: usize,
    update: usize,
    delete: usize,
    unchanged: usize,
    /// Of stacks that are updated: changed, replaced, created, deleted.
    resources: [usize; 4],
}

impl Counts {
    fn of(plan: &Plan) -> Self {
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
fn enumerate(noun: &str, counts: &[(usize, String)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0).enumerate();
    let texts = some.map(|(index, (count, action))| match index {
        0 => format!("{} to {action}", count_of(*count, noun)),
        _ => format!("{count} to {action}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
