//! Compares a document's tree with the JSON Schema of its type and records every difference.
//!
//! The schema is the one users get from `infra schema`, so an editor and this check agree. Meaning (does this network
//! overlap that one?) is not checked here.

use schemars::Schema;
use serde_json::{Map, Value};

use super::node::Node;
use super::suggestion::list_of_words;
use super::{At, Fault, Problems, nearest_word};

/// Records every unknown key, missing key, wrong kind of value and unknown choice in `tree`.
pub(super) fn check_structure(tree: &At<Node>, schema: &Schema, problems: &mut Problems) {
    let Some(root) = schema.as_object() else { return };
    if tree.value == Node::Null {
        problems.add(None, Fault::new("the file is empty"));
        return;
    }
    StructureWalk { root, problems }.value("the document", tree, root);
}

/// More problems than anyone fixes at once.
const MOST_PROBLEMS: usize = 100;

struct StructureWalk<'a> {
    root: &'a Map<String, Value>,
    problems: &'a mut Problems,
}

impl StructureWalk<'_> {
    fn value(&mut self, name: &str, found: &At<Node>, schema: &Map<String, Value>) {
        let schema = self.resolve(schema, &found.value).clone();
        if found.value == Node::Null {
            let fault = Fault::new(format!("'{name}' has no value"))
                .help("give it a value, or remove the line to get the default");
            self.problems.add(found.position, fault);
            return;
        }
        let choices = list_choices(&schema);
        if !choices.is_empty() {
            self.choice(name, found, &choices);
            return;
        }
        match (expected_kind(&schema), &found.value) {
            ("object", Node::Map(entries)) => self.map(found, entries, &schema),
            ("array", Node::List(items)) => {
                if let Some(Value::Object(item_schema)) = schema.get("items") {
                    for item in items {
                        self.value(name, item, item_schema);
                    }
                }
            }
            ("string", Node::Text(_))
            | ("boolean", Node::Bool(_))
            | ("number", Node::Integer(_) | Node::Float(_))
            | ("", _) => {}
            ("integer", Node::Integer(number)) => self.number(name, found, *number, &schema),
            (expected, _) => self.problems.add(found.position, wrong_kind(name, expected, &found.value)),
        }
    }

    fn map(&mut self, found: &At<Node>, entries: &[(At<String>, At<Node>)], schema: &Map<String, Value>) {
        let nothing = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
        let free_entries = schema.get("additionalProperties").and_then(Value::as_object);
        for (key, value) in entries {
            if self.problems.list().len() >= MOST_PROBLEMS {
                return;
            }
            match (properties.get(&key.value), free_entries) {
                (Some(Value::Object(property)), _) | (None, Some(property)) => {
                    self.value(&key.value, value, property);
                }
                _ => self.problems.add(key.position, unknown_key(&key.value, properties, schema)),
            }
        }
        for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let Some(required) = required.as_str() else { continue };
            if entries.iter().all(|(key, _)| key.value != required) {
                let description = properties.get(required).and_then(schema_description);
                let mut fault = Fault::new(format!("'{required}' is missing"));
                fault.help = description.map(|text| format!("{required}: {text}"));
                self.problems.add(found.position, fault);
            }
        }
    }

    fn number(&mut self, name: &str, found: &At<Node>, number: i128, schema: &Map<String, Value>) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64).map(i128::from);
        let (least, most) = (bound("minimum"), bound("maximum"));
        let fault = match (least, most) {
            (Some(least), Some(most)) if !(least..=most).contains(&number) => {
                format!("{name} is {number}, but must be from {least} to {most}")
            }
            (Some(least), None) if number < least => {
                format!("{name} is {number}, but must be at least {least}")
            }
            _ => return,
        };
        self.problems.add(found.position, Fault::new(fault));
    }

    fn choice(&mut self, name: &str, found: &At<Node>, choices: &[&str]) {
        let Node::Text(word) = &found.value else {
            self.problems.add(found.position, wrong_kind(name, "string", &found.value));
            return;
        };
        if choices.contains(&word.as_str()) {
            return;
        }
        let help = match nearest_word(word, choices.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("{name} is one of {}", choices.join(", ")),
        };
        self.problems
            .add(found.position, Fault::new(format!("'{word}' is not a value of {name}")).help(help));
    }

    /// The schema that applies to a value: references are followed, and of several forms the one of its kind is taken.
    fn resolve<'s>(&'s self, schema: &'s Map<String, Value>, found: &Node) -> &'s Map<String, Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.trim_start_matches("#/$defs/");
            let definition = self.root.get("$defs").and_then(|all| all.get(name)).and_then(Value::as_object);
            return definition.map_or(schema, |definition| self.resolve(definition, found));
        }
        // An optional value is "this or null"; null is refused before this is checked.
        let forms = schema.get("anyOf").and_then(Value::as_array);
        let forms = forms.into_iter().flatten().filter_map(Value::as_object);
        let forms = forms.filter(|form| form.get("type").and_then(Value::as_str) != Some("null"));
        let forms: Vec<_> = forms.map(|form| self.resolve(form, found)).collect();
        forms
            .iter()
            .find(|form| is_of_kind(found, expected_kind(form)))
            .or(forms.first())
            .copied()
            .unwrap_or(schema)
    }
}

