//! A failed operation into the one report that the user sees.

use super::hint::hint_for;
use super::root_cause::find_root_cause;
use crate::blueprint::StackPart;
use crate::config::Cluster;
use crate::deploy::error::{DeployError, FailedResource, FailureReport};
use crate::deploy::run::Run;
use crate::deploy::stack::status::{Step, next_step};
use crate::deploy::stack::watch::{Followed, GROUP_TYPE, GaveUp};
use crate::deploy::state::description::describe_resource;

/// One cause for a failed operation.
pub(crate) async fn report_failure(
    run: &Run,
    part: &StackPart,
    name: &str,
    followed: Followed,
) -> Result<FailureReport, DeployError> {
    let cluster = run.cluster.as_ref();
    let cause = find_root_cause(&run.clients, cluster, part, &followed.events).await?;
    let (resource, reason) = match (followed.gave_up, cause) {
        (Some(GaveUp { resource, reason }), _) => {
            let description = cluster
                .map_or_else(|| resource.clone(), |cluster| describe_resource(cluster, part, &resource));
            let kind = GROUP_TYPE.to_owned();
            (Some(FailedResource { path: resource, kind, description }), reason)
        }
        (None, Some(cause)) => (cause.resource, cause.reason),
        (None, None) => (None, "CloudFormation gives no reason".to_owned()),
    };
    // Whatever the reason was, the way out comes first.
    let hint = if is_stuck(&followed.status) {
        hint_for("UPDATE_ROLLBACK_FAILED")
    } else {
        hint_for(&with_machine(cluster, part, resource.as_ref(), &reason))
    };
    Ok(FailureReport {
        stack: name.to_owned(),
        status: followed.status,
        hint,
        resource,
        reason,
        evidence: followed.evidence,
    })
}

/// Whether only `infra rollback` leads on from a status.
pub(crate) fn is_stuck(status: &str) -> bool {
    next_step(Some(status)) == Step::RollBack
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
        StackPart::Pool(name) => cluster
            .pools
            .iter()
            .find(|pool| pool.name.as_str() == name)
            .map(|pool| pool.instance_types[0].to_string()),
        StackPart::ControlPlane if resource.is_some_and(|resource| resource.path.starts_with("Etcd")) => {
            Some(cluster.etcd.instance_type.to_string())
        }
        StackPart::ControlPlane => Some(cluster.controllers.instance_type.to_string()),
        StackPart::Network | StackPart::Storage => None,
    };
    machine.map_or_else(|| reason.to_owned(), |machine| format!("{reason} {machine}"))
}
