//! Statements into managed policies, whose size IAM limits.

use serde_json::{Value, json};

/// What IAM allows in a managed policy, white space aside.
pub(super) const LARGEST_POLICY: usize = 6144;

/// Statements into as few policies as hold them; a statement that is too long alone is cut in two.
pub(super) fn pack_statements(statements: Vec<Value>) -> Vec<Vec<Value>> {
    let empty = json!({"Version": "2012-10-17", "Statement": []}).to_string().len();
    let mut waiting: Vec<Value> = statements.into_iter().rev().collect();
    let mut policies: Vec<Vec<Value>> = vec![Vec::new()];
    let mut size = empty;
    while let Some(mut statement) = waiting.pop() {
        let length = statement.to_string().len() + 1;
        if size + length <= LARGEST_POLICY {
            size += length;
            if let Some(policy) = policies.last_mut() {
                policy.push(statement);
            }
            continue;
        }
        let room = LARGEST_POLICY.saturating_sub(size);
        if let Some(rest) = split_statement(&mut statement, room) {
            waiting.push(rest);
            waiting.push(statement);
        } else {
            policies.push(Vec::new());
            size = empty;
            waiting.push(statement);
        }
    }
    policies
}

/// Leaves as many actions in a statement as have room; returns the rest. None if there is no room for even one.
fn split_statement(statement: &mut Value, room: usize) -> Option<Value> {
    let actions = statement["Action"].as_array()?.clone();
    let mut rest = statement.clone();
    for kept in (1..actions.len()).rev() {
        statement["Action"] = actions[..kept].into();
        if statement.to_string().len() < room {
            rest["Action"] = actions[kept..].into();
            return Some(rest);
        }
    }
    statement["Action"] = actions.into();
    None
}
