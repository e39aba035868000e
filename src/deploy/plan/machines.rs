//! Which machines a plan creates, replaces and terminates, from the Auto Scaling groups and launch templates of both versions.
//!
//! All it knows about AWS is which changes of an Auto Scaling group its update policy answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::comparison::{PropertyChange, ResourceAction, ResourceChange};
use super::template_values::evaluated_resources;
use super::{Plan, StackAction, StackPlan};
use crate::aws::AUTO_SCALING_GROUP_TYPE;
use crate::blueprint::{Role, StackPart};
use crate::check::referenced_names;
use crate::deploy::event::{MachineAction, MachineChange};
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_hold::Hold;
use crate::well_known::ROLE_TAG;

const LAUNCH_TEMPLATE_TYPE: &str = "AWS::EC2::LaunchTemplate";
/// The properties whose change makes CloudFormation replace the machines of an Auto Scaling group with an update policy.
const REPLACING_PROPERTIES: [&str; 4] =
    ["LaunchTemplate", "MixedInstancesPolicy", "PlacementGroup", "VPCZoneIdentifier"];

/// What happens to machines, stack by stack.
#[must_use]
pub(super) fn find_machine_changes(
    plan: &Plan,
    desired: &[DesiredStack],
    live: &LiveCluster,
) -> Vec<MachineChange> {
    let outputs = live.outputs();
    let of = |stack: &StackPlan| desired.iter().find(|desired| desired.part == stack.part);
    let is_released = |stack: &StackPlan| of(stack).is_some_and(|stack| stack.hold(live) == Hold::Released);
    let changing =
        plan.stacks.iter().filter(|stack| stack.action != StackAction::Unchanged || is_released(stack));
    let changes = changing.flat_map(|stack| {
        let is_new = matches!(stack.action, StackAction::Create | StackAction::Recreate);
        let old = live.stacks.get(&stack.part).filter(|_| !is_new);
        let new = of(stack);
        let before = old.map(|live| evaluated_resources(live.template(), &live.stack.parameters));
        let after = new.map(|desired| {
            let parameters = desired.parameters(&outputs).unwrap_or_else(|_| desired.given.clone());
            evaluated_resources(desired.template.document(), &parameters)
        });
        let versions = StackVersions {
            stack,
            before: before.unwrap_or_default(),
            after: after.unwrap_or_default(),
            set_size: new.and_then(|new| size_set_by_clock(new, live)),
        };
        versions.machine_changes(live)
    });
    changes.collect()
}

/// A stack with the resources of both versions, parameters put in.
struct StackVersions<'a> {
    stack: &'a StackPlan,
    before: BTreeMap<String, Value>,
    after: BTreeMap<String, Value>,
    /// How many machines a pool has afterwards, if the clock holds it, or held it until now.
    set_size: Option<u32>,
}

fn size_set_by_clock(desired: &DesiredStack, live: &LiveCluster) -> Option<u32> {
    let size = desired.pool_size().filter(|size| desired.hold(live) != Hold::Free || size.has_block())?;
    Some(size.machines(live.pool_group(size.pool())))
}

