//! Deletes what Kubernetes created in the network outside of stacks: load balancers, target groups, security groups and their rules,
//! interfaces.

use std::time::Duration;

use super::network::{Mount, NetworkFindings, OwnNetwork, describe_group};
use super::owner::owner_of;
use super::plan::DestroyPlan;
use super::scope::{DestroyOptions, DestroyScope};
use super::stack_contents::StackContents;
use crate::aws::AwsError;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, ResourceKind};
use crate::deploy::run::Run;
use crate::waiting::Pace;
use crate::well_known::{CONTROLLER_SERVICE_TAG, SERVICE_TAG};

/// AWS deletes the interfaces of a load balancer a while after the load balancer.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Lists what was found in the network: what is the cluster's is deleted, everything else is foreign.
pub(crate) fn list_network(scope: &DestroyScope, plan: &mut DestroyPlan) {
    let found = &scope.found.network;
    for balancer in &found.own.balancers {
        let service = balancer.tags.get(SERVICE_TAG).or_else(|| balancer.tags.get(CONTROLLER_SERVICE_TAG));
        let owner =
            service.map_or_else(|| "created by Kubernetes".to_owned(), |name| format!("of Service {name}"));
        plan.delete(ResourceKind::LoadBalancer, &balancer.name, owner);
    }
    for group in &found.target_groups {
        plan.delete(ResourceKind::TargetGroup, &group.name, "created by Kubernetes");
    }
    let mounts = found.foreign.mounts.iter().filter(|mount| is_to_delete(mount, scope.options));
    for mount in found.own.mounts.iter().chain(mounts) {
        plan.delete(
            ResourceKind::MountTarget,
            &mount.id,
            format!("of {} in {}", mount.file_system, mount.subnet),
        );
    }
    for group in &found.own.groups {
        let why = format!("{}, created by Kubernetes", group.name);
        plan.delete(ResourceKind::SecurityGroup, &group.id, why);
    }
    for interface in found.own.interfaces.iter().filter(|interface| interface.free) {
        plan.delete(ResourceKind::NetworkInterface, &interface.id, "unused");
    }
    list_foreign(scope, plan);
}

fn list_foreign(scope: &DestroyScope, plan: &mut DestroyPlan) {
    let foreign = &scope.found.network.foreign;
    for balancer in &foreign.balancers {
        plan.add_foreign(ResourceKind::LoadBalancer, &balancer.name, "has no tag of this cluster");
    }
    for mount in foreign.mounts.iter().filter(|mount| !is_to_delete(mount, scope.options)) {
        plan.add_foreign(
            ResourceKind::MountTarget,
            &mount.id,
            format!("of {} in {}", mount.file_system, mount.subnet),
        );
    }
    for group in &foreign.groups {
        plan.add_foreign(ResourceKind::SecurityGroup, &group.id, describe_group(group, &scope.found.stacks));
    }
    for interface in &foreign.interfaces {
        let owner = format!("of {}", owner_of(interface));
        plan.add_foreign(ResourceKind::NetworkInterface, &interface.id, owner);
    }
}

/// Deletes what is the cluster's. What cannot be deleted yet is retried for a while.
pub(crate) async fn sweep_network(
    run: &Run,
    scope: &DestroyScope,
    network: OwnNetwork<'_>,
) -> Result<(), DeployError> {
    let wait = run.waiting.optional_wait(LONGEST_WAIT);
    let mut pace = Pace::of_stack();
    loop {
        let findings = Box::pin(NetworkFindings::read(&run.clients, &scope.target, network)).await?;
        let left = sweep_once(run, &findings, network.stacks, scope.options).await?;
        if left.is_empty() {
            return Ok(());
        }
        run.progress.report(Event::Waiting { waiting_for: left.clone() });
        let ended = |end| Run::still_running(end, "the deletion of what Kubernetes created in the network");
        if !wait.pause(pace.next_pause()).await.map_err(ended)? {
            // What blocks the deletion is reported with the stack that cannot be deleted.
            run.progress.warn(format!("not deleted yet: {}", left.join(", ")));
            return Ok(());
        }
    }
}

/// One round; returns what could not be deleted.
async fn sweep_once(
    run: &Run,
    findings: &NetworkFindings,
    stacks: &StackContents,
    options: DestroyOptions,
) -> Result<Vec<String>, DeployError> {
    let mut left = Vec::new();
    for balancer in &findings.own.balancers {
        let result = run.clients.delete_load_balancer(balancer).await;
        note_deletion(run, result, &format!("load balancer {}", balancer.name), &mut left)?;
    }
    for group in &findings.target_groups {
        let result = run.clients.delete_target_group(&group.arn).await;
        note_deletion(run, result, &format!("target group {}", group.name), &mut left)?;
    }
    let to_delete = findings.foreign.mounts.iter().filter(|mount| is_to_delete(mount, options));
    for mount in findings.own.mounts.iter().chain(to_delete) {
        let result = run.clients.delete_mount_target(&mount.id).await;
        note_deletion(
            run,
            result,
            &format!("mount target {} of {}", mount.id, mount.file_system),
            &mut left,
        )?;
    }
    for group in &findings.own.groups {
        for ours in stacks.resources.iter().filter(|id| id.starts_with("sg-")) {
            if let Err(error) = run.clients.revoke_rules_naming(ours, &group.id).await
                && !error.is_missing_rule()
            {
                return Err(error.into());
            }
        }
        let result = run.clients.delete_security_group(&group.id).await;
        note_deletion(run, result, &format!("security group {}", group.id), &mut left)?;
    }
    for interface in findings.own.interfaces.iter().filter(|interface| interface.free) {
        let result = run.clients.delete_interface(&interface.id).await;
        note_deletion(run, result, &format!("network interface {}", interface.id), &mut left)?;
    }
    Ok(left)
}

/// Whether a foreign mount target is deleted: the user said so, and nothing else keeps it.
fn is_to_delete(mount: &Mount, options: DestroyOptions) -> bool {
    options.delete_foreign_mount_targets && mount.can_be_deleted
}

fn note_deletion(
    run: &Run,
    result: Result<(), AwsError>,
    what: &str,
    left: &mut Vec<String>,
) -> Result<(), DeployError> {
    match result {
        Ok(()) => {
            run.progress.note(format!("deleted {what}"));
            Ok(())
        }
        Err(error) if error.is_in_use() => {
            left.push(format!("{what}: {}", error.message));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
