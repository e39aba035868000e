//! The resources of a stack, also of one that is deleted.

use aws_sdk_cloudformation::types::StackStatus as SdkStackStatus;

use super::actions;
use super::{AwsError, Clients, ResourceStatus};

/// A resource of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackResource {
    /// The name of the resource in the template.
    pub logical_id: String,
    /// What AWS calls it.
    pub physical_id: String,
    /// The type of the resource.
    pub kind: String,
    /// The status of the resource.
    pub status: ResourceStatus,
}

impl Clients {
    /// Every resource of a stack, by the stack's name or ARN.
    pub(crate) async fn stack_resources(&self, stack: &str) -> Result<Vec<StackResource>, AwsError> {
        let mut pages =
            self.cloudformation.list_stack_resources().stack_name(stack).into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let resource = next.map_err(AwsError::of(actions::CFN_LIST_STACK_RESOURCES))?;
            found.push(StackResource {
                logical_id: resource.logical_resource_id.unwrap_or_default(),
                physical_id: resource.physical_resource_id.unwrap_or_default(),
                kind: resource.resource_type.unwrap_or_default(),
                status: ResourceStatus::from(
                    resource.resource_status.as_ref().map_or("", |status| status.as_str()),
                ),
            });
        }
        Ok(found)
    }

    /// The ARNs of stacks of a name that were deleted in the last months, the newest first.
    pub(crate) async fn deleted_stacks(&self, name: &str) -> Result<Vec<String>, AwsError> {
        let call = self.cloudformation.list_stacks().stack_status_filter(SdkStackStatus::DeleteComplete);
        let mut pages = call.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let stack = next.map_err(AwsError::of(actions::CFN_LIST_STACKS))?;
            if stack.stack_name.as_deref() == Some(name) {
                found.push((stack.deletion_time, stack.stack_id));
            }
        }
        found.sort_by_key(|(deleted, _)| std::cmp::Reverse(*deleted));
        Ok(found.into_iter().filter_map(|(_, arn)| arn).collect())
    }
}