impl StackVersions<'_> {
    fn machine_changes(&self, live: &LiveCluster) -> Vec<MachineChange> {
        let names: BTreeSet<&String> = self.before.keys().chain(self.after.keys()).collect();
        let changes = names.into_iter().flat_map(|name| self.changes_of_group(name, live));
        let mut changes: Vec<MachineChange> = changes.collect();
        changes.sort_by(|one, other| one.role.cmp(&other.role));
        changes
    }

    fn changes_of_group(&self, name: &str, live: &LiveCluster) -> Vec<MachineChange> {
        let (before, after) = (self.before.get(name), self.after.get(name));
        let Some(role) = after.or(before).and_then(|group| self.role_of(group)) else { return Vec::new() };
        let size =
            |group: &Value| template_number(&group["Properties"]["DesiredCapacity"]).unwrap_or_default();
        let now = before
            .map_or(0, |group| live.group_of_role(&role).map_or_else(|| size(group), |group| group.desired));
        let later = match (before, after) {
            (_, None) => 0,
            (None, Some(group)) => size(group),
            (Some(old), Some(new)) => {
                self.set_size.unwrap_or_else(|| later_size(now, &old["Properties"], &new["Properties"]))
            }
        };
        let kept = now.min(later);
        let behind = self.resources_behind(name, after);
        let found = [
            (kept, after.and_then(|group| self.replacement(name, group))),
            (later.saturating_sub(now), Some(MachineAction::Create)),
            (now.saturating_sub(later), Some(MachineAction::Terminate)),
        ];
        let found = found.into_iter().filter(|(machines, _)| *machines > 0);
        let change = |(machines, change): (u32, Option<MachineAction>)| {
            Some(MachineChange { role: role.clone(), machines, change: change?, resources: behind.clone() })
        };
        found.filter_map(change).collect()
    }

    /// The role of the machines of an Auto Scaling group; none for any other resource.
    fn role_of(&self, group: &Value) -> Option<Role> {
        if group["Type"] != AUTO_SCALING_GROUP_TYPE {
            return None;
        }
        if let StackPart::Pool(name) = &self.stack.part {
            return Some(Role::Pool(name.clone()));
        }
        let tags = group["Properties"]["Tags"].as_array()?;
        Role::from_name(tags.iter().find(|tag| tag["Key"] == ROLE_TAG)?["Value"].as_str()?)
    }

    /// The Auto Scaling group and what its machines are launched from.
    fn resources_behind(&self, name: &str, group: Option<&Value>) -> BTreeSet<String> {
        let templates = group.map(|group| self.launch_templates(group)).unwrap_or_default();
        templates.into_iter().chain([name.to_owned()]).collect()
    }

    fn launch_templates(&self, group: &Value) -> BTreeSet<String> {
        let is_template =
            |name: &String| self.after.get(name).is_some_and(|named| named["Type"] == LAUNCH_TEMPLATE_TYPE);
        let properties = &group["Properties"];
        let names = ["LaunchTemplate", "MixedInstancesPolicy"].map(|key| referenced_names(&properties[key]));
        names.into_iter().flatten().filter(is_template).collect()
    }

    /// What happens to the machines that the Auto Scaling group keeps in number.
    fn replacement(&self, name: &str, group: &Value) -> Option<MachineAction> {
        let change = self.change_of(name);
        if change.is_some_and(|change| change.action == ResourceAction::Replace) {
            return Some(MachineAction::ReplaceGroup);
        }
        let is_outdated = self.launch_templates(group).iter().any(|template| self.is_new_version(template));
        let is_answered = is_outdated
            || change.is_some_and(|change| {
                REPLACING_PROPERTIES
                    .iter()
                    .any(|property| changes_below_property(change, property).next().is_some())
            });
        let policy = &group["UpdatePolicy"];
        if policy["AutoScalingReplacingUpdate"]["WillReplace"] == true {
            return is_answered.then_some(MachineAction::ReplaceGroup);
        }
        let rolling = &policy["AutoScalingRollingUpdate"];
        if rolling.is_object() {
            let at_once = template_number(&rolling["MaxBatchSize"]).unwrap_or(1);
            let in_service = template_number(&rolling["MinInstancesInService"]).unwrap_or(0);
            return is_answered.then_some(MachineAction::Replace { at_once, in_service });
        }
        if change.is_some_and(terminates_unfitting_machines) {
            return Some(MachineAction::ReplaceUnfitting);
        }
        is_outdated.then_some(MachineAction::StayOutdated)
    }

    /// Whether machines launched from now on come from another launch template, or another version of it. What names a replaced
    /// resource gets another value.
    fn is_new_version(&self, template: &str) -> bool {
        let own = self.change_of(template).is_some_and(|change| {
            matches!(change.action, ResourceAction::Replace | ResourceAction::Create)
                || changes_below_property(change, "LaunchTemplateData").next().is_some()
        });
        let named = referenced_names(&self.after[template]["Properties"]["LaunchTemplateData"]);
        own || named
            .iter()
            .any(|name| self.change_of(name).is_some_and(|change| change.action == ResourceAction::Replace))
    }

    fn change_of(&self, name: &str) -> Option<&ResourceChange> {
        self.stack.resources.iter().find(|change| change.logical_id == name)
    }
}

/// How many machines an Auto Scaling group will have. CloudFormation sets a size only if the template changes it; Auto Scaling keeps it
/// within the limits.
fn later_size(now: u32, old: &Value, new: &Value) -> u32 {
    let wanted = template_number(&new["DesiredCapacity"])
        .filter(|wanted| template_number(&old["DesiredCapacity"]) != Some(*wanted));
    let least = template_number(&new["MinSize"]).unwrap_or(0);
    let most = template_number(&new["MaxSize"]).unwrap_or(u32::MAX);
    wanted.unwrap_or(now).min(most).max(least)
}

