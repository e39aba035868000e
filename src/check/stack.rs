//! A CloudFormation template: references, limits, and rules of this project that no schema knows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::finding::{AssetCheck, Finding};
use super::references::{References, references_in};
use super::schema::{check_properties, has_attribute, is_known_type, nearest_type};
use crate::blueprint::{Rule, Source};
use crate::render::{LARGEST_USER_DATA, StackTemplate};

/// CloudFormation's limits.
const LARGEST_TEMPLATE: usize = 1_000_000;
const MOST_RESOURCES: usize = 500;
const MOST_PARAMETERS: usize = 200;

const PSEUDO_PARAMETERS: [&str; 7] = [
    "AWS::AccountId",
    "AWS::NoValue",
    "AWS::Partition",
    "AWS::Region",
    "AWS::StackId",
    "AWS::StackName",
    "AWS::URLSuffix",
];

/// Actions that change something and for which AWS's own policies name no resource.
const UNBOUNDED_ACTIONS: [&str; 5] = [
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
];

/// Statements about resources whose names are not known beforehand: a tag limits them instead.
const LIMITED_BY_TAG: [&str; 5] = [
    "AutoscalerScalesThisCluster",
    "ChangeOwnLoadBalancers",
    "CreateListenersOfOwnLoadBalancers",
    "CreateLoadBalancersOfServices",
    "TagLoadBalancersAtCreation",
];

/// Checks one rendered stack against CloudFormation's schemas and limits, and against the table of who may talk to whom.
#[must_use]
pub fn check_stack(stack: &StackTemplate, rules: &[Rule]) -> Vec<Finding> {
    let mut check = AssetCheck::new(&stack.file.path);
    let bytes = &stack.file.bytes;
    if bytes.len() > LARGEST_TEMPLATE {
        check.note(
            "the template",
            format!("it has {} bytes, and CloudFormation allows {LARGEST_TEMPLATE}", bytes.len()),
        );
    }
    let document = stack.template.document();
    let section = |name: &str| document[name].as_object().cloned().unwrap_or_default();
    let (resources, parameters, outputs) = (section("Resources"), section("Parameters"), section("Outputs"));
    if resources.is_empty() {
        check.note("Resources", "there are none".to_owned());
        return check.findings;
    }
    for (name, found, most) in [
        ("Resources", resources.len(), MOST_RESOURCES),
        ("Parameters", parameters.len(), MOST_PARAMETERS),
        ("Outputs", outputs.len(), MOST_PARAMETERS),
    ] {
        if found > most {
            check.note(name, format!("there are {found}, and CloudFormation allows {most}"));
        }
    }
    for (name, resource) in &resources {
        check.resource(name, resource);
    }
    check.references(document, &resources, &parameters);
    check.cycles(&resources);
    check.mount_targets(&resources);
    check.security_rules(&resources, rules);
    check.findings
}

