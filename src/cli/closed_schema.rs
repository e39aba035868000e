//! Makes a schema refuse what the program does not print: a field that it does not know is a mistake in one of the two.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value};

/// Closes every object of a schema.
pub(super) fn close_schema_objects(schema: &mut Schema) {
    share_fields(schema);
    transform_subschemas(&mut close_schema_objects, schema);
    forbid_null(schema);
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// A field that may be left out is left out rather than null.
fn forbid_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|list| list.iter().any(|one| one == name));
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for field in fields.filter(|(name, _)| !is_required(name)).filter_map(|(_, field)| field.as_object_mut())
    {
        if let Some(Value::Array(kinds)) = field.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [one] = kinds.as_slice() {
                let one = one.clone();
                field.insert("type".to_owned(), one);
            }
        }
        if let Some(Value::Array(choices)) = field.get_mut("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
        }
    }
}

/// An object that is one of several has their common fields beside the choice. Each choice gets them, first, and can be closed then.
fn share_fields(schema: &mut Schema) {
    let is_object = |choice: &Value| choice["properties"].is_object();
    let choices = schema.get("oneOf").and_then(Value::as_array);
    if schema.get("properties").is_none() || !choices.is_some_and(|all| all.iter().all(is_object)) {
        return;
    }
    let properties = schema.remove("properties").unwrap_or_default();
    let required = schema.remove("required").unwrap_or_default();
    let choices = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    for choice in choices.into_iter().flatten().filter_map(Value::as_object_mut) {
        let own = choice.remove("properties").unwrap_or_default();
        let (shared, own) = (properties.as_object().into_iter(), own.as_object().cloned().into_iter());
        let all: Map<String, Value> = shared.cloned().chain(own).flatten().collect();
        choice.insert("properties".to_owned(), Value::Object(all));
        let own = choice.remove("required").unwrap_or_default();
        let lists = [&required, &own].into_iter().filter_map(Value::as_array);
        choice.insert("required".to_owned(), lists.flatten().cloned().collect());
    }
}

#[cfg(test)]
mod tests {
    use schemars::json_schema;
    use serde_json::json;

    use super::close_schema_objects;

    #[test]
    fn every_object_is_closed_and_choices_share_the_fields_beside_them() {
        let mut schema = json_schema!({
            "type": "object",
            "properties": {"time": {"type": "string"}},
            "required": ["time"],
            "oneOf": [
                {"type": "object", "properties": {"type": {"const": "a"}}, "required": ["type"]},
                {"type": "object", "properties": {"inner": {"properties": {}}}},
            ],
        });
        close_schema_objects(&mut schema);
        assert_eq!(
            schema.to_value(),
            json!({
                "type": "object",
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"time": {"type": "string"}, "type": {"const": "a"}},
                        "required": ["time", "type"],
                        "additionalProperties": false,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "time": {"type": "string"},
                            "inner": {"properties": {}, "additionalProperties": false},
                        },
                        "required": ["time"],
                        "additionalProperties": false,
                    },
                ],
            })
        );
    }

    #[test]
    fn what_may_be_left_out_is_never_null() {
        let or_null = json!({"type": ["string", "null"]});
        let mut schema = json_schema!({
            "properties": {
                "always": or_null,
                "text": or_null,
                "section": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
            },
            "required": ["always"],
        });
        close_schema_objects(&mut schema);
        assert_eq!(
            schema.to_value()["properties"],
            json!({"always": or_null, "text": {"type": "string"}, "section": {"anyOf": [{"$ref": "#/$defs/A"}]}})
        );
    }

    #[test]
    fn what_has_no_fields_stays_open() {
        let mut schema = json_schema!({"type": "object", "additionalProperties": {"type": "string"}});
        let before = schema.clone();
        close_schema_objects(&mut schema);
        assert_eq!(schema, before);
    }
}
