//! Change sets: what an update would do, asked of CloudFormation before it is done.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::{
    Change, ChangeSetType, OnStackFailure, RequiresRecreation, ResourceAttribute,
    ResourceChange as SdkResourceChange, Tag,
};

use super::actions;
use super::stacks::{CAPABILITY, sdk_parameters};
use super::{AwsError, ChangeSetStatus, Clients, TemplateSource};

/// The content of a change set.
#[derive(Clone, Debug)]
pub(crate) struct ChangeSetRequest<'a> {
    /// The name of the stack, or better the ARN if the stack exists.
    pub stack: &'a str,
    /// Whether the stack is to be created.
    pub creates: bool,
    /// The change set's own name.
    pub name: &'a str,
    /// The template.
    pub template: &'a TemplateSource,
    /// A value for every parameter.
    pub parameters: &'a BTreeMap<String, String>,
    /// The stack's tags.
    pub tags: &'a BTreeMap<String, String>,
    /// Makes a repeated call the same call.
    pub token: &'a str,
}

/// A change set as far as it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeSet {
    /// The ARN of the change set.
    pub arn: String,
    /// The stack's ARN.
    pub stack_arn: String,
    /// The status of the change set.
    pub status: ChangeSetStatus,
    /// Why it has that status.
    pub reason: Option<String>,
    /// What it would do.
    pub changes: Vec<PlannedChange>,
}

impl ChangeSet {
    /// Whether CloudFormation found nothing to do.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        self.status == ChangeSetStatus::Failed
            && (reason.contains("didn't contain changes")
                || reason.contains("No updates are to be performed"))
    }

    /// Whether CloudFormation refused it.
    #[must_use]
    pub(crate) fn is_refused(&self) -> bool {
        self.status != ChangeSetStatus::CreateComplete && !self.is_empty()
    }
}

/// What would be done to one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedChange {
    /// The name of the resource in the template.
    pub logical_id: String,
    /// The type of the resource.
    pub kind: String,
    /// `Add`, `Modify`, `Remove` and a few more.
    pub action: String,
    /// `True`, `False` or `Conditional`, for `Modify`.
    pub replacement: Option<String>,
    /// The properties that change, with whether each alone would replace the resource.
    pub properties: Vec<(String, bool)>,
    /// Whether the tags of the resource change, as they do with the tags of its stack.
    pub changes_tags: bool,
}

impl Clients {
    /// Begins to create a change set; gives its ARN and the stack's.
    pub(crate) async fn create_change_set(
        &self,
        request: &ChangeSetRequest<'_>,
    ) -> Result<(String, String), AwsError> {
        let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build();
        let call = self.cloudformation.create_change_set();
        let call = match request.template {
            TemplateSource::Inline(body) => call.template_body(body),
            TemplateSource::Url(url) => call.template_url(url),
        };
        let kind = if request.creates { ChangeSetType::Create } else { ChangeSetType::Update };
        let call = call
            .stack_name(request.stack)
            .change_set_name(request.name)
            .change_set_type(kind)
            .capabilities(CAPABILITY)
            .set_parameters(Some(sdk_parameters(request.parameters)))
            .set_tags(Some(request.tags.iter().map(tag).collect()))
            .client_token(request.token);
        // What a failed creation leaves behind shows the cause, and is deleted by the next run.
        let call = if request.creates { call.on_stack_failure(OnStackFailure::Rollback) } else { call };
        let answer = call.send().await.map_err(AwsError::of(actions::CFN_CREATE_CHANGE_SET))?;
        Ok((answer.id.unwrap_or_default(), answer.stack_id.unwrap_or_default()))
    }

    /// A change set with everything it would do. The stack is named in all of these, because rights are given by stack.
    pub(crate) async fn change_set(&self, stack: &str, arn: &str) -> Result<ChangeSet, AwsError> {
        let mut changes = Vec::new();
        let mut next_token = None;
        loop {
            let call = self.cloudformation.describe_change_set().stack_name(stack).change_set_name(arn);
            let answer = call.set_next_token(next_token).send().await;
            let answer = answer.map_err(AwsError::of(actions::CFN_DESCRIBE_CHANGE_SET))?;
            changes.extend(answer.changes.unwrap_or_default().into_iter().filter_map(planned_change));
            next_token = answer.next_token;
            if next_token.is_none() {
                return Ok(ChangeSet {
                    arn: answer.change_set_id.unwrap_or_default(),
                    stack_arn: answer.stack_id.unwrap_or_default(),
                    status: ChangeSetStatus::from(
                        answer.status.as_ref().map_or("", |status| status.as_str()),
                    ),
                    reason: answer.status_reason,
                    changes,
                });
            }
        }
    }

    /// Begins to do what a change set says.
    pub(crate) async fn execute_change_set(
        &self,
        stack: &str,
        arn: &str,
        token: &str,
    ) -> Result<(), AwsError> {
        let call = self
            .cloudformation
            .execute_change_set()
            .stack_name(stack)
            .change_set_name(arn)
            .client_request_token(token);
        call.send().await.map_err(AwsError::of(actions::CFN_EXECUTE_CHANGE_SET)).map(|_| ())
    }

    /// Deletes a change set that is not wanted.
    pub(crate) async fn delete_change_set(&self, stack: &str, arn: &str) -> Result<(), AwsError> {
        let call = self.cloudformation.delete_change_set().stack_name(stack).change_set_name(arn);
        call.send().await.map_err(AwsError::of(actions::CFN_DELETE_CHANGE_SET)).map(|_| ())
    }
}

fn planned_change(change: Change) -> Option<PlannedChange> {
    let SdkResourceChange { action, logical_resource_id, resource_type, replacement, scope, details, .. } =
        change.resource_change?;
    let changes_tags = scope.unwrap_or_default().contains(&ResourceAttribute::Tags);
    let properties = details.unwrap_or_default().into_iter().filter_map(|detail| {
        let target = detail.target?;
        let recreates =
            target.requires_recreation.is_some_and(|recreation| recreation == RequiresRecreation::Always);
        Some((target.name?, recreates))
    });
    let mut properties: Vec<(String, bool)> = properties.collect();
    properties.sort();
    properties.dedup();
    Some(PlannedChange {
        logical_id: logical_resource_id?,
        kind: resource_type.unwrap_or_default(),
        action: action.map(|action| action.as_str().to_owned()).unwrap_or_default(),
        replacement: replacement.map(|replacement| replacement.as_str().to_owned()),
        properties,
        changes_tags,
    })
}