/// Whether Auto Scaling terminates machines that no longer fit, without an update policy: those in a subnet that the group leaves, and
/// those of a purchase option that it no longer uses.
fn terminates_unfitting_machines(change: &ResourceChange) -> bool {
    let subnets = || changes_below_property(change, "VPCZoneIdentifier");
    let stays = |left: &Value| subnets().any(|property| property.to.as_ref() == Some(left));
    let leaves = subnets().filter_map(|property| property.from.as_ref()).any(|subnet| !stays(subnet));
    let changes_purchase_option = changes_below_property(change, "MixedInstancesPolicy").any(|property| {
        property.path == "MixedInstancesPolicy"
            || property.path.starts_with("MixedInstancesPolicy.InstancesDistribution")
    });
    leaves || changes_purchase_option
}

/// The changes of a property, at any depth.
fn changes_below_property<'a>(
    change: &'a ResourceChange,
    property: &'a str,
) -> impl Iterator<Item = &'a PropertyChange> {
    change.properties.iter().filter(move |changed| {
        let rest = changed.path.strip_prefix(property);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

fn template_number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{StackVersions, later_size};
    use crate::aws::ScalingGroup;
    use crate::blueprint::StackPart;
    use crate::config::values::PoolName;
    use crate::deploy::event::MachineAction;
    use crate::deploy::plan::comparison::{Version, compare_stacks};
    use crate::deploy::plan::template_values::evaluated_resources;
    use crate::deploy::plan::{StackAction, StackPlan};
    use crate::deploy::state::live::LiveCluster;
    use crate::well_known::ROLE_TAG;

    const ROLLING: MachineAction = MachineAction::Replace { at_once: 1, in_service: 3 };

    fn pool(policy: &Value) -> Value {
        json!({"Resources": {
            "NodeRole": {"Type": "AWS::IAM::Role", "Properties": {"Path": "/"}},
            "NodeProfile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Path": "/"}},
            "NodeLaunchTemplate": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {
                "TagSpecifications": ["a"],
                "LaunchTemplateData": {"InstanceType": "m5.large", "IamInstanceProfile": {"Arn": {"Fn::GetAtt": ["NodeProfile", "Arn"]}}},
            }},
            "Nodes": {"Type": "AWS::AutoScaling::AutoScalingGroup", "UpdatePolicy": policy, "Properties": {
                "VPCZoneIdentifier": ["subnet-a", "subnet-b"], "MinSize": "0", "MaxSize": "8", "DesiredCapacity": "3",
                "MixedInstancesPolicy": {
                    "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100},
                    "LaunchTemplate": {
                        "LaunchTemplateSpecification": {"LaunchTemplateId": {"Ref": "NodeLaunchTemplate"}},
                        "Overrides": [{"InstanceType": "m5.large"}],
                    },
                },
                "Tags": [{"Key": "team", "Value": "a"}],
            }},
        }})
    }

    fn found(old: &Value, new: &Value, desired: u32) -> Vec<(u32, MachineAction)> {
        let none = BTreeMap::new();
        let version = |template| Version { template, parameters: &none };
        let stack = StackPlan {
            part: StackPart::Pool(PoolName::of_test("cpu")),
            stack: "paddle-pool-cpu".to_owned(),
            action: StackAction::Update,
            resources: compare_stacks(Some(version(old)), version(new)),
            tags: Vec::new(),
            after: Vec::new(),
        };
        let group = ScalingGroup {
            tags: [(ROLE_TAG.to_owned(), "pool-cpu".to_owned())].into(),
            ..ScalingGroup::of_test("nodes", desired)
        };
        let live = LiveCluster { groups: vec![group], ..LiveCluster::default() };
        let (before, after) = (evaluated_resources(old, &none), evaluated_resources(new, &none));
        let changes = StackVersions { stack: &stack, before, after, set_size: None }.machine_changes(&live);
        changes.into_iter().map(|change| (change.machines, change.change)).collect()
    }

    /// What a change does to three machines that roll, and to three that do not.
    fn both(path: &str, value: &Value) -> [Vec<(u32, MachineAction)>; 2] {
        let rolling = json!({"AutoScalingRollingUpdate": {"MinInstancesInService": "3", "MaxBatchSize": 1}});
        [rolling, json!({})].map(|policy| {
            let old = pool(&policy);
            let mut new = old.clone();
            if let Some(place) = new.pointer_mut(&format!("/Resources/{path}")) {
                *place = value.clone();
            }
            assert_ne!(old, new, "{path}");
            found(&old, &new, 3)
        })
    }

    #[test]
    fn machines_are_replaced_by_what_they_are_launched_from_and_by_nothing_else() {
        use MachineAction::{ReplaceUnfitting, StayOutdated};
        let template = "NodeLaunchTemplate/Properties";
        let group = "Nodes/Properties";
        for (path, value, of_rolling, of_manual) in [
            (
                format!("{template}/LaunchTemplateData/InstanceType"),
                json!("m5.xlarge"),
                Some(ROLLING),
                Some(StayOutdated),
            ),
            (format!("{template}/TagSpecifications"), json!(["b"]), None, None),
            // What the launch template names is replaced, so its next version names another.
            ("NodeProfile/Properties/Path".to_owned(), json!("/other/"), Some(ROLLING), Some(StayOutdated)),
            ("NodeRole/Properties/Path".to_owned(), json!("/other/"), None, None),
            (
                format!("{group}/VPCZoneIdentifier"),
                json!(["subnet-b", "subnet-a", "subnet-c"]),
                Some(ROLLING),
                None,
            ),
            (
                format!("{group}/VPCZoneIdentifier"),
                json!(["subnet-b"]),
                Some(ROLLING),
                Some(ReplaceUnfitting),
            ),
            (
                format!(
                    "{group}/MixedInstancesPolicy/InstancesDistribution/OnDemandPercentageAboveBaseCapacity"
                ),
                json!(0),
                Some(ROLLING),
                Some(ReplaceUnfitting),
            ),
            (
                format!("{group}/MixedInstancesPolicy/LaunchTemplate/Overrides/0/InstanceType"),
                json!("m5.2xlarge"),
                Some(ROLLING),
                None,
            ),
            (format!("{group}/Tags"), json!([{"Key": "team", "Value": "b"}]), None, None),
            (format!("{group}/MaxSize"), json!("9"), None, None),
        ] {
            let expected: [Vec<(u32, MachineAction)>; 2] =
                [of_rolling, of_manual].map(|action| action.map(|action| (3, action)).into_iter().collect());
            assert_eq!(both(&path, &value), expected, "{path}");
        }
    }

    #[test]
    fn a_group_of_another_name_is_replaced_whole() {
        let old = pool(&json!({}));
        let mut new = old.clone();
        new["Resources"]["Nodes"]["Properties"]["AutoScalingGroupName"] = json!("mine");
        assert_eq!(found(&old, &new, 3), [(3, MachineAction::ReplaceGroup)]);
    }

    #[test]
    fn machines_are_counted_from_how_many_there_are_and_not_from_what_was_asked_for() {
        let old = pool(&json!({}));
        let mut more = old.clone();
        more["Resources"]["Nodes"]["Properties"]["DesiredCapacity"] = json!("5");
        assert_eq!(found(&old, &more, 3), [(2, MachineAction::Create)]);
        assert_eq!(found(&old, &more, 8), [(3, MachineAction::Terminate)]);
        let mut narrow = old.clone();
        narrow["Resources"]["Nodes"]["Properties"]["MaxSize"] = json!("4");
        assert_eq!(found(&old, &narrow, 6), [(2, MachineAction::Terminate)]);
        assert_eq!(found(&old, &narrow, 4), []);
        let nothing = json!({"Resources": {}});
        assert_eq!(found(&old, &nothing, 6), [(6, MachineAction::Terminate)]);
        assert_eq!(found(&nothing, &old, 0), [(3, MachineAction::Create)]);
        // An empty pool has no machine to replace.
        let mut other = old.clone();
        other["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["InstanceType"] =
            json!("m5.xlarge");
        assert_eq!(found(&old, &other, 0), []);
        let size = |now| {
            later_size(
                now,
                &json!({"DesiredCapacity": "3"}),
                &json!({"DesiredCapacity": "3", "MinSize": "2"}),
            )
        };
        assert_eq!([size(0), size(7)], [2, 7]);
    }
}
