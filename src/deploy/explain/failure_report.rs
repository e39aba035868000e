//! A failed operation into the one report that the user sees.

use super::hint::hint_for;
use super::root_cause::find_root_cause;
use crate::aws::{AUTO_SCALING_GROUP_TYPE, StackEvent, StackStatus};
use crate::blueprint::StackPart;
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Evidence, FailedResource, FailureReport};
use crate::deploy::run::Run;
use crate::deploy::state::description::describe_resource;
use crate::deploy::state::step::{NextStep, next_step};

/// An operation on a stack that failed.
#[derive(Debug)]
pub(crate) struct FailedOperation {
    /// The status of the stack now.
    pub(crate) status: StackStatus,
    /// Everything that happened in the operation, oldest first.
    pub(crate) events: Vec<StackEvent>,
    /// The output of machines that never signalled.
    pub(crate) evidence: Vec<Evidence>,
    /// The launch failure for which the operation was ended.
    pub(crate) gave_up: Option<LaunchGivenUp>,
}

/// An Auto Scaling group for which waiting longer was pointless.
#[derive(Debug)]
pub(crate) struct LaunchGivenUp {
    /// The name of the Auto Scaling group in the template.
    pub(crate) resource: String,
    /// Why its machines do not start, in AWS's words.
    pub(crate) reason: String,
}

/// One cause for a failed operation.
pub(crate) async fn report_failure(
    run: &Run,
    part: &StackPart,
    name: &str,
    failed: FailedOperation,
) -> Result<FailureReport, DeployError> {
    let cluster = run.cluster.as_ref();
    let cause = find_root_cause(&run.clients, cluster, part, &failed.events).await?;
    let (resource, reason) = match (failed.gave_up, cause) {
        (Some(LaunchGivenUp { resource, reason }), _) => {
            let description = cluster
                .map_or_else(|| resource.clone(), |cluster| describe_resource(cluster, part, &resource));
            let kind = AUTO_SCALING_GROUP_TYPE.to_owned();
            (Some(FailedResource { path: resource, kind, description }), reason)
        }
        (None, Some(cause)) => (cause.resource, cause.reason),
        (None, None) => (None, "CloudFormation gives no reason".to_owned()),
    };
    // Whatever the reason was, the help for this status comes first.
    let hint = if is_stuck(&failed.status) {
        hint_for(StackStatus::UpdateRollbackFailed.as_str())
    } else {
        hint_for(&with_machine(cluster, part, resource.as_ref(), &reason))
    };
    Ok(FailureReport {
        stack: name.to_owned(),
        status: failed.status,
        hint,
        resource,
        reason,
        evidence: failed.evidence,
    })
}

/// Whether only `infra rollback` helps with this status.
pub(crate) fn is_stuck(status: &StackStatus) -> bool {
    next_step(Some(status)) == NextStep::RollBack
}

/// AWS's messages about quotas name no machine, and the right quota depends on it.
fn with_machine(
    cluster: Option<&Cluster>,
    part: &StackPart,
    resource: Option<&FailedResource>,
    reason: &str,
) -> String {
    let Some(cluster) = cluster else { return reason.to_owned() };
    let machine = match part {
        StackPart::Pool(name) => cluster.pool(name).map(|pool| pool.instance_types[0].to_string()),
        StackPart::ControlPlane if resource.is_some_and(|resource| resource.path.starts_with("Etcd")) => {
            Some(cluster.etcd.instance_type.to_string())
        }
        StackPart::ControlPlane => Some(cluster.controllers.instance_type.to_string()),
        StackPart::Network | StackPart::Storage => None,
    };
    machine.map_or_else(|| reason.to_owned(), |machine| format!("{reason} {machine}"))
}
