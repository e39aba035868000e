//! Removes what Kubernetes made in the network and no stack knows of: load balancers, target groups, groups and their rules, interfaces.

use std::collections::BTreeSet;
use std::time::Duration;

use super::DestroyOptions;
use super::found::Found;
use super::network::NetworkFindings;
use super::target::DestroyTarget;
use crate::aws::AwsError;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::run::Run;
use crate::waiting::Pace;

/// AWS lets go of a load balancer's interfaces a while after the load balancer.
const PATIENCE: Duration = Duration::from_mins(5);

/// Removes what is this cluster's. What cannot go yet is tried again for a while.
pub(crate) async fn sweep_network(
    run: &Run,
    target: &DestroyTarget,
    found: &Found,
    options: DestroyOptions,
) -> Result<(), DeployError> {
    let patience = run.waiting.patience(PATIENCE);
    let mut pace = Pace::of_stack();
    loop {
        let findings = Box::pin(NetworkFindings::read(&run.clients, target, found)).await?;
        let left = sweep_once(run, &findings, &found.in_stacks, options).await?;
        if left.is_empty() {
            return Ok(());
        }
        run.progress.report(Event::Waiting { waiting_for: left.clone() });
        let ended = |end| Run::still_running(end, "the removal of what Kubernetes made in the network");
        if !patience.pause(pace.next_pause()).await.map_err(ended)? {
            // Whatever is in the way is named by the stack that cannot go.
            run.progress.warn(format!("could not be removed yet: {}", left.join(", ")));
            return Ok(());
        }
    }
}

/// One round; gives what did not go.
async fn sweep_once(
    run: &Run,
    findings: &NetworkFindings,
    in_stacks: &BTreeSet<String>,
    options: DestroyOptions,
) -> Result<Vec<String>, DeployError> {
    let mut left = Vec::new();
    for balancer in &findings.own.balancers {
        let gone = run.clients.delete_load_balancer(balancer).await;
        note(run, gone, &format!("load balancer {}", balancer.name), &mut left)?;
    }
    for group in &findings.target_groups {
        let gone = run.clients.delete_target_group(&group.arn).await;
        note(run, gone, &format!("target group {}", group.name), &mut left)?;
    }
    let asked_for = findings.foreign.mounts.iter();
    let asked_for = asked_for.filter(|mount| options.remove_foreign_mount_targets && mount.removable);
    for mount in findings.own.mounts.iter().chain(asked_for) {
        let gone = run.clients.delete_mount_target(&mount.id).await;
        note(run, gone, &format!("mount target {} of {}", mount.id, mount.file_system), &mut left)?;
    }
    for group in &findings.own.groups {
        for ours in in_stacks.iter().filter(|id| id.starts_with("sg-")) {
            if let Err(error) = run.clients.revoke_rules_naming(ours, &group.id).await
                && !error.has_code("InvalidGroup.NotFound")
                && !error.has_code("InvalidPermission.NotFound")
            {
                return Err(error.into());
            }
        }
        let gone = run.clients.delete_group(&group.id).await;
        note(run, gone, &format!("security group {}", group.id), &mut left)?;
    }
    for interface in findings.own.interfaces.iter().filter(|interface| interface.free) {
        let gone = run.clients.delete_interface(&interface.id).await;
        note(run, gone, &format!("network interface {}", interface.id), &mut left)?;
    }
    Ok(left)
}

/// Codes with which AWS says "not yet".
const NOT_YET: [&str; 7] = [
    "DependencyViolation",
    "ResourceInUse",
    "InvalidGroup.InUse",
    "InvalidNetworkInterface.InUse",
    "InvalidParameterValue",
    "OperationNotPermitted",
    "IncorrectMountTargetState",
];

fn note(
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
        Err(error) if NOT_YET.iter().any(|code| error.has_code(code)) => {
            left.push(format!("{what}: {}", error.message));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
