//! Fields that exist and the types they have, by Kubernetes' own schemas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::finding::Findings;
use crate::document::nearest_word;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| crate::document::parse_embedded_table(include_str!("object_fields.json")));

#[derive(Deserialize)]
struct Table {
    kinds: BTreeMap<String, String>,
    types: BTreeMap<String, ObjectType>,
}

#[derive(Deserialize)]
struct ObjectType {
    fields: BTreeMap<String, String>,
    required: Vec<String>,
}

/// Notes every field that does not exist, has the wrong type, or is missing.
pub(super) fn check_fields(object: &Value, findings: &mut Findings) {
    let kind = object["kind"].as_str().unwrap_or_default();
    let Some(name) = TABLE.kinds.get(kind) else {
        // Other kinds are for others to judge, misspelt ones are not.
        if kind != "JobSet"
            && let Some(near) = nearest_word(kind, TABLE.kinds.keys().map(String::as_str))
        {
            findings.add(
                "kind",
                format!("there is no kind '{kind}'"),
                Some(&format!("did you mean {near}?")),
            );
        }
        return;
    };
    let version = version_of(name);
    if object["apiVersion"] != version.as_str() {
        let found = object["apiVersion"].as_str().unwrap_or_default();
        let message = format!("there is no {kind} in '{found}'");
        findings.add("apiVersion", message, Some(&format!("it is in {version}")));
    }
    check_field_type(object, name, "", findings);
}

/// The version that a type such as `batch.v1.Job` is found under.
fn version_of(name: &str) -> String {
    match name.split_once('.') {
        Some(("core", _)) => "v1".to_owned(),
        Some(("rbac", _)) => "rbac.authorization.k8s.io/v1".to_owned(),
        Some((group, _)) => format!("{group}/v1"),
        None => String::new(),
    }
}

fn check_field_type(value: &Value, kind: &str, field: &str, findings: &mut Findings) {
    if value.is_null() {
        return;
    }
    if let Some(item) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        match value.as_array() {
            Some(items) => items.iter().enumerate().for_each(|(number, value)| {
                check_field_type(value, item, &format!("{field}[{number}]"), findings);
            }),
            None => findings.add(field, format!("it must be a list, and is {}", describe_type(value)), None),
        }
        return;
    }
    if let Some(entry) = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}')) {
        match value.as_object() {
            Some(entries) => {
                for (key, value) in entries {
                    check_field_type(value, entry, &join_path(field, key), findings);
                }
            }
            None => findings.add(field, format!("it must be a map, and is {}", describe_type(value)), None),
        }
        return;
    }
    match (kind, value) {
        ("any", _)
        | ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("integer" | "number", Value::Number(_)) => {}
        ("string", _) => findings.add(
            field,
            format!("it must be text, and is {}", describe_type(value)),
            Some("put it in quotes"),
        ),
        ("integer" | "number", _) => findings.add(
            field,
            format!("it must be a number, and is {}", describe_type(value)),
            Some("leave the quotes out"),
        ),
        ("boolean", _) => {
            findings.add(field, format!("it must be true or false, and is {}", describe_type(value)), None);
        }
        _ => check_object(value, kind, field, findings),
    }
}

fn check_object(value: &Value, kind: &str, field: &str, findings: &mut Findings) {
    let Some(known) = TABLE.types.get(kind) else { return };
    let Some(entries) = value.as_object() else {
        findings.add(field, format!("it must have fields, and is {}", describe_type(value)), None);
        return;
    };
    // A type without fields is one whose content is free.
    if known.fields.is_empty() {
        return;
    }
    for (key, value) in entries {
        match known.fields.get(key) {
            Some(kind) => check_field_type(value, kind, &join_path(field, key), findings),
            None => {
                let near = nearest_word(key, known.fields.keys().map(String::as_str));
                let help = near.map(|near| format!("did you mean {near}?"));
                findings.add(&join_path(field, key), "there is no such field", help.as_deref());
            }
        }
    }
    for required in &known.required {
        if entries.get(required).is_none_or(Value::is_null) {
            findings.add(&join_path(field, required), "it is missing", None);
        }
    }
}

fn join_path(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}

fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
