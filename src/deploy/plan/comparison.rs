//! Two versions of a stack's template into what changes: which resources, which properties, from what to what.
//!
//! All it knows about AWS is which properties cannot change without a replacement.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::template_values::evaluated_resources;
use crate::check::{create_only_properties, is_function, referenced_names};

/// What happens to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ResourceAction {
    /// The resource is created.
    Create,
    /// The resource is updated in place.
    Change,
    /// The resource is replaced by a new one.
    Replace,
    /// The resource is deleted.
    Delete,
}

/// What happens to one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceChange {
    /// The name of the resource in the template.
    pub logical_id: String,
    /// The CloudFormation type of the resource.
    pub kind: String,
    /// What happens to the resource.
    pub action: ResourceAction,
    /// The properties that change.
    pub properties: Vec<PropertyChange>,
}

/// A property with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PropertyChange {
    /// The path of the property in the resource, as `Tags[Name]`; for a tag of the stack, its key.
    pub path: String,
    /// The old value; null if there was none.
    pub from: Option<Value>,
    /// The new value; null if there will be none.
    pub to: Option<Value>,
    /// Whether this change alone replaces the resource.
    pub replaces: bool,
}

/// A template and the values of its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    /// The template.
    pub template: &'a Value,
    /// The parameters.
    pub parameters: &'a BTreeMap<String, String>,
}

/// Parts of a resource besides its properties that make a difference to CloudFormation.
const ATTRIBUTES: [&str; 4] = ["CreationPolicy", "DeletionPolicy", "UpdatePolicy", "UpdateReplacePolicy"];

/// What changes from one version to another; without an old one everything is created.
#[must_use]
pub(crate) fn compare_stacks(old: Option<Version<'_>>, new: Version<'_>) -> Vec<ResourceChange> {
    let before = old.map(|old| evaluated_resources(old.template, old.parameters)).unwrap_or_default();
    let after = evaluated_resources(new.template, new.parameters);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes: Vec<ResourceChange> = names
        .into_iter()
        .filter_map(|name| compare_resource(name, before.get(name), after.get(name)))
        .collect();
    spread_replacements(&mut changes, &after);
    changes
}

fn compare_resource(name: &str, before: Option<&Value>, after: Option<&Value>) -> Option<ResourceChange> {
    let kind = after.or(before).and_then(|resource| resource["Type"].as_str()).unwrap_or_default();
    let change = |action, properties| ResourceChange {
        logical_id: name.to_owned(),
        kind: kind.to_owned(),
        action,
        properties,
    };
    let (before, after) = match (before, after) {
        (None, _) => return Some(change(ResourceAction::Create, Vec::new())),
        (_, None) => return Some(change(ResourceAction::Delete, Vec::new())),
        (Some(before), Some(after)) => (before, after),
    };
    let mut properties = Vec::new();
    compare_values("", &before["Properties"], &after["Properties"], &mut properties);
    for attribute in ATTRIBUTES {
        compare_values(attribute, &before[attribute], &after[attribute], &mut properties);
    }
    let fixed = create_only_properties(kind);
    for property in &mut properties {
        let first = property.path.split(['.', '[']).next().unwrap_or_default();
        property.replaces = fixed.contains(&first);
    }
    // A resource of another type is another resource, even under the same name.
    let other_type = before["Type"] != after["Type"];
    if other_type || properties.iter().any(|property| property.replaces) {
        Some(change(ResourceAction::Replace, properties))
    } else if properties.is_empty() {
        None
    } else {
        Some(change(ResourceAction::Change, properties))
    }
}

/// A resource that names a replaced one in a property that cannot change is replaced with it.
fn spread_replacements(changes: &mut Vec<ResourceChange>, after: &BTreeMap<String, Value>) {
    loop {
        let replaced: BTreeSet<String> = changes
            .iter()
            .filter(|change| change.action == ResourceAction::Replace)
            .map(|change| change.logical_id.clone())
            .collect();
        let mut grew = false;
        for (name, resource) in after.iter().filter(|(name, _)| !replaced.contains(*name)) {
            let kind = resource["Type"].as_str().unwrap_or_default();
            let culprits: Vec<PropertyChange> = create_only_properties(kind)
                .into_iter()
                .filter(|property| {
                    !referenced_names(&resource["Properties"][property]).is_disjoint(&replaced)
                })
                .map(|property| PropertyChange {
                    path: property.to_owned(),
                    from: None,
                    to: Some(resource["Properties"][property].clone()),
                    replaces: true,
                })
                .collect();
            if culprits.is_empty()
                || changes
                    .iter()
                    .any(|change| change.logical_id == *name && change.action == ResourceAction::Create)
            {
                continue;
            }
            grew = true;
            match changes.iter_mut().find(|change| change.logical_id == *name) {
                Some(change) => {
                    change.action = ResourceAction::Replace;
                    change.properties.extend(culprits);
                }
                None => changes.push(ResourceChange {
                    logical_id: name.clone(),
                    kind: kind.to_owned(),
                    action: ResourceAction::Replace,
                    properties: culprits,
                }),
            }
        }
        if !grew {
            return;
        }
    }
}

fn compare_values(path: &str, before: &Value, after: &Value, found: &mut Vec<PropertyChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        // A reference is one value, however it is written.
        (Value::Object(old), Value::Object(new)) if !is_function(before) && !is_function(after) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let value = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare_values(&inner, &value(old), &value(new), found);
            }
        }
        (Value::Array(old), Value::Array(new)) => compare_lists(path, old, new, found),
        _ => found.push(PropertyChange {
            path: path.to_owned(),
            from: (!before.is_null()).then(|| before.clone()),
            to: (!after.is_null()).then(|| after.clone()),
            replaces: false,
        }),
    }
}

