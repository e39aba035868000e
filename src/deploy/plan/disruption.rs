//! The disruption of a plan: pools whose nodes it terminates, and the job pods on them.

use serde_json::Value;

use super::comparison::{PropertyChange, ResourceAction, ResourceChange};
use super::{Plan, StackAction};
use crate::blueprint::StackPart;
use crate::config::values::PoolName;
use crate::config::{Cluster, Rollout};
use crate::deploy::state::live::LiveCluster;
use crate::kube::{ApiServer, JobPod, KubeError};

/// The pools whose nodes a plan replaces or deletes.
#[must_use]
pub(crate) fn pools_losing_nodes(plan: &Plan, cluster: &Cluster, live: &LiveCluster) -> Vec<PoolName> {
    let losing = plan.stacks.iter().filter_map(|stack| {
        let StackPart::Pool(name) = &stack.part else { return None };
        let loses = match stack.action {
            StackAction::Delete => true,
            StackAction::Update => {
                let pool = cluster.pool(name)?;
                let rolls = pool.rollout == Rollout::Rolling;
                let machines = live.pool_group(name).map(|group| group.desired);
                stack.resources.iter().any(|change| match change.logical_id.as_str() {
                    "NodeLaunchTemplate" => rolls,
                    "Nodes" => {
                        change.action == ResourceAction::Replace
                            || is_shrinking(change, machines)
                            || if rolls {
                                replaces_every_machine(change)
                            } else {
                                terminates_some_machines(change)
                            }
                    }
                    _ => false,
                })
            }
            StackAction::Create | StackAction::Recreate | StackAction::Unchanged => false,
        };
        loses.then(|| name.clone())
    });
    losing.collect()
}

/// Whether the Auto Scaling group gets smaller than it is now; the stack's parameter is older than that.
fn is_shrinking(change: &ResourceChange, machines: Option<u32>) -> bool {
    change.properties.iter().any(|property| {
        let number = |value: &Option<Value>| {
            let value = value.as_ref()?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        };
        let from = machines.map(u64::from).or_else(|| number(&property.from));
        matches!(property.path.as_str(), "DesiredCapacity" | "MaxSize")
            && matches!((from, number(&property.to)), (Some(from), Some(to)) if to < from)
    })
}

/// Whether CloudFormation replaces every machine of an Auto Scaling group with an update policy.
fn replaces_every_machine(change: &ResourceChange) -> bool {
    let properties = ["VPCZoneIdentifier", "MixedInstancesPolicy", "LaunchTemplate"];
    properties.iter().any(|property| below(change, property).next().is_some())
}

/// Whether Auto Scaling terminates machines that no longer fit: those in a subnet that the group leaves, and those of a purchase option
/// that it no longer uses.
fn terminates_some_machines(change: &ResourceChange) -> bool {
    let subnets = || below(change, "VPCZoneIdentifier");
    let stays = |left: &Value| subnets().any(|property| property.to.as_ref() == Some(left));
    let leaves = subnets().filter_map(|property| property.from.as_ref()).any(|subnet| !stays(subnet));
    let changes_purchase_option = below(change, "MixedInstancesPolicy").any(|property| {
        property.path == "MixedInstancesPolicy"
            || property.path.starts_with("MixedInstancesPolicy.InstancesDistribution")
    });
    leaves || changes_purchase_option
}

/// The changes of a property, at any depth.
fn below<'a>(change: &'a ResourceChange, property: &'a str) -> impl Iterator<Item = &'a PropertyChange> {
    change.properties.iter().filter(move |changed| {
        let rest = changed.path.strip_prefix(property);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// The job pods on the nodes of some pools.
pub(crate) async fn disrupted_jobs(api: &ApiServer, pools: &[PoolName]) -> Result<Vec<JobPod>, KubeError> {
    let nodes = api.nodes().await?;
    let in_pools: Vec<&str> = nodes
        .iter()
        .filter(|node| pools.iter().any(|pool| node.pool.as_deref() == Some(pool.as_str())))
        .map(|node| node.name.as_str())
        .collect();
    let pods = api.job_pods().await?;
    Ok(pods.into_iter().filter(|pod| in_pools.contains(&pod.node.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        PropertyChange, ResourceAction, ResourceChange, is_shrinking, replaces_every_machine,
        terminates_some_machines,
    };

    fn change(properties: &[(&str, Value, Value)]) -> ResourceChange {
        let value = |value: &Value| (!value.is_null()).then(|| value.clone());
        let properties = properties.iter().map(|(path, from, to)| PropertyChange {
            path: (*path).to_owned(),
            from: value(from),
            to: value(to),
            replaces: false,
        });
        ResourceChange {
            logical_id: "Nodes".to_owned(),
            kind: "AWS::AutoScaling::AutoScalingGroup".to_owned(),
            action: ResourceAction::Change,
            properties: properties.collect(),
        }
    }

    #[test]
    fn a_group_shrinks_from_what_it_is_and_not_from_what_it_was_given() {
        let grown = change(&[("DesiredCapacity", json!("3"), json!("5"))]);
        assert!(is_shrinking(&grown, Some(8)));
        assert!(!is_shrinking(&grown, Some(4)));
        let lowered = change(&[("MaxSize", json!("8"), json!("4"))]);
        assert!(is_shrinking(&lowered, Some(5)));
        assert!(!is_shrinking(&lowered, Some(4)));
        assert!(is_shrinking(&lowered, None));
    }

    #[test]
    fn other_zones_types_and_ways_to_pay_end_machines() {
        let moved = change(&[
            ("VPCZoneIdentifier[0]", json!("subnet-a"), json!("subnet-b")),
            ("VPCZoneIdentifier[1]", json!("subnet-b"), Value::Null),
        ]);
        let spread = change(&[
            ("VPCZoneIdentifier[0]", json!("subnet-b"), json!("subnet-a")),
            ("VPCZoneIdentifier[1]", Value::Null, json!("subnet-b")),
        ]);
        let spot = "MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity";
        let spot = change(&[(spot, json!(100), json!(0))]);
        let types = change(&[(
            "MixedInstancesPolicy.LaunchTemplate.Overrides[1].InstanceType",
            json!("g5.xlarge"),
            json!("g5.2xlarge"),
        )]);
        let mixed = change(&[
            ("LaunchTemplate", json!({}), Value::Null),
            ("MixedInstancesPolicy", Value::Null, json!({})),
        ]);
        let tags = change(&[("Tags[team]", json!("a"), json!("b"))]);
        for (change, of_rolling, of_manual) in [
            (moved, true, true),
            (spread, true, false),
            (spot, true, true),
            (types, true, false),
            (mixed, true, true),
            (tags, false, false),
        ] {
            assert_eq!(replaces_every_machine(&change), of_rolling, "{change:?}");
            assert_eq!(terminates_some_machines(&change), of_manual, "{change:?}");
        }
    }
}
