//! Whose jobs a change would end: pools that lose nodes, and the job pods on them.

use super::comparison::ResourceAction;
use super::plan::{Plan, StackAction};
use crate::blueprint::StackPart;
use crate::config::{Cluster, Rollout};
use crate::kube::{ApiServer, JobPod, KubeError};

/// The pools whose nodes a plan replaces or removes.
#[must_use]
pub fn pools_losing_nodes(plan: &Plan, cluster: &Cluster) -> Vec<String> {
    let losing = plan.stacks.iter().filter_map(|stack| {
        let StackPart::Pool(name) = &stack.part else { return None };
        let loses = match stack.action {
            StackAction::Delete => true,
            StackAction::Update => {
                let pool = cluster.pools.iter().find(|pool| pool.name.as_str() == name)?;
                let rolls = pool.rollout == Rollout::Rolling;
                stack.resources.iter().any(|change| match change.logical_id.as_str() {
                    "NodeLaunchTemplate" => rolls,
                    "Nodes" => change.action == ResourceAction::Replace || shrinks(change),
                    _ => false,
                })
            }
            StackAction::Create | StackAction::Recreate | StackAction::Unchanged => false,
        };
        loses.then(|| name.clone())
    });
    losing.collect()
}

fn shrinks(change: &super::comparison::ResourceChange) -> bool {
    change.properties.iter().any(|property| {
        let number = |value: &Option<serde_json::Value>| {
            let value = value.as_ref()?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        };
        matches!(property.path.as_str(), "DesiredCapacity" | "MaxSize")
            && matches!((number(&property.from), number(&property.to)), (Some(from), Some(to)) if to < from)
    })
}

/// The job pods on those pools' nodes.
pub async fn endangered_jobs(api: &ApiServer, pools: &[String]) -> Result<Vec<JobPod>, KubeError> {
    let nodes = api.nodes().await?;
    let in_pools: Vec<&str> = nodes
        .iter()
        .filter(|node| node.pool.as_ref().is_some_and(|pool| pools.contains(pool)))
        .map(|node| node.name.as_str())
        .collect();
    let pods = api.job_pods().await?;
    Ok(pods.into_iter().filter(|pod| in_pools.contains(&pod.node.as_str())).collect())
}
