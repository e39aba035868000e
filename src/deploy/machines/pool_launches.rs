//! Failed launches of pools during a wait for nodes: a stack can be complete before its machines start.

use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;

use super::launches::{Launches, is_since, launched_machine};
use crate::aws::{ScalingActivity, ScalingGroup, StackStatus};
use crate::blueprint::{Role, StackPart};
use crate::config::values::ClusterName;
use crate::config::values::PoolName;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, MachineState};
use crate::deploy::explain::failure_report::{FailedOperation, LaunchGivenUp, report_failure};
use crate::deploy::explain::operation_events::begins_operation;
use crate::deploy::run::Run;

/// The Auto Scaling group of a pool, by its name in the template.
const NODES: &str = "Nodes";

/// The launches of pools.
pub(crate) struct PoolLaunches<'a> {
    run: &'a Run,
    cluster: &'a ClusterName,
    launches: Launches,
    /// Pools that this run changed, with the time that the change began, once it is known.
    changed: BTreeMap<PoolName, Option<OffsetDateTime>>,
    read_before: BTreeSet<PoolName>,
    /// Pools that had too few machines when they were last read.
    short: BTreeSet<PoolName>,
    /// Changed pools that had all of their machines when they were last read, and whose launches are reported.
    complete: BTreeSet<PoolName>,
}

impl<'a> PoolLaunches<'a> {
    /// For pools that this run has not changed: earlier failures are reported, and are no reason to give up.
    pub(crate) fn of_unchanged_pools(run: &'a Run, cluster: &'a ClusterName) -> Self {
        Self {
            run,
            cluster,
            launches: Launches::default(),
            changed: BTreeMap::new(),
            read_before: BTreeSet::new(),
            short: BTreeSet::new(),
            complete: BTreeSet::new(),
        }
    }

    /// For pools of which this run has changed some: failures since then count.
    pub(crate) fn after_changes(
        run: &'a Run,
        cluster: &'a ClusterName,
        changed: &BTreeSet<StackPart>,
    ) -> Self {
        let pools = changed.iter().filter_map(|part| match part {
            StackPart::Pool(pool) => Some((pool.clone(), None)),
            _ => None,
        });
        Self { changed: pools.collect(), ..Self::of_unchanged_pools(run, cluster) }
    }

    /// Whether this run has changed a pool.
    pub(crate) fn has_changed_pools(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Reports launches since the last call: machines that came of them, and those that failed.
    pub(crate) async fn count_failures(
        &mut self,
        pool: &PoolName,
        group: &ScalingGroup,
    ) -> Result<(), DeployError> {
        let running = group.machines.iter().filter(|machine| machine.is_in_service()).count();
        if running >= group.desired as usize {
            self.short.remove(pool);
            // The last machines may have come since the last look, or all of them before the first.
            if self.changed.contains_key(pool) && self.complete.insert(pool.clone()) {
                let activities = self.run.clients.scaling_activities(&group.name).await?;
                let began = self.beginning(pool).await?;
                self.report_launched(pool, activities.iter().filter(|found| is_since(found.started, began)));
            }
            return Ok(());
        }
        self.short.insert(pool.clone());
        self.complete.remove(pool);
        let mut activities = self.run.clients.scaling_activities(&group.name).await?;
        let is_first_reading = self.read_before.insert(pool.clone());
        let began = self.beginning(pool).await?;
        if began.is_some() {
            activities.retain(|activity| is_since(activity.started, began));
            self.report_launched(pool, activities.iter());
        } else if is_first_reading {
            let is_success =
                |activity: &ScalingActivity| activity.is_launch() && activity.status == "Successful";
            let streak = activities.iter().position(is_success).unwrap_or(activities.len());
            self.launches.mark_seen(activities[streak..].iter());
        }
        for failure in self.launches.count_failures(pool.as_str(), activities.into_iter()) {
            self.run.progress.report(Event::LaunchFailed {
                stack: self.stack_name(pool),
                resource: NODES.to_owned(),
                reason: failure.reason,
                times: failure.times,
            });
        }
        if is_first_reading && began.is_none() {
            self.launches.ignore_past_failures(pool.as_str());
        }
        Ok(())
    }

    /// Reports the machines that came of these activities, which have the newest first.
    fn report_launched<'b>(
        &self,
        pool: &PoolName,
        activities: impl DoubleEndedIterator<Item = &'b ScalingActivity>,
    ) {
        let role = Role::Pool(pool.clone());
        for machine in activities.rev().filter_map(launched_machine) {
            self.run.progress.machine(&role, machine, MachineState::Launched);
        }
    }

    /// When this run began to change a pool, if it did.
    async fn beginning(&mut self, pool: &PoolName) -> Result<Option<OffsetDateTime>, DeployError> {
        let stack = self.stack_name(pool);
        let Some(known) = self.changed.get_mut(pool) else { return Ok(None) };
        if known.is_none() {
            let events = self.run.clients.stack_events_since(&stack, begins_operation).await?;
            *known = events.first().and_then(|event| event.at);
        }
        Ok(*known)
    }

    /// Ends the wait if machines cannot start until the user acts.
    pub(crate) async fn fail_if_permanent(&self) -> Result<(), DeployError> {
        let mut reports = Vec::new();
        let mut shortage = None;
        for pool in &self.short {
            let Some(permanent) = self.launches.permanent_failure(pool.as_str()) else { continue };
            let (part, name) = (StackPart::Pool(pool.clone()), self.stack_name(pool));
            let run = self.run;
            if let Some(left_to_aws) = permanent.spot_shortage(run.cluster.as_ref(), &part, &name) {
                shortage.get_or_insert(left_to_aws);
                continue;
            }
            let stack = run.clients.stack(&name).await?;
            let status = stack.map_or(StackStatus::DeleteComplete, |stack| stack.status);
            let failed = FailedOperation {
                status,
                events: Vec::new(),
                evidence: Vec::new(),
                gave_up: Some(LaunchGivenUp { resource: NODES.to_owned(), reason: permanent.reason }),
            };
            reports.push(report_failure(run, &part, &name, failed).await?);
        }
        if !reports.is_empty() {
            return Err(DeployError::NoMachines(reports));
        }
        shortage.map_or(Ok(()), Err)
    }

    fn stack_name(&self, pool: &PoolName) -> String {
        StackPart::Pool(pool.clone()).stack_name(self.cluster)
    }
}
