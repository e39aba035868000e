//! The cluster's stacks, in groups that are deleted one after the other, and stacks that someone creates meanwhile.

use tokio::task::JoinSet;

use super::found::FoundResources;
use super::plan::DestroyPlan;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Stack};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::{PlannedStack, ResourceKind, Stuck};
use crate::deploy::run::Run;
use crate::deploy::stack::delete::delete_stack;
use crate::deploy::state::live::{LiveStack, is_of_cluster};
use crate::plural::count_of;

/// Stacks that do not depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackGroup {
    /// The stacks of all pools.
    Pools,
    /// The stack of etcd and the controllers.
    ControlPlane,
    /// The stack of the file system.
    Storage,
    /// The stack of the network.
    Network,
}

impl StackGroup {
    /// The group that a stack belongs to.
    fn of(part: &StackPart) -> Self {
        match part {
            StackPart::Pool(_) => Self::Pools,
            StackPart::ControlPlane => Self::ControlPlane,
            StackPart::Storage => Self::Storage,
            StackPart::Network => Self::Network,
        }
    }

    /// The stacks of the group that were found.
    fn stacks(self, found: &FoundResources) -> impl Iterator<Item = (&StackPart, &LiveStack)> {
        found.live.stacks.iter().filter(move |(part, _)| Self::of(part) == self)
    }

    /// Whether a stack of the group was found.
    pub(crate) fn exists(self, found: &FoundResources) -> bool {
        self.stacks(found).next().is_some()
    }

    /// Lists the stacks of the group as deleted.
    pub(crate) fn list(self, found: &FoundResources, plan: &mut DestroyPlan) {
        for (_, live) in self.stacks(found) {
            let count = live.template()["Resources"].as_object().map_or(0, serde_json::Map::len);
            let why = if count > 0 { count_of(count, "resource") } else { live.stack.status.to_string() };
            plan.delete(ResourceKind::Stack, &live.stack.name, why);
        }
    }

    /// The stacks of the group, which are deleted after those of other groups.
    pub(crate) fn plan(self, others: &[Self], found: &FoundResources) -> Vec<PlannedStack> {
        let names =
            |group: &Self| group.stacks(found).map(|(_, live)| live.stack.name.clone()).collect::<Vec<_>>();
        let after: Vec<String> = others.iter().flat_map(names).collect();
        let planned = self.stacks(found).map(|(_, live)| PlannedStack {
            stack: live.stack.name.clone(),
            after: after.clone(),
            resources: live.template()["Resources"].as_object().map(serde_json::Map::len),
            machines: Vec::new(),
        });
        planned.collect()
    }

    /// Deletes the stacks of the group in parallel; returns those that could not be deleted.
    pub(crate) async fn delete(self, run: &Run, found: &FoundResources) -> Result<Vec<Stuck>, DeployError> {
        let mut running = JoinSet::new();
        for (part, live) in self.stacks(found) {
            let (run, part, stack) = (run.clone(), part.clone(), live.stack.clone());
            running.spawn(async move { delete_stack(&run, &part, &stack).await });
        }
        let mut stuck = Vec::new();
        let mut failed = None;
        while let Some(joined) = running.join_next().await {
            match joined {
                Ok(Ok(result)) => stuck.extend(result),
                Ok(Err(error)) => failed = Some(error),
                Err(error) => failed = Some(AwsError::lost(error.to_string()).into()),
            }
        }
        failed.map_or(Ok(stuck), Err)
    }
}

/// The names of the cluster's stacks that were created since it was read: another process is bringing the cluster up, and the
/// user has not confirmed their deletion.
pub(crate) async fn stacks_created_meanwhile(
    run: &Run,
    target: &DestroyTarget,
    found: &FoundResources,
) -> Result<Vec<String>, DeployError> {
    let is_known = |stack: &Stack| found.live.stacks.values().any(|live| live.stack.arn == stack.arn);
    let stacks = run.clients.stacks().await?.into_iter();
    let new = stacks.filter(|stack| {
        StackPart::from_stack_name(&target.name, &stack.name).is_some()
            && is_of_cluster(stack, &target.name, target.cluster.as_ref())
            && !is_known(stack)
    });
    Ok(new.map(|stack| stack.name).collect())
}