/// Whether a value is of the kind that a schema asks for.
fn is_of_kind(found: &Node, kind: &str) -> bool {
    matches!(
        (kind, found),
        ("object", Node::Map(_))
            | ("array", Node::List(_))
            | ("string", Node::Text(_))
            | ("boolean", Node::Bool(_))
            | ("integer", Node::Integer(_))
            | ("number", Node::Integer(_) | Node::Float(_))
    )
}

/// The kind a schema asks for, leaving "or null" aside.
fn expected_kind(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    }
}

/// The words a schema allows, in either form that enumerations take.
fn list_choices(schema: &Map<String, Value>) -> Vec<&str> {
    let plain = schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let documented = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let documented = documented.filter_map(|option| option.get("const").and_then(Value::as_str));
    plain.chain(documented).collect()
}

fn schema_description(schema: &Value) -> Option<&str> {
    schema.get("description").and_then(Value::as_str).and_then(|text| text.lines().next())
}

/// A schema may carry, as `x-formerly`, keys that users know from elsewhere, with what replaces them.
fn unknown_key(key: &str, properties: &Map<String, Value>, schema: &Map<String, Value>) -> Fault {
    if let Some(now) = schema.get("x-formerly").and_then(|formerly| formerly.get(key)).and_then(Value::as_str)
    {
        return Fault::new(format!("unknown key '{key}'")).help(format!("that is {now} now"));
    }
    let help = match nearest_word(key, properties.keys().map(String::as_str)) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("keys here: {}", properties.keys().cloned().collect::<Vec<_>>().join(", ")),
    };
    Fault::new(format!("unknown key '{key}'")).help(help)
}

fn wrong_kind(name: &str, expected: &str, found: &Node) -> Fault {
    let wanted = match expected {
        "object" => "a section of 'key: value' lines",
        "array" => "a list",
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    };
    let fault = Fault::new(format!("{name} must be {wanted}, not {}", found.kind()));
    match (expected, found) {
        ("string", Node::Bool(_) | Node::Integer(_) | Node::Float(_)) => {
            fault.help("put it in quotes to make it text")
        }
        ("array", Node::Text(text)) => match list_of_words(text) {
            Some(list) => fault.help(format!("write {name}: {list}")),
            None => fault.help(format!("write {name}: [first, second], each item by itself")),
        },
        ("boolean", Node::Text(text)) if matches!(text.to_lowercase().as_str(), "yes" | "on" | "y") => {
            fault.help("write true")
        }
        ("boolean", Node::Text(text)) if matches!(text.to_lowercase().as_str(), "no" | "off" | "n") => {
            fault.help("write false")
        }
        _ => fault,
    }
}
