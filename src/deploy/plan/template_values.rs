//! A template's resources with the values of its parameters put in, so that two of them can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Every resource that the template makes with these parameters, by its name.
#[must_use]
pub fn resources(template: &Value, parameters: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let Some(all) = template["Resources"].as_object() else { return BTreeMap::new() };
    let wanted = all.iter().filter(|(_, resource)| match resource["Condition"].as_str() {
        Some(condition) => holds(&template["Conditions"][condition], parameters),
        None => true,
    });
    wanted.map(|(name, resource)| (name.clone(), fill(resource, parameters))).collect()
}

/// Names of resources that a value mentions by `Ref`, `Fn::GetAtt` or `Fn::Sub`.
#[must_use]
pub fn mentioned(value: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect_mentioned(value, &mut names);
    names
}

/// Our templates have no condition but the comparison of two values.
fn holds(condition: &Value, parameters: &BTreeMap<String, String>) -> bool {
    match condition["Fn::Equals"].as_array().map(Vec::as_slice) {
        Some([one, other]) => fill(one, parameters) == fill(other, parameters),
        _ => true,
    }
}

fn fill(value: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(entries) => {
            if let Some(text) = single(entries, "Ref").and_then(Value::as_str)
                && let Some(found) = parameters.get(text)
            {
                return Value::String(found.clone());
            }
            if let Some(Value::String(text)) = single(entries, "Fn::Sub") {
                return serde_json::json!({ "Fn::Sub": substitute(text, parameters) });
            }
            entries.iter().map(|(key, value)| (key.clone(), fill(value, parameters))).collect()
        }
        Value::Array(items) => items.iter().map(|item| fill(item, parameters)).collect(),
        other => other.clone(),
    }
}

fn substitute(text: &str, parameters: &BTreeMap<String, String>) -> String {
    let mut filled = text.to_owned();
    for (name, value) in parameters {
        filled = filled.replace(&format!("${{{name}}}"), value);
    }
    filled
}

fn single<'a>(entries: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if entries.len() == 1 { entries.get(key) } else { None }
}

fn collect_mentioned(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            for (key, inner) in entries {
                match (key.as_str(), inner) {
                    ("Ref", Value::String(name)) => drop(names.insert(name.clone())),
                    ("Fn::GetAtt", Value::Array(parts)) => {
                        names.extend(parts.first().and_then(Value::as_str).map(str::to_owned));
                    }
                    ("Fn::Sub", Value::String(text)) => {
                        names.extend(text.split("${").skip(1).filter_map(|rest| {
                            let name = rest.split(['}', '.']).next()?;
                            Some(name.to_owned())
                        }));
                    }
                    _ => collect_mentioned(inner, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_mentioned(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{mentioned, resources};

    #[test]
    fn parameters_are_put_in_and_conditions_looked_at() {
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
        let with = resources(&template, &parameters("true"));
        assert_eq!(with["Target"]["Properties"]["SubnetId"], "subnet-1");
        assert_eq!(with["Record"]["Properties"]["Name"]["Fn::Sub"], "a.subnet-1.${AWS::Region}");
        assert_eq!(with["Record"]["Properties"]["Zone"], json!({"Ref": "Zone"}));
        assert!(!resources(&template, &parameters("false")).contains_key("Target"));
    }

    #[test]
    fn every_way_to_mention_a_resource_counts() {
        let value = json!([{"Ref": "A"}, {"Fn::GetAtt": ["B", "Arn"]}, {"x": {"Fn::Sub": "${C}-${D.Arn}"}}]);
        assert_eq!(mentioned(&value).into_iter().collect::<Vec<_>>(), ["A", "B", "C", "D"]);
    }
}