/// Lists of things with a key are compared by key; others element by element.
fn compare_lists(path: &str, old: &[Value], new: &[Value], found: &mut Vec<PropertyChange>) {
    let keyed = |list: &[Value]| {
        let pairs = list.iter().map(|item| Some((item["Key"].as_str()?.to_owned(), item.clone())));
        pairs.collect::<Option<BTreeMap<String, Value>>>()
    };
    if let (Some(old), Some(new)) = (keyed(old), keyed(new)) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let value = |map: &BTreeMap<String, Value>| {
                map.get(key).map(|item| item["Value"].clone()).unwrap_or_default()
            };
            compare_values(&format!("{path}[{key}]"), &value(&old), &value(&new), found);
        }
        return;
    }
    for index in 0..old.len().max(new.len()) {
        let value = |list: &[Value]| list.get(index).cloned().unwrap_or_default();
        compare_values(&format!("{path}[{index}]"), &value(old), &value(new), found);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{ResourceAction, Version, compare_stacks};

    fn changes(old: &Value, new: &Value) -> Vec<(String, ResourceAction, Vec<String>)> {
        let nothing = BTreeMap::new();
        let version = |template| Version { template, parameters: &nothing };
        let list = compare_stacks(Some(version(old)), version(new)).into_iter();
        list.map(|change| {
            let paths = change.properties.into_iter().map(|property| property.path).collect();
            (change.logical_id, change.action, paths)
        })
        .collect()
    }

    fn subnet(range: &str) -> Value {
        json!({"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": range}})
    }

    #[test]
    fn created_changed_and_deleted_resources_are_distinguished() {
        let old = json!({"Resources": {"A": {"Type": "T"}, "B": {"Type": "T"}}});
        let new = json!({"Resources": {"B": {"Type": "T"}, "C": {"Type": "T"}}});
        let expected = [
            ("A".to_owned(), ResourceAction::Delete, vec![]),
            ("C".to_owned(), ResourceAction::Create, vec![]),
        ];
        assert_eq!(changes(&old, &new), expected);
    }

    #[test]
    fn a_property_that_cannot_change_replaces_its_resource_and_the_dependents() {
        let target = json!({"Type": "AWS::EFS::MountTarget", "Properties": {"SubnetId": {"Ref": "Subnet"}}});
        let old = json!({"Resources": {"Subnet": subnet("10.0.0.0/24"), "Target": target}});
        let new = json!({"Resources": {"Subnet": subnet("10.0.1.0/24"), "Target": target}});
        let expected = [
            ("Subnet".to_owned(), ResourceAction::Replace, vec!["CidrBlock".to_owned()]),
            ("Target".to_owned(), ResourceAction::Replace, vec!["SubnetId".to_owned()]),
        ];
        assert_eq!(changes(&old, &new), expected);
    }

    #[test]
    fn every_form_of_reference_to_what_is_replaced_replaces_too() {
        let forms = [
            json!({"Ref": "Subnet"}),
            json!({"Fn::GetAtt": ["Subnet", "SubnetId"]}),
            json!({"Fn::GetAtt": "Subnet.SubnetId"}),
            json!({"Fn::Sub": "${Subnet}"}),
            json!({"Fn::Sub": "${Subnet.SubnetId}"}),
            json!({"Fn::Sub": ["${Subnet}${x}", {"x": ""}]}),
            json!({"Fn::Sub": ["${own}", {"own": {"Fn::GetAtt": "Subnet.SubnetId"}}]}),
        ];
        for form in forms {
            let target = json!({"Type": "AWS::EFS::MountTarget", "Properties": {"SubnetId": form}});
            let old = json!({"Resources": {"Subnet": subnet("10.0.0.0/24"), "Target": target}});
            let new = json!({"Resources": {"Subnet": subnet("10.0.1.0/24"), "Target": target}});
            let found = changes(&old, &new);
            assert_eq!(found.len(), 2, "{form}: {found:?}");
            assert_eq!(found[1].1, ResourceAction::Replace, "{form}");
        }
        let own_name = json!({"Fn::Sub": ["${Subnet}", {"Subnet": "x"}]});
        let target = json!({"Type": "AWS::EFS::MountTarget", "Properties": {"SubnetId": own_name}});
        let old = json!({"Resources": {"Subnet": subnet("10.0.0.0/24"), "Target": target}});
        let new = json!({"Resources": {"Subnet": subnet("10.0.1.0/24"), "Target": target}});
        assert_eq!(changes(&old, &new).len(), 1, "a name of its own is no reference");
    }

    #[test]
    fn tags_are_compared_by_key_and_references_as_a_whole() {
        let group = |count: &str, image: Value| {
            json!({"Resources": {"Nodes": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": {
                "Tags": [{"Key": "infra:count", "Value": count}, {"Key": "Name", "Value": "x"}], "Image": image}}}})
        };
        let found = changes(&group("1", json!({"Ref": "A"})), &group("2", json!({"Fn::GetAtt": ["B", "C"]})));
        assert_eq!(found[0].2, ["Image", "Tags[infra:count]"]);
    }

    #[test]
    fn a_parameter_with_another_value_is_a_change_where_it_is_used() {
        let template = json!({"Resources": {"V": {"Type": "AWS::EC2::Volume", "Properties": {"AvailabilityZone": {"Ref": "Zone"}}}}});
        let with = |zone: &str| BTreeMap::from([("Zone".to_owned(), zone.to_owned())]);
        let (old, new) = (with("a"), with("b"));
        let found = compare_stacks(
            Some(Version { template: &template, parameters: &old }),
            Version { template: &template, parameters: &new },
        );
        assert_eq!(found[0].action, ResourceAction::Replace);
        assert_eq!(found[0].properties[0].from, Some("a".into()));
    }
}
