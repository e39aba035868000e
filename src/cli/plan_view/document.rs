//! A plan as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::cost_change::CostChange;
use super::view::{Counts, PlanView, mask_user_data};
use crate::deploy::{
    FileChange, ImageOrigin, MachinePlan, PropertyChange, ResourceAction, ResourceChange, StackAction,
    StackPlan,
};

/// What `infra up` would do. The exit code is 0; with `--detailed-exitcode` 3 if `changes` is true.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct PlanDocument {
    /// The name of the cluster.
    cluster: String,
    /// Whether `infra up` would change anything.
    changes: bool,
    /// What happens to machines, first of all.
    #[serde(flatten)]
    machines: MachinePlan,
    /// The image that machines boot; left out if it no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageOrigin>,
    /// The number of stacks and resources by what happens to them.
    summary: Summary,
    /// What changes in the cost of the cluster; null if infra.lock has no prices.
    cost: Option<CostChange>,
    /// Every stack, in the order in which `infra up` works on them; stacks to delete come last.
    stacks: Vec<StackDocument>,
}

/// The number of stacks and resources by what happens to them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// Stacks that are created, or deleted and created again.
    create: usize,
    /// Stacks that are updated.
    update: usize,
    /// Stacks that are deleted.
    delete: usize,
    /// Stacks that do not change.
    unchanged: usize,
    /// Resources of the stacks that are updated.
    resources: ResourceCounts,
}

/// The number of resources by what happens to them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceCounts {
    /// Resources that are created.
    create: usize,
    /// Resources that are changed in place.
    change: usize,
    /// Resources that are replaced.
    replace: usize,
    /// Resources that are deleted.
    delete: usize,
}

/// What happens to a stack and its resources.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StackDocument {
    /// The name of the stack in AWS.
    stack: String,
    /// What `infra up` does with it.
    action: StackAction,
    /// The resources that change.
    resources: Vec<ResourceDocument>,
    /// Tags of the stack that change; CloudFormation puts them on every resource in it.
    tags: Vec<PropertyChange>,
    /// Stacks whose changes may cause further changes in this one.
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
    /// What the resource is in terms of cluster.yaml.
    description: String,
    /// What `infra up` does with it.
    action: ResourceAction,
    /// Whether nothing about it changes but the tags that it has from the stack.
    tags_only: bool,
    /// The properties that change. The content of user data is never included, only that it changes.
    properties: Vec<PropertyChange>,
    /// How a change of user data changes files and units on the machine.
    user_data: Vec<FileChange>,
}

impl PlanDocument {
    pub(super) fn new(view: &PlanView<'_>) -> Self {
        let counts = Counts::of(view.plan, |_, _| true);
        let [change, replace, create, delete] = counts.resources;
        Self {
            cluster: view.cluster.name.to_string(),
            changes: view.plan.has_changes(),
            machines: view.machines.clone(),
            image: view.image.cloned(),
            summary: Summary {
                create: counts.create,
                update: counts.update,
                delete: counts.delete,
                unchanged: counts.unchanged,
                resources: ResourceCounts { create, change, replace, delete },
            },
            cost: view.cost.clone(),
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
            tags: stack.tags.iter().map(mask_property).collect(),
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
            tags_only: stack.changes_only_stack_tags_of(change),
            properties: change.properties.iter().map(mask_property).collect(),
            user_data: view.files(stack, change).unwrap_or_default().to_vec(),
        }
    }
}

/// The change with its user data masked.
fn mask_property(property: &PropertyChange) -> PropertyChange {
    let value = |value: &Option<Value>| value.as_ref().map(|value| mask_user_data(&property.path, value));
    PropertyChange {
        path: property.path.clone(),
        from: value(&property.from),
        to: value(&property.to),
        replaces: property.replaces,
    }
}