impl AssetCheck<'_> {
    fn resource(&mut self, name: &str, resource: &Value) {
        let kind = resource["Type"].as_str().unwrap_or_default();
        if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            self.note(name, "a logical id has letters and digits only".to_owned());
        }
        if !is_known_type(kind) {
            let near = nearest_type(kind).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.note(name, format!("'{kind}' is not a known resource type{near}"));
            return;
        }
        for (position, message) in check_properties(kind, &resource["Properties"]) {
            self.note(&format!("{name}{position}"), message);
        }
        match kind {
            "AWS::AutoScaling::AutoScalingGroup" => self.sizes(name, &resource["Properties"]),
            "AWS::EC2::LaunchTemplate" => self.user_data(name, &resource["Properties"]),
            "AWS::IAM::Role" | "AWS::IAM::Policy" | "AWS::IAM::ManagedPolicy" => {
                self.permissions(name, resource);
            }
            "AWS::EC2::Volume" | "AWS::EFS::FileSystem" => {
                for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
                    if !matches!(
                        resource[policy].as_str(),
                        Some("Retain" | "RetainExceptOnCreate" | "Snapshot")
                    ) {
                        self.note(name, format!("it holds data, but its {policy} would delete it"));
                    }
                }
            }
            _ => {}
        }
    }

    fn sizes(&mut self, name: &str, properties: &Value) {
        let number = |key: &str| match &properties[key] {
            Value::String(text) => text.parse::<u64>().ok(),
            other => other.as_u64(),
        };
        if let (Some(least), Some(most)) = (number("MinSize"), number("MaxSize"))
            && least > most
        {
            self.note(&format!("{name}.MinSize"), format!("{least} is more than MaxSize {most}"));
        }
    }

    fn user_data(&mut self, name: &str, properties: &Value) {
        let user_data = &properties["LaunchTemplateData"]["UserData"]["Fn::Base64"];
        let text = user_data["Fn::Sub"].as_str().or(user_data.as_str()).unwrap_or_default();
        if text.len() > LARGEST_USER_DATA {
            let position = format!("{name}.LaunchTemplateData.UserData");
            self.note(&position, format!("it has {} bytes, and EC2 allows {LARGEST_USER_DATA}", text.len()));
        }
    }

    /// No action with a wildcard, and no change to everything.
    fn permissions(&mut self, name: &str, resource: &Value) {
        let properties = &resource["Properties"];
        let inline =
            properties["Policies"].as_array().into_iter().flatten().map(|policy| &policy["PolicyDocument"]);
        let statements =
            inline.chain([&properties["PolicyDocument"]]).filter_map(|policy| policy["Statement"].as_array());
        for statement in statements.flatten().filter(|statement| statement["Effect"] == "Allow") {
            let sid = statement["Sid"].as_str().unwrap_or("a statement");
            let actions = collect_texts(&statement["Action"]);
            for action in actions.iter().filter(|action| action.contains('*')) {
                self.note(name, format!("{sid} allows {action}: name the actions that are needed"));
            }
            let is_harmless = |action: &&str| {
                let verb = action.split(':').nth(1).unwrap_or_default();
                UNBOUNDED_ACTIONS.contains(action)
                    || ["Describe", "Get", "List"].iter().any(|read| verb.starts_with(read))
            };
            let everything = collect_texts(&statement["Resource"]).contains(&"*");
            let is_limited = LIMITED_BY_TAG.contains(&sid) && names_tag(&statement["Condition"]);
            if everything && !is_limited && !actions.iter().all(is_harmless) {
                self.note(
                    name,
                    format!("{sid} may change every resource of the account: name the ones that it needs"),
                );
            }
        }
    }

    fn references(
        &mut self,
        document: &Value,
        resources: &Map<String, Value>,
        parameters: &Map<String, Value>,
    ) {
        let mut used = BTreeSet::new();
        for part in ["Conditions", "Resources", "Outputs"] {
            for (name, value) in document[part].as_object().into_iter().flatten() {
                let References { names, attributes } = references_in(value);
                for reference in &names {
                    let known = resources.contains_key(reference)
                        || parameters.contains_key(reference)
                        || PSEUDO_PARAMETERS.contains(&reference.as_str());
                    if !known {
                        self.note(
                            name,
                            format!(
                                "it refers to '{reference}', which is neither a resource nor a parameter"
                            ),
                        );
                    }
                }
                for (resource, attribute) in &attributes {
                    match resources.get(resource).map(|found| found["Type"].as_str().unwrap_or_default()) {
                        None => self.note(
                            name,
                            format!("it refers to '{resource}.{attribute}', but there is no such resource"),
                        ),
                        Some(kind) if is_known_type(kind) && !has_attribute(kind, attribute) => {
                            self.note(
                                name,
                                format!(
                                    "it refers to '{resource}.{attribute}', but {kind} has no such attribute"
                                ),
                            );
                        }
                        Some(_) => {}
                    }
                }
                used.extend(names);
            }
        }
        for (name, parameter) in parameters {
            if !used.contains(name) {
                self.note(name, "nothing uses this parameter".to_owned());
            }
            if parameter["Description"].as_str().is_none_or(str::is_empty) {
                self.note(name, "the parameter has no description".to_owned());
            }
        }
    }

    fn cycles(&mut self, resources: &Map<String, Value>) {
        let needs: BTreeMap<&str, BTreeSet<String>> = resources
            .iter()
            .map(|(name, value)| {
                let References { names, attributes } = references_in(value);
                let all = names.into_iter().chain(attributes.into_iter().map(|(resource, _)| resource));
                (name.as_str(), all.filter(|name| resources.contains_key(name)).collect())
            })
            .collect();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        // What is left when nothing more can be created depends on itself.
        loop {
            let ready: Vec<&str> = needs
                .iter()
                .filter(|(name, needed)| {
                    !done.contains(*name) && needed.iter().all(|needed| done.contains(needed.as_str()))
                })
                .map(|(name, _)| *name)
                .collect();
            if ready.is_empty() {
                break;
            }
            done.extend(ready);
        }
        let stuck: Vec<&str> = needs.keys().copied().filter(|name| !done.contains(name)).collect();
        if !stuck.is_empty() {
            self.note("Resources", format!("these depend on each other in a circle: {}", stuck.join(", ")));
        }
    }

    fn mount_targets(&mut self, resources: &Map<String, Value>) {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (name, resource) in
            resources.iter().filter(|(_, resource)| resource["Type"] == "AWS::EFS::MountTarget")
        {
            let subnet = resource["Properties"]["SubnetId"].to_string();
            if let Some(other) = seen.insert(subnet, name) {
                self.note(
                    name,
                    format!(
                        "{other} is in the same subnet; EFS allows one mount target per availability zone"
                    ),
                );
            }
        }
    }

    /// Rules are in the table and nowhere else.
    fn security_rules(&mut self, resources: &Map<String, Value>, rules: &[Rule]) {
        for (name, resource) in resources {
            let properties = &resource["Properties"];
            if resource["Type"] == "AWS::EC2::SecurityGroup" && properties["SecurityGroupIngress"].is_array()
            {
                self.note(
                    &format!("{name}.SecurityGroupIngress"),
                    "rules belong in the table of who may talk to whom".to_owned(),
                );
            }
            let (to, from) = match resource["Type"].as_str() {
                Some("AWS::EC2::SecurityGroupIngress") => ("GroupId", "SourceSecurityGroupId"),
                Some("AWS::EC2::SecurityGroupEgress") => ("DestinationSecurityGroupId", "GroupId"),
                _ => continue,
            };
            let is_group = |key: &str, resource: &str| refers_to_group(&properties[key], resource);
            let in_table = rules.iter().any(|rule| {
                let comes_from = match &rule.from {
                    Source::SecurityGroup(source) => is_group(from, source.resource()),
                    Source::Range(range) => properties["CidrIp"] == range.to_string(),
                };
                let ports = ["FromPort", "ToPort"].iter().all(|key| match rule.port {
                    Some(port) => properties[key] == port,
                    None => properties[key].is_null(),
                });
                comes_from
                    && ports
                    && is_group(to, rule.to.resource())
                    && properties["IpProtocol"] == rule.protocol.as_str()
            });
            if !in_table {
                self.note(name, "the table of who may talk to whom does not have this rule".to_owned());
            }
        }
    }
}

