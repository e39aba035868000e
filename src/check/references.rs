//! What a part of a CloudFormation template refers to.

use std::collections::BTreeSet;

use serde_json::Value;

/// Resources and parameters by name, and attributes of resources.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    pub(super) names: BTreeSet<String>,
    pub(super) attributes: BTreeSet<(String, String)>,
}

/// Every reference in a value, however deep: `Ref`, `Fn::GetAtt`, `Fn::Sub` and `DependsOn`.
pub(super) fn references_in(value: &Value) -> References {
    let mut references = References::default();
    collect_references(value, &mut references);
    references
}

/// The names of all resources and parameters that a value refers to, in any form.
#[must_use]
pub fn referenced_names(value: &Value) -> BTreeSet<String> {
    let References { mut names, attributes } = references_in(value);
    names.extend(attributes.into_iter().map(|(resource, _)| resource));
    names
}

fn collect_references(value: &Value, references: &mut References) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, references)),
        Value::Object(entries) => {
            for (key, entry) in entries {
                match key.as_str() {
                    "Ref" => references.names.extend(entry.as_str().map(str::to_owned)),
                    "DependsOn" => {
                        let several = entry.as_array().into_iter().flatten().filter_map(Value::as_str);
                        references.names.extend(entry.as_str().into_iter().chain(several).map(str::to_owned));
                    }
                    "Fn::GetAtt" => collect_attribute(entry, references),
                    "Fn::Sub" => collect_substitutions(entry, references),
                    _ => collect_references(entry, references),
                }
            }
        }
        _ => {}
    }
}

fn collect_attribute(entry: &Value, references: &mut References) {
    let pair = match entry {
        Value::String(text) => {
            text.split_once('.').map(|(resource, attribute)| (resource.to_owned(), attribute.to_owned()))
        }
        Value::Array(parts) => match parts.as_slice() {
            [Value::String(resource), Value::String(attribute)] => {
                Some((resource.clone(), attribute.clone()))
            }
            // A parameter may name the attribute.
            [Value::String(resource), attribute] => {
                references.names.insert(resource.clone());
                collect_references(attribute, references);
                None
            }
            _ => None,
        },
        _ => None,
    };
    references.attributes.extend(pair);
}

fn collect_substitutions(entry: &Value, references: &mut References) {
    let (text, own) = match entry {
        Value::Array(parts) => (parts.first().and_then(Value::as_str).unwrap_or_default(), parts.get(1)),
        other => (other.as_str().unwrap_or_default(), None),
    };
    if let Some(own) = own {
        collect_references(own, references);
    }
    for part in text.split("${").skip(1) {
        let Some((name, _)) = part.split_once('}') else { continue };
        let local = own.is_some_and(|own| own.get(name).is_some());
        if local || name.starts_with('!') {
            continue;
        }
        match name.split_once('.') {
            Some((resource, attribute)) => {
                references.attributes.insert((resource.to_owned(), attribute.to_owned()));
            }
            None => {
                references.names.insert(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::references_in;

    #[test]
    fn every_form_of_reference_is_seen() {
        let found = references_in(&json!({
            "DependsOn": ["A", "B"],
            "Properties": {
                "x": {"Ref": "C"},
                "y": [{"Fn::GetAtt": ["D", "Arn"]}, {"Fn::GetAtt": "E.Name.Part"}, {"Fn::GetAtt": ["L", {"Ref": "M"}]}],
                "z": {"Fn::Sub": "${F}-${G.Arn}-${!H}-${AWS::Region}"},
                "w": {"Fn::Sub": ["${I}-${J}", {"I": {"Ref": "K"}}]},
            },
        }));
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(names, ["A", "AWS::Region", "B", "C", "F", "J", "K", "L", "M"]);
        let attributes: Vec<String> = found.attributes.iter().map(|(r, a)| format!("{r}.{a}")).collect();
        assert_eq!(attributes, ["D.Arn", "E.Name.Part", "G.Arn"]);
    }
}
