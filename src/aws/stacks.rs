//! CloudFormation stacks: what they are, and everything that is done to a whole one.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::{Capability, Stack as SdkStack, TemplateStage};
use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients, StackStatus};

/// A stack as CloudFormation describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The name of the stack.
    pub name: String,
    /// The ARN of the stack, which also names it once it is deleted.
    pub arn: String,
    /// The status of the stack.
    pub status: StackStatus,
    /// Why it has that status.
    pub reason: Option<String>,
    /// The values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The outputs of the stack, which other stacks use.
    pub outputs: BTreeMap<String, String>,
    /// The tags of the stack.
    pub tags: BTreeMap<String, String>,
    /// Whether it refuses to be deleted.
    pub protected: bool,
    /// When the stack was created.
    pub created: Option<OffsetDateTime>,
    /// When it was changed last.
    pub updated: Option<OffsetDateTime>,
}

/// A template: in the call itself, or at an address in S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateSource {
    /// In the call; at most [`TemplateSource::LARGEST_INLINE`] bytes.
    Inline(String),
    /// At this URL in S3; at most a megabyte.
    Url(String),
}

impl TemplateSource {
    /// The largest template that CloudFormation accepts in a call, in bytes.
    pub(crate) const LARGEST_INLINE: usize = 51_200;
}

