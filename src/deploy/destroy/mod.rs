//! `infra destroy`: deletes a cluster, in an order that works, and reports what is left.
//!
//! In: a cluster's name, its description unless that is lost, and AWS. Out: a plan of what is deleted and kept, and after the work what
//! could not be deleted. It works from what exists, and never deletes a foreign resource.

mod audit;
mod created_keys;
mod data;
mod deletion_command;
mod file_systems;
mod found;
mod network;
mod owner;
mod plan;
mod private_hosted_zone;
mod public_record;
mod scope;
mod services;
mod snapshot_rule;
mod stack_contents;
mod stacks;
mod steps;
mod stored_objects;
mod sweep;
mod target;
mod uploads;

use audit::DestroyAudit;
use file_systems::Ownership;
use found::FoundResources;
use network::NetworkFindings;
pub(crate) use plan::DestroyPlan;
pub(crate) use scope::{DestroyOptions, DestroyScope};
pub(crate) use steps::plan_destroy;
use steps::{Undeleted, run_steps};
pub(crate) use target::DestroyTarget;

use super::error::DeployError;
use super::event::{Leftover, Stuck};
use super::run::Run;
use crate::aws::{AwsError, Clients};
use crate::kube::ApiServer;

/// What is left after a destroy.
#[derive(Clone, Debug, Default)]
pub(crate) struct DestroyOutcome {
    /// Stacks that could not be deleted.
    pub stuck: Vec<Stuck>,
    /// Stacks that were created meanwhile; what they need is kept.
    pub created_meanwhile: Vec<String>,
    /// What is in the network of stacks that could not be deleted, with its owners.
    pub blockers: Vec<String>,
    /// Everything else that is left.
    pub leftovers: Vec<Leftover>,
    /// File systems that were kept on purpose and can be used again.
    pub kept_file_systems: Vec<String>,
    /// The ARNs of the KMS keys that `infra init` created, which are always kept.
    pub created_keys: Vec<String>,
}

impl DestroyOutcome {
    /// Whether nothing is left but what was kept on purpose.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.stuck.is_empty() && self.created_meanwhile.is_empty() && self.leftovers.is_empty()
    }
}

/// Deletes a cluster; returns what is left.
pub(crate) async fn destroy_cluster(
    run: &Run,
    scope: &DestroyScope,
    api: Option<&ApiServer>,
) -> Result<DestroyOutcome, DeployError> {
    let undeleted = run_steps(run, scope, api).await?;
    run.progress.stage("checking for leftovers");
    let now = scope.read_again(&run.clients).await?;
    let Undeleted { stuck, created_meanwhile, refused } = undeleted;
    let mut leftovers = Box::pin(find_leftovers(&run.clients, scope, &now)).await?;
    // What AWS refused to delete is reported with its reason, and once.
    leftovers.retain(|left| refused.iter().all(|refused| refused.resource != left.resource));
    leftovers.extend(refused);
    let blockers = if stuck.is_empty() { Vec::new() } else { name_blockers(run, scope).await? };
    let kept_file_systems = kept_file_systems(scope, &now);
    let created_keys = created_keys(&now);
    Ok(DestroyOutcome { stuck, created_meanwhile, blockers, leftovers, kept_file_systems, created_keys })
}

/// Reports what is left of a cluster of which nothing is to be deleted.
pub(crate) async fn audit_destroyed_cluster(
    clients: &Clients,
    scope: &DestroyScope,
) -> Result<DestroyOutcome, AwsError> {
    Ok(DestroyOutcome {
        leftovers: Box::pin(find_leftovers(clients, scope, &scope.found)).await?,
        kept_file_systems: kept_file_systems(scope, &scope.found),
        created_keys: created_keys(&scope.found),
        ..DestroyOutcome::default()
    })
}

async fn find_leftovers(
    clients: &Clients,
    scope: &DestroyScope,
    now: &FoundResources,
) -> Result<Vec<Leftover>, AwsError> {
    DestroyAudit { clients, scope, now }.find_leftovers().await
}

/// The file systems that the plan keeps and that still exist.
fn kept_file_systems(scope: &DestroyScope, now: &FoundResources) -> Vec<String> {
    let is_there = |id: &str| now.data.file_systems.iter().any(|system| system.id == id);
    let kept = scope.found.data.file_systems.iter().filter(|system| match system.ownership {
        // Nothing names an adopted one once the stacks are deleted.
        Ownership::Adopted => true,
        Ownership::Created => !scope.options.delete_data && is_there(&system.id),
        Ownership::InUse(_) => false,
    });
    kept.map(|system| system.id.clone()).collect()
}

fn created_keys(now: &FoundResources) -> Vec<String> {
    now.created_keys.iter().map(|key| key.arn.clone()).collect()
}

/// Names what is in the network of stacks that could not be deleted.
async fn name_blockers(run: &Run, scope: &DestroyScope) -> Result<Vec<String>, DeployError> {
    let Some(network) = scope.found.own_network() else { return Ok(Vec::new()) };
    let now = NetworkFindings::read(&run.clients, &scope.target, network).await?;
    let mut blockers = now.foreign.descriptions(network.stacks);
    blockers.extend(now.own.descriptions(network.stacks));
    Ok(blockers)
}
