//! Properties of resources, compared with CloudFormation's own schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::document::nearest_word;

/// The schemas of the types that stacks use; `scripts/make-schemas` renews them.
static SCHEMAS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("resource_schemas.json")).unwrap_or_default());

/// The actions that CloudFormation takes with the caller's permissions, for each type that stacks use; `scripts/make-schemas` renews them.
static PERMISSIONS: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("handler_permissions.json")).unwrap_or_default());

/// Every action that CloudFormation may take in the caller's name for our stacks.
#[must_use]
pub fn handler_permissions() -> BTreeSet<&'static str> {
    PERMISSIONS.values().flatten().map(String::as_str).collect()
}

/// Attributes that CloudFormation gives although the schema does not list them as read-only.
const MORE_ATTRIBUTES: [(&str, &str); 1] = [("AWS::EC2::SecurityGroup", "GroupId")];

/// Properties that AWS documents as replacing, or as not to be changed at all, although the schema says nothing.
const MORE_CREATE_ONLY: [(&str, &str); 6] = [
    ("AWS::EC2::Volume", "AvailabilityZone"),
    ("AWS::EC2::Volume", "Encrypted"),
    ("AWS::EC2::Volume", "KmsKeyId"),
    ("AWS::EC2::Volume", "SnapshotId"),
    ("AWS::Route53::RecordSet", "Name"),
    ("AWS::Route53::RecordSet", "Type"),
];

/// Whether there is a schema for a type.
pub(super) fn is_known_type(kind: &str) -> bool {
    SCHEMAS.contains_key(kind)
}

/// The type that was probably meant.
pub(super) fn nearest_type(kind: &str) -> Option<&'static str> {
    nearest_word(kind, SCHEMAS.keys().map(String::as_str))
}

/// Whether `Fn::GetAtt` can ask a resource of this type for an attribute.
pub(super) fn has_attribute(kind: &str, attribute: &str) -> bool {
    let Some(schema) = SCHEMAS.get(kind) else { return true };
    let path = attribute.replace('.', "/");
    let listed =
        |list: &Value| list.as_array().into_iter().flatten().any(|name| name.as_str() == Some(&path));
    listed(&schema["readOnly"])
        || schema["properties"].get(attribute).is_some()
        || MORE_ATTRIBUTES.contains(&(kind, attribute))
}

/// The properties that cannot change: with another value the resource is replaced.
#[must_use]
pub fn create_only_properties(kind: &str) -> Vec<&'static str> {
    let Some(schema) = SCHEMAS.get(kind) else { return Vec::new() };
    let list = schema["createOnly"].as_array().into_iter().flatten();
    let more = MORE_CREATE_ONLY.iter().filter(|(listed, _)| *listed == kind).map(|(_, property)| *property);
    // A path below a property concerns the whole property.
    list.filter_map(|path| path.as_str()?.split('/').next()).chain(more).collect()
}

/// What is wrong with a resource's properties, each with its position.
pub(super) fn check_properties(kind: &str, properties: &Value) -> Vec<(String, String)> {
    let Some(schema) = SCHEMAS.get(kind) else { return Vec::new() };
    let mut walk = PropertyWalk { schema, found: Vec::new() };
    let nothing = Value::Object(Map::new());
    let properties = if properties.is_null() { &nothing } else { properties };
    walk.value("", properties, schema);
    if let Some(entries) = properties.as_object() {
        for name in entries.keys() {
            let read_only = schema["readOnly"].as_array().into_iter().flatten().any(|listed| listed == name);
            if read_only {
                walk.note(&format!(".{name}"), "AWS sets this property; a template cannot".to_owned());
            }
        }
    }
    walk.found
}

struct PropertyWalk<'a> {
    schema: &'a Value,
    found: Vec<(String, String)>,
}

impl<'a> PropertyWalk<'a> {
    fn note(&mut self, position: &str, message: String) {
        self.found.push((position.to_owned(), message));
    }

    fn value(&mut self, position: &str, value: &Value, schema: &'a Value) {
        let schema = self.resolve(schema);
        // Only CloudFormation knows the value of a function.
        if is_function(value) {
            return;
        }
        if let Some(choices) = schema["enum"].as_array()
            && !choices.contains(value)
        {
            let words: Vec<String> =
                choices.iter().map(|choice| choice.to_string().replace('"', "")).collect();
            self.note(position, format!("{value} is not one of {}", words.join(", ")));
            return;
        }
        let kinds = list_types(schema);
        if !kinds.is_empty() && !kinds.iter().any(|kind| fits_type(kind, value)) {
            self.note(position, format!("expected {}, found {}", kinds.join(" or "), kind_of(value)));
            return;
        }
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{position}[{index}]"), item, &schema["items"]);
                }
            }
            Value::Object(entries) => self.object(position, entries, schema),
            _ => {}
        }
    }

    fn object(&mut self, position: &str, entries: &Map<String, Value>, schema: &'a Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, value) in entries {
            match properties.get(name) {
                Some(property) => self.value(&format!("{position}.{name}"), value, property),
                None if schema["additionalProperties"] == Value::Bool(false) => {
                    let near = nearest_word(name, properties.keys().map(String::as_str));
                    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                    self.note(&format!("{position}.{name}"), format!("there is no such property{near}"));
                }
                None => {}
            }
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !entries.contains_key(required) {
                self.note(position, format!("{required} is missing"));
            }
        }
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/definitions/")) {
            Some(name) => self.resolve(&self.schema["definitions"][name]),
            None => schema,
        }
    }
}

/// Whether CloudFormation computes the value: `Ref` or a function, alone in its object.
#[must_use]
pub fn is_function(value: &Value) -> bool {
    let entries = value.as_object().filter(|entries| entries.len() == 1);
    entries
        .and_then(|entries| entries.keys().next())
        .is_some_and(|key| key == "Ref" || key.starts_with("Fn::"))
}

fn list_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// CloudFormation takes numbers and booleans as texts too.
fn fits_type(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("string", Value::String(_) | Value::Number(_) | Value::Bool(_))
        | ("boolean", Value::Bool(_))
        | ("integer" | "number", Value::Number(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("boolean", Value::String(text)) => matches!(text.as_str(), "true" | "false"),
        ("integer", Value::String(text)) => text.parse::<i64>().is_ok(),
        ("number", Value::String(text)) => text.parse::<f64>().is_ok(),
        _ => false,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SCHEMAS, check_properties, has_attribute};

    #[test]
    fn the_schemas_are_there() {
        assert!(SCHEMAS.len() > 30, "{}", SCHEMAS.len());
        assert!(has_attribute("AWS::EC2::LaunchTemplate", "LatestVersionNumber"));
        assert!(!has_attribute("AWS::EC2::LaunchTemplate", "LatestVersion"));
    }

    #[test]
    fn mistakes_in_properties_are_found_where_they_are() {
        let found = check_properties(
            "AWS::EC2::Volume",
            &json!({"AvailabilityZne": "a", "Size": "big", "Encrypted": true}),
        );
        let text: Vec<String> =
            found.iter().map(|(position, message)| format!("{position} {message}")).collect();
        assert!(
            text.iter().any(|line| line
                .contains(".AvailabilityZne there is no such property; did you mean AvailabilityZone?")),
            "{text:?}"
        );
        assert!(text.iter().any(|line| line.contains(".Size expected integer, found a string")), "{text:?}");
    }
}
