//! The one list of steps of a destroy. Its plan walks the list to say what each step deletes; its work walks the same list to delete it.

use super::data::{delete_data, list_data};
use super::found::FoundResources;
use super::plan::DestroyPlan;
use super::public_record::delete_new_record;
use super::scope::DestroyScope;
use super::services::delete_services;
use super::stacks::{StackGroup, stacks_created_meanwhile};
use super::sweep::{list_network, sweep_network};
use super::uploads::{delete_uploads, list_uploads};
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, Leftover, PlannedStack, Stuck};
use crate::deploy::run::Run;
use crate::kube::ApiServer;

/// A step of a destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestroyStep {
    /// Services of type LoadBalancer, through the Kubernetes API: it deletes their load balancers.
    Services,
    /// A group of stacks.
    Stacks(StackGroup),
    /// The record of the public name, where it still points at this cluster.
    PublicRecord,
    /// A record of the public name that an `infra up` created while the control plane was deleted.
    LateRecord,
    /// What Kubernetes created in the network: load balancers, target groups, security groups, interfaces, mount targets.
    Network,
    /// Records of the private hosted zone.
    PrivateRecords,
    /// Uploaded assets and the grant of the KMS key.
    Uploads,
    /// Files and snapshots.
    Data,
}

/// All steps, in the order in which they are done.
const STEPS: [DestroyStep; 11] = [
    DestroyStep::Services,
    DestroyStep::Stacks(StackGroup::Pools),
    DestroyStep::PublicRecord,
    DestroyStep::Stacks(StackGroup::ControlPlane),
    DestroyStep::LateRecord,
    DestroyStep::Network,
    DestroyStep::PrivateRecords,
    DestroyStep::Stacks(StackGroup::Storage),
    DestroyStep::Uploads,
    DestroyStep::Stacks(StackGroup::Network),
    DestroyStep::Data,
];

/// What the steps could not delete.
#[derive(Debug, Default)]
pub(crate) struct Undeleted {
    /// Stacks that could not be deleted.
    pub(crate) stuck: Vec<Stuck>,
    /// Stacks that were created meanwhile; what they need is kept.
    pub(crate) created_meanwhile: Vec<String>,
    /// Resources that AWS refused to delete.
    pub(crate) refused: Vec<Leftover>,
}

/// Lists what every step would delete and keep.
#[must_use]
pub(crate) fn plan_destroy(scope: &DestroyScope) -> DestroyPlan {
    let mut plan = DestroyPlan::default();
    for step in STEPS {
        step.list(scope, &mut plan);
    }
    plan
}

/// Does every step whose conditions hold; returns what could not be deleted.
pub(crate) async fn run_steps(
    run: &Run,
    scope: &DestroyScope,
    api: Option<&ApiServer>,
) -> Result<Undeleted, DeployError> {
    let stacks = planned_stacks(&scope.found);
    if !stacks.is_empty() {
        run.progress.report(Event::Stacks { stacks });
    }
    let mut undeleted = Undeleted::default();
    let mut deleted = Vec::new();
    for step in STEPS {
        if !step.has_work(scope, api) {
            continue;
        }
        let is_left = |group: &StackGroup| group.exists(&scope.found) && !deleted.contains(group);
        if step.needs_deleted().iter().any(is_left) {
            continue;
        }
        if step.refuses_new_stacks() && undeleted.created_meanwhile.is_empty() {
            undeleted.created_meanwhile = stacks_created_meanwhile(run, &scope.target, &scope.found).await?;
        }
        if step.refuses_new_stacks() && !undeleted.created_meanwhile.is_empty() {
            continue;
        }
        if let Some(stage) = step.stage() {
            run.progress.stage(stage);
        }
        let stuck = Box::pin(step.delete(run, scope, api, &mut undeleted.refused)).await?;
        if let DestroyStep::Stacks(group) = step
            && stuck.is_empty()
        {
            deleted.push(group);
        }
        undeleted.stuck.extend(stuck);
    }
    Ok(undeleted)
}

/// The stacks in the order in which they are deleted.
fn planned_stacks(found: &FoundResources) -> Vec<PlannedStack> {
    let groups = STEPS.into_iter().filter_map(|step| match step {
        DestroyStep::Stacks(group) => Some((group, step.needs_deleted())),
        _ => None,
    });
    groups.flat_map(|(group, needs)| group.plan(needs, found)).collect()
}