/// Whether a value is the id of this security group and refers to nothing else, in any form of reference.
fn refers_to_group(value: &Value, resource: &str) -> bool {
    let References { names, attributes } = references_in(value);
    let of_names = names.iter().map(|name| (name.as_str(), "GroupId"));
    let of_attributes = attributes.iter().map(|(name, attribute)| (name.as_str(), attribute.as_str()));
    let all: BTreeSet<(&str, &str)> = of_names.chain(of_attributes).collect();
    all.into_iter().eq([(resource, "GroupId")])
}

/// Whether a condition asks for a tag, of the request or of the resource.
fn names_tag(condition: &Value) -> bool {
    let equals = condition["StringEquals"].as_object();
    equals.is_some_and(|keys| {
        keys.keys().any(|key| key.starts_with("aws:RequestTag/") || key.starts_with("aws:ResourceTag/"))
    })
}

fn collect_texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::refers_to_group;

    #[test]
    fn a_security_group_is_seen_in_every_form_of_reference() {
        for good in [
            json!({"Fn::GetAtt": ["Nodes", "GroupId"]}),
            json!({"Fn::GetAtt": "Nodes.GroupId"}),
            json!({"Fn::Sub": "${Nodes.GroupId}"}),
            json!({"Ref": "Nodes"}),
        ] {
            assert!(refers_to_group(&good, "Nodes"), "{good}");
        }
        for bad in [
            json!({"Fn::GetAtt": "Others.GroupId"}),
            json!({"Fn::GetAtt": "Nodes.VpcId"}),
            json!({"Fn::Sub": "${Nodes.GroupId}${Others.GroupId}"}),
            json!("sg-0123456789abcdef0"),
        ] {
            assert!(!refers_to_group(&bad, "Nodes"), "{bad}");
        }
    }
}