impl Clients {
    /// A stack by its name or ARN; none if there is no such stack.
    pub(crate) async fn stack(&self, name: &str) -> Result<Option<Stack>, AwsError> {
        let answer = self.cloudformation.describe_stacks().stack_name(name).send().await;
        match answer.map_err(AwsError::of(actions::CFN_DESCRIBE_STACKS)) {
            Ok(answer) => Ok(answer.stacks.unwrap_or_default().into_iter().next().map(to_stack)),
            Err(error) if error.says("does not exist") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every stack of the account and region that is not deleted.
    pub(crate) async fn stacks(&self) -> Result<Vec<Stack>, AwsError> {
        let mut pages = self.cloudformation.describe_stacks().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            found.push(to_stack(next.map_err(AwsError::of(actions::CFN_DESCRIBE_STACKS))?));
        }
        Ok(found)
    }

    /// A stack's template as it was handed in.
    pub(crate) async fn stack_template(&self, name: &str) -> Result<String, AwsError> {
        let call =
            self.cloudformation.get_template().stack_name(name).template_stage(TemplateStage::Original);
        let answer = call.send().await.map_err(AwsError::of(actions::CFN_GET_TEMPLATE))?;
        Ok(answer.template_body.unwrap_or_default())
    }

    /// The template of a change set as it was handed in, or as CloudFormation read it from S3.
    pub(crate) async fn change_set_template(&self, stack: &str, arn: &str) -> Result<String, AwsError> {
        let call = self.cloudformation.get_template().stack_name(stack).change_set_name(arn);
        let call = call.template_stage(TemplateStage::Original);
        let answer = call.send().await.map_err(AwsError::of(actions::CFN_GET_TEMPLATE))?;
        Ok(answer.template_body.unwrap_or_default())
    }

    /// Begins to delete a stack.
    pub(crate) async fn delete_stack(&self, arn: &str, token: &str) -> Result<(), AwsError> {
        let call = self.cloudformation.delete_stack().stack_name(arn).client_request_token(token);
        call.send().await.map_err(AwsError::of(actions::CFN_DELETE_STACK)).map(|_| ())
    }

    /// Has a running update rolled back.
    pub(crate) async fn cancel_update(&self, arn: &str, token: &str) -> Result<(), AwsError> {
        let call = self.cloudformation.cancel_update_stack().stack_name(arn).client_request_token(token);
        call.send().await.map_err(AwsError::of(actions::CFN_CANCEL_UPDATE_STACK)).map(|_| ())
    }

    /// Continues a rollback that failed, without the resources named.
    pub(crate) async fn continue_rollback(
        &self,
        arn: &str,
        skip: &[String],
        token: &str,
    ) -> Result<(), AwsError> {
        let call = self.cloudformation.continue_update_rollback().stack_name(arn).client_request_token(token);
        let skipped = (!skip.is_empty()).then(|| skip.to_vec());
        let call = call.set_resources_to_skip(skipped);
        call.send().await.map_err(AwsError::of(actions::CFN_CONTINUE_UPDATE_ROLLBACK)).map(|_| ())
    }

    /// Rolls back a stack whose change failed while rollback was switched off.
    pub(crate) async fn roll_back(&self, arn: &str, token: &str) -> Result<(), AwsError> {
        let call = self.cloudformation.rollback_stack().stack_name(arn).client_request_token(token);
        call.send().await.map_err(AwsError::of(actions::CFN_ROLLBACK_STACK)).map(|_| ())
    }

    /// Protects a stack from being deleted, or no longer.
    pub(crate) async fn protect_stack(&self, name: &str, protected: bool) -> Result<(), AwsError> {
        let call = self.cloudformation.update_termination_protection().stack_name(name);
        let call = call.enable_termination_protection(protected);
        call.send().await.map_err(AwsError::of(actions::CFN_UPDATE_TERMINATION_PROTECTION)).map(|_| ())
    }

    /// The policy of a stack, as a JSON document: which changes of its resources are forbidden.
    pub(crate) async fn stack_policy(&self, name: &str) -> Result<Option<String>, AwsError> {
        let call = self.cloudformation.get_stack_policy().stack_name(name);
        let answer = call.send().await.map_err(AwsError::of(actions::CFN_GET_STACK_POLICY))?;
        Ok(answer.stack_policy_body.filter(|body| !body.is_empty()))
    }

    /// Sets the policy of a stack.
    pub(crate) async fn set_stack_policy(&self, name: &str, policy: &str) -> Result<(), AwsError> {
        let call = self.cloudformation.set_stack_policy().stack_name(name).stack_policy_body(policy);
        call.send().await.map_err(AwsError::of(actions::CFN_SET_STACK_POLICY)).map(|_| ())
    }

    /// A link to AWS's calculator, filled in with what a template would cost.
    pub(crate) async fn estimate_cost(
        &self,
        template: &TemplateSource,
        parameters: &BTreeMap<String, String>,
    ) -> Result<String, AwsError> {
        let call = self.cloudformation.estimate_template_cost();
        let call = match template {
            TemplateSource::Inline(body) => call.template_body(body),
            TemplateSource::Url(url) => call.template_url(url),
        };
        let call = call.set_parameters(Some(sdk_parameters(parameters)));
        let answer = call.send().await.map_err(AwsError::of(actions::CFN_ESTIMATE_TEMPLATE_COST))?;
        Ok(answer.url.unwrap_or_default())
    }
}

/// Every stack of ours may create IAM roles.
pub(super) const CAPABILITY: Capability = Capability::CapabilityIam;

pub(super) fn sdk_parameters(
    parameters: &BTreeMap<String, String>,
) -> Vec<aws_sdk_cloudformation::types::Parameter> {
    let parameter = |(key, value): (&String, &String)| {
        aws_sdk_cloudformation::types::Parameter::builder().parameter_key(key).parameter_value(value).build()
    };
    parameters.iter().map(parameter).collect()
}

fn to_stack(found: SdkStack) -> Stack {
    let parameters = found.parameters.unwrap_or_default().into_iter();
    let outputs = found.outputs.unwrap_or_default().into_iter();
    let tags = found.tags.unwrap_or_default().into_iter();
    Stack {
        name: found.stack_name.unwrap_or_default(),
        arn: found.stack_id.unwrap_or_default(),
        status: StackStatus::from(found.stack_status.as_ref().map_or("", |status| status.as_str())),
        reason: found.stack_status_reason,
        parameters: parameters
            .filter_map(|parameter| Some((parameter.parameter_key?, parameter.parameter_value?)))
            .collect(),
        outputs: outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect(),
        tags: tags.filter_map(|tag| Some((tag.key?, tag.value?))).collect(),
        protected: found.enable_termination_protection.unwrap_or_default(),
        created: found.creation_time.and_then(super::to_offset_date_time),
        updated: found.last_updated_time.and_then(super::to_offset_date_time),
    }
}
