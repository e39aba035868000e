//! One statement of a policy.

use serde_json::{Value, json};

/// Actions on resources.
pub(super) fn allow_actions(action: impl Into<Value>, resource: impl Into<Value>) -> Value {
    json!({"Effect": "Allow", "Action": action.into(), "Resource": resource.into()})
}

/// Actions on resources, under a condition.
pub(super) fn allow_if(action: impl Into<Value>, resource: impl Into<Value>, condition: Value) -> Value {
    let mut statement = allow_actions(action, resource);
    statement["Condition"] = condition;
    statement
}
