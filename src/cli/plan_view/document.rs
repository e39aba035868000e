//! A plan for a program.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::view::{Counts, PlanView, shown_value};
use crate::deploy::{FileChange, PropertyChange, ResourceAction, ResourceChange, StackAction, StackPlan};

/// What `infra up` would do. The exit code is 0; with `--detailed-exitcode` 3 if `changes` is true.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct PlanDocument {
    /// The cluster.
    cluster: String,
    /// Whether there is anything to do.
    changes: bool,
    /// How many stacks and resources it is about.
    summary: Summary,
    /// Every stack, in the order they are touched; those that go come last.
    stacks: Vec<StackDocument>,
}

/// How much a plan does.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// Stacks that are made, or made again.
    create: usize,
    /// Stacks that are changed.
    update: usize,
    /// Stacks that go.
    delete: usize,
    /// Stacks that are as they should be.
    unchanged: usize,
    /// Resources of the stacks that are changed.
    resources: ResourceCounts,
}

/// Resources, by what happens to them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceCounts {
    /// Made.
    create: usize,
    /// Changed in place.
    change: usize,
    /// Replaced by a new one.
    replace: usize,
    /// Removed.
    delete: usize,
}

/// What happens to a stack and everything in it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StackDocument {
    /// The name of the stack in AWS.
    stack: String,
    /// What happens to it.
    action: StackAction,
    /// What happens in it.
    resources: Vec<ResourceDocument>,
    /// Tags of the stack that change; they reach everything in it.
    tags: Vec<PropertyChange>,
    /// The stacks whose own changes may change more here.
    after: Vec<String>,
}

/// What happens to one resource.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceDocument {
    /// The logical id in the template.
    logical_id: String,
    /// The CloudFormation type.
    #[serde(rename = "type")]
    kind: String,
    /// What it is in terms of cluster.yaml.
    description: String,
    /// What happens to it.
    action: ResourceAction,
    /// Which of its properties change. User data is never shown, only that it changes.
    properties: Vec<PropertyChange>,
    /// What a change of user data means for files and units on the machine.
    user_data: Vec<FileChange>,
}

impl PlanDocument {
    pub(super) fn new(view: &PlanView<'_>) -> Self {
        let counts = Counts::of(view.plan);
        let [change, replace, create, delete] = counts.resources;
        Self {
            cluster: view.cluster.name.to_string(),
            changes: view.plan.has_changes(),
            summary: Summary {
                create: counts.create,
                update: counts.update,
                delete: counts.delete,
                unchanged: counts.unchanged,
                resources: ResourceCounts { create, change, replace, delete },
            },
            stacks: view.plan.stacks.iter().map(|stack| StackDocument::new(view, stack)).collect(),
        }
    }
}

impl StackDocument {
    fn new(view: &PlanView<'_>, stack: &StackPlan) -> Self {
        Self {
            stack: stack.stack.clone(),
            action: stack.action,
            resources: stack
                .resources
                .iter()
                .map(|change| ResourceDocument::new(view, stack, change))
                .collect(),
            tags: stack.tags.iter().map(shown).collect(),
            after: stack.after.clone(),
        }
    }
}

impl ResourceDocument {
    fn new(view: &PlanView<'_>, stack: &StackPlan, change: &ResourceChange) -> Self {
        Self {
            logical_id: change.logical_id.clone(),
            kind: change.kind.clone(),
            description: view.describe(stack, change),
            action: change.action,
            properties: change.properties.iter().map(shown).collect(),
            user_data: view.files(stack, change).unwrap_or_default().to_vec(),
        }
    }
}

/// The change without any user data in it.
fn shown(property: &PropertyChange) -> PropertyChange {
    let value = |value: &Option<Value>| value.as_ref().map(|value| shown_value(&property.path, value));
    PropertyChange {
        path: property.path.clone(),
        from: value(&property.from),
        to: value(&property.to),
        replaces: property.replaces,
    }
}
