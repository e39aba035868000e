//! CloudFormation's own preview of a plan, by change sets that are deleted again.

use std::collections::BTreeMap;

use super::change_set::{check_template, wait_for_change_set};
use super::comparison::{PropertyChange, ResourceAction};
use super::preparation::Prepared;
use super::refused_change_set::explain_refusal;
use super::stack_tags::to_resource_tag;
use super::{Plan, StackAction, StackPlan};
use crate::aws::{ChangeSet, ChangeSetRequest, PlannedChange};
use crate::deploy::error::DeployError;
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::run::{Run, new_token};
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveStack;
use crate::deploy::state::step::{NextStep, next_step};
use crate::well_known::CHANGE_SET_PREFIX;

/// Creates a change set for every stack that would change, and puts what CloudFormation knows better into the plan. Every change set is
/// deleted again.
pub(crate) async fn refine_plan(run: &Run, prepared: &Prepared) -> Result<Plan, DeployError> {
    let outputs = prepared.live.outputs();
    let mut plan = prepared.plan.clone();
    for stack in plan.stacks.iter_mut().filter(|stack| stack.action == StackAction::Update) {
        let desired = prepared.desired.iter().find(|desired| desired.part == stack.part);
        let (Some(desired), Some(live)) = (desired, prepared.live.stacks.get(&stack.part)) else { continue };
        // A stack with an operation in progress, or a stuck one, accepts no change set.
        if next_step(Some(&live.stack.status)) != NextStep::Compare {
            continue;
        }
        let Ok(parameters) = desired.parameters(&outputs) else { continue };
        match preview_stack(run, &prepared.store, desired, live, &parameters).await? {
            Some(change_set) if change_set.is_empty() => mark_unchanged(stack),
            Some(change_set) => apply_preview(stack, &change_set.changes),
            None => {}
        }
    }
    Ok(plan)
}

/// The change set; none if the caller may not create one.
async fn preview_stack(
    run: &Run,
    store: &AssetStore,
    desired: &DesiredStack,
    live: &LiveStack,
    parameters: &BTreeMap<String, String>,
) -> Result<Option<ChangeSet>, DeployError> {
    let text = desired.text();
    let template = store.template_source(run, &text).await?;
    let token = new_token()?;
    let request = ChangeSetRequest {
        stack: &live.stack.arn,
        creates: false,
        name: &format!("{CHANGE_SET_PREFIX}plan-{token}"),
        template: &template,
        parameters,
        tags: &desired.tags,
        token: &token,
    };
    let arn = match run.clients.create_change_set(&request).await {
        Ok((arn, _)) => arn,
        Err(error) if error.is_denied() => {
            run.progress.warn(format!("CloudFormation cannot preview {}: {error}", desired.name));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let waited = wait_for_change_set(run, &desired.name, &arn).await;
    let checked = match &waited {
        Ok(change_set) => check_template(run, &desired.name, change_set, &template, &text).await,
        Err(_) => Ok(()),
    };
    let refused = match &waited {
        Ok(change_set) if change_set.is_refused() => {
            Some(explain_refusal(run, desired, change_set, |_| None).await)
        }
        _ => None,
    };
    // Delete the change set however the wait ended.
    let deleted = run.clients.delete_change_set(&desired.name, &arn).await;
    let change_set = waited?;
    checked?;
    if let Some(refused) = refused {
        return Err(refused);
    }
    deleted?;
    Ok(Some(change_set))
}

/// The templates differ, but not for CloudFormation.
fn mark_unchanged(stack: &mut StackPlan) {
    stack.action = StackAction::Unchanged;
    stack.resources.clear();
    stack.tags.clear();
}

fn apply_preview(stack: &mut StackPlan, changes: &[PlannedChange]) {
    let tags: Vec<PropertyChange> = stack.tags.iter().map(to_resource_tag).collect();
    for change in changes {
        let found = stack.resources.iter_mut().find(|resource| resource.logical_id == change.logical_id);
        let action = match (change.action.as_str(), change.replacement.as_deref()) {
            ("Add", _) => ResourceAction::Create,
            ("Remove", _) => ResourceAction::Delete,
            (_, Some("True")) => ResourceAction::Replace,
            _ => ResourceAction::Change,
        };
        match found {
            // infra knows that some properties always replace, which CloudFormation calls conditional.
            Some(resource) if action == ResourceAction::Replace => resource.action = action,
            Some(_) => {}
            None => stack.resources.push(super::comparison::ResourceChange {
                logical_id: change.logical_id.clone(),
                kind: change.kind.clone(),
                action,
                properties: if change.changes_tags && change.properties.is_empty() {
                    tags.clone()
                } else {
                    Vec::new()
                },
            }),
        }
    }
}
