//! Protection of stacks that hold what cannot be created again. Change sets cannot set it, so calls of their own do.

use serde_json::{Value, json};

use crate::aws::Stack;
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;

/// Sets what is missing of a stack's protection; makes no changing call if nothing is missing.
pub(crate) async fn keep_protected(run: &Run, part: &StackPart, stack: &Stack) -> Result<(), DeployError> {
    if !part.is_protected() {
        return Ok(());
    }
    if !stack.protected {
        run.clients.protect_stack(&stack.arn, true).await?;
    }
    let found = run.clients.stack_policy(&stack.arn).await?;
    let found = found.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    if found.as_ref() != Some(&stack_policy()) {
        run.clients.set_stack_policy(&stack.arn, &stack_policy().to_string()).await?;
    }
    Ok(())
}

/// Allows one change that the user asked for by name; `keep_protected` forbids it again afterwards.
pub(crate) async fn lift_policy(run: &Run, stack: &Stack) -> Result<(), DeployError> {
    let open = json!({"Statement": [allow_all()]});
    run.clients.set_stack_policy(&stack.arn, &open.to_string()).await?;
    Ok(())
}

fn allow_all() -> Value {
    json!({"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"})
}

/// Volumes and file systems are never replaced or deleted by an update.
fn stack_policy() -> Value {
    json!({"Statement": [
        allow_all(),
        {
            "Effect": "Deny",
            "Action": ["Update:Replace", "Update:Delete"],
            "Principal": "*",
            "Resource": "*",
            "Condition": {"StringEquals": {"ResourceType": ["AWS::EC2::Volume", "AWS::EFS::FileSystem"]}},
        },
    ]})
}