impl DestroyStep {
    /// What to print when the step begins; stacks report for themselves.
    fn stage(self) -> Option<&'static str> {
        match self {
            Self::Services => Some("deleting load balancers of Services"),
            Self::Stacks(StackGroup::Pools) => Some("deleting pools"),
            Self::Network => Some("deleting what Kubernetes created in the network"),
            Self::Data => Some("deleting data"),
            Self::Stacks(_)
            | Self::PublicRecord
            | Self::LateRecord
            | Self::PrivateRecords
            | Self::Uploads => None,
        }
    }

    /// Whether there may be something for the step to delete.
    fn has_work(self, scope: &DestroyScope, api: Option<&ApiServer>) -> bool {
        let found: &FoundResources = &scope.found;
        match self {
            Self::Services => api.is_some() && found.vpc.is_some(),
            Self::Stacks(group) => group.exists(found),
            Self::LateRecord => StackGroup::ControlPlane.exists(found),
            Self::Network => found.vpc.is_some(),
            Self::PrivateRecords => found.private_hosted_zone.is_some(),
            Self::Data => scope.options.delete_data,
            Self::PublicRecord | Self::Uploads => true,
        }
    }

    /// The stacks that must be deleted before the step.
    fn needs_deleted(self) -> &'static [StackGroup] {
        use StackGroup::{ControlPlane, Network, Pools, Storage};
        match self {
            Self::Services | Self::Stacks(Pools) => &[],
            Self::PublicRecord | Self::Stacks(ControlPlane) => &[Pools],
            // While the control plane is there, an `infra up` may create the record, and the cloud controller manager load balancers.
            Self::LateRecord | Self::Network => &[ControlPlane],
            // Machines boot from uploads and find each other by private records.
            Self::PrivateRecords | Self::Uploads | Self::Stacks(Storage) => &[Pools, ControlPlane],
            Self::Stacks(Network) => &[Pools, ControlPlane, Storage],
            Self::Data => &[Pools, ControlPlane, Storage, Network],
        }
    }

    /// Whether a stack that was created meanwhile would need what the step deletes.
    fn refuses_new_stacks(self) -> bool {
        // Nobody needs a record that points at a deleted load balancer.
        !matches!(self, Self::Services | Self::Stacks(StackGroup::Pools) | Self::LateRecord)
    }

    /// Lists what the step would delete, what it keeps and what is foreign.
    fn list(self, scope: &DestroyScope, plan: &mut DestroyPlan) {
        let found = &scope.found;
        match self {
            // Whether the API answers shows only later; the load balancers are listed where they are deleted in any case.
            Self::Services | Self::LateRecord => {}
            Self::Stacks(group) => group.list(found, plan),
            Self::PublicRecord => {
                if let Some(record) = &found.public_record {
                    record.list(plan);
                }
            }
            Self::Network => list_network(scope, plan),
            Self::PrivateRecords => {
                if let Some(zone) = &found.private_hosted_zone {
                    zone.list(plan);
                }
            }
            Self::Uploads => list_uploads(scope, plan),
            Self::Data => list_data(scope, plan),
        }
    }

    /// Deletes; returns the stacks that could not be deleted.
    async fn delete(
        self,
        run: &Run,
        scope: &DestroyScope,
        api: Option<&ApiServer>,
        refused: &mut Vec<Leftover>,
    ) -> Result<Vec<Stuck>, DeployError> {
        let found = &scope.found;
        match self {
            Self::Services => {
                if let (Some(api), Some(vpc)) = (api, &found.vpc) {
                    delete_services(run, &scope.target, api, &vpc.id).await?;
                }
            }
            Self::Stacks(group) => return group.delete(run, found).await,
            Self::PublicRecord => {
                if let Some(record) = &found.public_record {
                    refused.extend(record.delete(run).await?);
                }
                refused.extend(delete_new_record(run, &scope.target, &found.live).await?);
            }
            Self::LateRecord => {
                refused.extend(delete_new_record(run, &scope.target, &found.live).await?);
            }
            Self::Network => {
                if let Some(network) = found.own_network() {
                    sweep_network(run, scope, network).await?;
                }
            }
            Self::PrivateRecords => {
                if let Some(zone) = &found.private_hosted_zone {
                    zone.delete_records(run, &found.stacks).await?;
                }
            }
            Self::Uploads => refused.extend(delete_uploads(run, scope).await?),
            Self::Data => refused.extend(delete_data(run, scope).await?),
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::stacks::StackGroup::{ControlPlane, Network, Pools, Storage};
    use super::{DestroyStep, STEPS};

    #[test]
    fn every_group_of_stacks_is_deleted_once() {
        for group in [Pools, ControlPlane, Storage, Network] {
            assert_eq!(
                STEPS.iter().filter(|step| **step == DestroyStep::Stacks(group)).count(),
                1,
                "{group:?}"
            );
        }
    }

    #[test]
    fn a_step_needs_only_what_earlier_steps_delete() {
        for (position, step) in STEPS.iter().enumerate() {
            for group in step.needs_deleted() {
                assert!(STEPS[..position].contains(&DestroyStep::Stacks(*group)), "{step:?} needs {group:?}");
            }
        }
    }

    #[test]
    fn a_step_that_needs_deleted_stacks_also_checks_for_new_ones() {
        for step in STEPS.into_iter().filter(|step| *step != DestroyStep::LateRecord) {
            assert_eq!(step.refuses_new_stacks(), !step.needs_deleted().is_empty(), "{step:?}");
        }
    }
}
