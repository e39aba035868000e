//! What of a cluster is in AWS now: its stacks, their templates, and their groups of machines.

use std::collections::BTreeMap;

use serde_json::Value;

use super::step::{Step, next_step};
use crate::aws::{AwsError, Clients, ScalingGroup, Stack, StackStatus};
use crate::blueprint::{Role, StackPart};
use crate::config::Cluster;
use crate::config::values::{ClusterName, PoolName};
use crate::well_known::{CLUSTER_TAG, ROLE_TAG};

/// A stack with its template.
#[derive(Clone, Debug)]
pub struct LiveStack {
    /// The stack.
    pub stack: Stack,
    /// Its template; `Null` if it has none worth comparing with.
    pub template: Value,
}

/// A stack that has a name of the cluster's and is not the cluster's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignStack {
    /// Its name.
    pub name: String,
    /// The cluster it is of: `x-pool-network` may be the network of `x-pool`, and a pool of `x`.
    pub cluster: Option<String>,
}

/// A cluster as AWS has it.
#[derive(Clone, Debug, Default)]
pub struct LiveCluster {
    /// Its stacks.
    pub stacks: BTreeMap<StackPart, LiveStack>,
    /// Stacks with names of ours that are not ours.
    pub foreign: Vec<ForeignStack>,
    /// Its Auto Scaling groups.
    pub groups: Vec<ScalingGroup>,
}

impl LiveCluster {
    /// Looks at everything; changes nothing. `described` is what cluster.yaml says, unless it is lost.
    pub async fn read(
        clients: &Clients,
        cluster: &ClusterName,
        described: Option<&Cluster>,
    ) -> Result<Self, AwsError> {
        let (stacks, groups) =
            tokio::try_join!(clients.stacks(), clients.groups_of_cluster(cluster.as_str()))?;
        let mut live = Self { groups, ..Self::default() };
        let mut pending = tokio::task::JoinSet::new();
        for stack in stacks {
            let Some(part) = StackPart::from_stack_name(cluster, &stack.name) else { continue };
            let step = next_step(Some(&stack.status));
            if !is_of_cluster(&stack, cluster, described) {
                let cluster = stack.tags.get(CLUSTER_TAG).cloned();
                // One that somebody only plans, under a name that cluster.yaml does not need, is in nobody's way.
                if cluster.is_some() || stack.status != StackStatus::ReviewInProgress {
                    live.foreign.push(ForeignStack { name: stack.name, cluster });
                }
                continue;
            }
            let clients = clients.clone();
            pending.spawn(async move {
                let template = match step {
                    Step::DeleteAndCreate | Step::Create => Value::Null,
                    _ => parse(&clients.stack_template(&stack.arn).await?),
                };
                Ok::<_, AwsError>((part, LiveStack { stack, template }))
            });
        }
        for (part, stack) in join_all(&mut pending).await? {
            live.stacks.insert(part, stack);
        }
        Ok(live)
    }

    /// Whether anything of the cluster is there.
    #[must_use]
    pub fn exists(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// Whether stacks of machines are there.
    #[must_use]
    pub fn has_machines(&self) -> bool {
        self.stacks.keys().any(|part| matches!(part, StackPart::ControlPlane | StackPart::Pool(_)))
    }

    /// Whether a stack stands, or is on its way, so that what it holds need not be made.
    #[must_use]
    pub fn stands(&self, part: &StackPart) -> bool {
        let Some(live) = self.stacks.get(part) else { return false };
        let status = &live.stack.status;
        let goes = matches!(status, StackStatus::RollbackInProgress | StackStatus::DeleteInProgress);
        !goes && matches!(next_step(Some(status)), Step::Compare | Step::Follow | Step::RollBack)
    }

    /// What stacks hand on to others.
    #[must_use]
    pub fn outputs(&self) -> BTreeMap<String, String> {
        let stacks = self.stacks.values().flat_map(|live| live.stack.outputs.clone());
        stacks.collect()
    }

    /// A parameter of a live stack.
    #[must_use]
    pub fn parameter(&self, part: &StackPart, name: &str) -> Option<&str> {
        self.stacks.get(part)?.stack.parameters.get(name).map(String::as_str)
    }

    /// A tag of a live stack.
    #[must_use]
    pub fn tag(&self, part: &StackPart, name: &str) -> Option<&str> {
        self.stacks.get(part)?.stack.tags.get(name).map(String::as_str)
    }

    /// A pool's group of machines.
    #[must_use]
    pub fn pool_group(&self, pool: &PoolName) -> Option<&ScalingGroup> {
        self.group_of_role(&Role::Pool(pool.clone()))
    }

    /// The group of machines of a role.
    #[must_use]
    pub fn group_of_role(&self, role: &Role) -> Option<&ScalingGroup> {
        let role = role.name();
        self.groups.iter().find(|group| group.tags.get(ROLE_TAG) == Some(&role))
    }
}

/// Whether a stack with a name of the cluster's is the cluster's. One that is only planned yet may have no tags to show: its name tells,
/// unless it could be another cluster's.
pub(crate) fn is_of_cluster(stack: &Stack, cluster: &ClusterName, described: Option<&Cluster>) -> bool {
    if let Some(tagged) = stack.tags.get(CLUSTER_TAG) {
        return tagged == cluster.as_str();
    }
    let Some(part) = StackPart::from_stack_name(cluster, &stack.name) else { return false };
    stack.status == StackStatus::ReviewInProgress
        && (!part.has_ambiguous_name()
            || described.is_some_and(|described| StackPart::of_cluster(described).contains(&part)))
}

/// Everything that tasks found, or the first error of one.
pub(crate) async fn join_all<T: 'static>(
    pending: &mut tokio::task::JoinSet<Result<T, AwsError>>,
) -> Result<Vec<T>, AwsError> {
    let mut found = Vec::new();
    while let Some(joined) = pending.join_next().await {
        match joined {
            Ok(result) => found.push(result?),
            Err(error) => return Err(AwsError::lost(error.to_string())),
        }
    }
    Ok(found)
}

/// A template as CloudFormation keeps it; ours are JSON.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
