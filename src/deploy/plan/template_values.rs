//! A template's resources with the values of its parameters put in, so that two of them can be compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Every resource that the template creates with these parameters, by its name.
#[must_use]
pub(crate) fn evaluated_resources(
    template: &Value,
    parameters: &BTreeMap<String, String>,
) -> BTreeMap<String, Value> {
    let Some(all) = template["Resources"].as_object() else { return BTreeMap::new() };
    let wanted = all.iter().filter(|(_, resource)| match resource["Condition"].as_str() {
        Some(condition) => holds_value(&template["Conditions"][condition], parameters),
        None => true,
    });
    let conditions = &template["Conditions"];
    wanted
        .map(|(name, resource)| {
            (name.clone(), fill_in(&evaluate_conditions(resource, conditions, parameters), parameters))
        })
        .collect()
}

/// infra's templates have no condition but the comparison of two values, and its opposite.
fn holds_value(condition: &Value, parameters: &BTreeMap<String, String>) -> bool {
    if let Some([opposite]) = condition["Fn::Not"].as_array().map(Vec::as_slice) {
        return !holds_value(opposite, parameters);
    }
    match condition["Fn::Equals"].as_array().map(Vec::as_slice) {
        Some([one, other]) => fill_in(one, parameters) == fill_in(other, parameters),
        _ => true,
    }
}

/// A value with one of the two of each `Fn::If`; a property that has no value is none.
fn evaluate_conditions(value: &Value, conditions: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(entries) => {
            if let Some([Value::String(condition), yes, no]) =
                only_entry(entries, "Fn::If").and_then(Value::as_array).map(Vec::as_slice)
            {
                let holds = holds_value(&conditions[condition], parameters);
                return evaluate_conditions(if holds { yes } else { no }, conditions, parameters);
            }
            let chosen = entries
                .iter()
                .map(|(key, value)| (key.clone(), evaluate_conditions(value, conditions, parameters)));
            chosen.filter(|(_, value)| *value != json!({"Ref": "AWS::NoValue"})).collect()
        }
        Value::Array(items) => {
            items.iter().map(|item| evaluate_conditions(item, conditions, parameters)).collect()
        }
        other => other.clone(),
    }
}

fn fill_in(value: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(entries) => {
            if let Some(text) = only_entry(entries, "Ref").and_then(Value::as_str)
                && let Some(found) = parameters.get(text)
            {
                return Value::String(found.clone());
            }
            match only_entry(entries, "Fn::Sub") {
                Some(Value::String(text)) => {
                    return json!({ "Fn::Sub": substitute_text(text, parameters, None) });
                }
                Some(Value::Array(parts)) => {
                    if let [Value::String(text), own] = parts.as_slice() {
                        let text = substitute_text(text, parameters, own.as_object());
                        return json!({ "Fn::Sub": [text, fill_in(own, parameters)] });
                    }
                }
                _ => {}
            }
            entries.iter().map(|(key, value)| (key.clone(), fill_in(value, parameters))).collect()
        }
        Value::Array(items) => items.iter().map(|item| fill_in(item, parameters)).collect(),
        other => other.clone(),
    }
}

/// The text with the values of parameters; names of the substitution's own hide them.
fn substitute_text(
    text: &str,
    parameters: &BTreeMap<String, String>,
    own: Option<&Map<String, Value>>,
) -> String {
    let mut filled = text.to_owned();
    let hidden = |name: &String| own.is_some_and(|own| own.contains_key(name));
    for (name, value) in parameters.iter().filter(|(name, _)| !hidden(name)) {
        filled = filled.replace(&format!("${{{name}}}"), value);
    }
    filled
}

fn only_entry<'a>(entries: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if entries.len() == 1 { entries.get(key) } else { None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::evaluated_resources;

    #[test]
    fn parameters_are_inserted_and_conditions_evaluated() {
        let template = json!({
            "Conditions": {"IsMissing": {"Fn::Equals": [{"Ref": "Missing"}, "true"]}},
            "Resources": {
                "Target": {"Condition": "IsMissing", "Properties": {"SubnetId": {"Ref": "SubnetId"}}},
                "Record": {"Properties": {"Name": {"Fn::Sub": "a.${SubnetId}.${AWS::Region}"}, "Zone": {"Ref": "Zone"}}},
            },
        });
        let parameters = |missing: &str| {
            BTreeMap::from([
                ("Missing".to_owned(), missing.to_owned()),
                ("SubnetId".to_owned(), "subnet-1".to_owned()),
            ])
        };
        let with = evaluated_resources(&template, &parameters("true"));
        assert_eq!(with["Target"]["Properties"]["SubnetId"], "subnet-1");
        assert_eq!(with["Record"]["Properties"]["Name"]["Fn::Sub"], "a.subnet-1.${AWS::Region}");
        assert_eq!(with["Record"]["Properties"]["Zone"], json!({"Ref": "Zone"}));
        assert!(!evaluated_resources(&template, &parameters("false")).contains_key("Target"));
    }

    #[test]
    fn a_condition_chooses_one_of_two_values() {
        let template = json!({
            "Conditions": {"HasBlock": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Ends"}, ""]}]}},
            "Resources": {
                "Ends": {"Condition": "HasBlock", "Properties": {}},
                "Launch": {"Properties": {"Data": {
                    "Market": {"Fn::If": ["HasBlock", {"Type": {"Ref": "Ends"}}, {"Ref": "AWS::NoValue"}]},
                }}},
            },
        });
        let of = |ends: &str| {
            evaluated_resources(&template, &BTreeMap::from([("Ends".to_owned(), ends.to_owned())]))
        };
        let block = of("50 10 20 11 *");
        assert!(block.contains_key("Ends"));
        assert_eq!(block["Launch"]["Properties"]["Data"], json!({"Market": {"Type": "50 10 20 11 *"}}));
        let ordinary = of("");
        assert!(!ordinary.contains_key("Ends"));
        assert_eq!(ordinary["Launch"]["Properties"]["Data"], json!({}));
    }

    #[test]
    fn parameters_are_inserted_into_both_forms_of_a_substitution() {
        let template = json!({"Resources": {"Record": {
            "Properties": {"Name": {"Fn::Sub": ["${Zone}.${Own}.${Other}", {"Own": {"Ref": "Zone"}, "Other": "x"}]}},
        }}});
        let parameters =
            BTreeMap::from([("Zone", "a"), ("Other", "b")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let filled = &evaluated_resources(&template, &parameters)["Record"]["Properties"]["Name"]["Fn::Sub"];
        assert_eq!(
            *filled,
            json!(["a.${Own}.${Other}", {"Own": "a", "Other": "x"}]),
            "its own names hide parameters"
        );
    }
}
