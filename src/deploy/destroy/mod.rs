//! `infra destroy`: takes a cluster away, in an order that works, and says what is left.
//!
//! It works from whatever is there: each step looks first and does nothing where there is nothing. What is not this cluster's is never
//! touched without being named.

mod audit;
mod data;
mod file_systems;
mod found;
mod network;
mod objects;
mod owner;
mod plan;
mod removal;
mod services;
mod sweep;
mod target;

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use audit::look_again;
pub use audit::{Leftover, audit};
pub use found::Found;
pub use plan::{BACKUP, DestroyItem, DestroyPlan, FILE_SYSTEM};
pub use target::DestroyTarget;

use super::error::DeployError;
use super::event::Stuck;
use super::run::Run;
use super::stack::delete::delete_stack;
use super::state::live::is_of_cluster;
use crate::aws::{AwsError, Stack};
use crate::blueprint::StackPart;
use crate::kube::ApiServer;

/// Somebody else may remove records of the private zone at the same time, but hardly this often.
const ROUNDS: usize = 5;

/// How far a destroy may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct DestroyOptions {
    /// Whether files and snapshots go too.
    pub delete_data: bool,
    /// Whether mount targets of others in our subnets are removed.
    pub remove_foreign_mount_targets: bool,
}

/// What a destroy could not take away.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// Stacks that would not go.
    pub stuck: Vec<Stuck>,
    /// Stacks that came meanwhile; what they stand on stays with them.
    pub newcomers: Vec<String>,
    /// File systems that are still there.
    pub file_systems: Vec<String>,
    /// Who stands in the network of those.
    pub blockers: Vec<String>,
    /// Everything else that is left.
    pub leftovers: Vec<Leftover>,
}

impl Remains {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stuck.is_empty() && self.newcomers.is_empty() && self.leftovers.is_empty()
    }

    /// Whether nothing stands on what would go next.
    fn is_free(&self) -> bool {
        self.stuck.is_empty() && self.newcomers.is_empty()
    }
}

/// Takes a cluster away; gives what is left.
pub async fn destroy(
    run: &Run,
    target: &DestroyTarget,
    found: &Found,
    options: DestroyOptions,
    api: Option<&ApiServer>,
) -> Result<Remains, DeployError> {
    let mut remains = Remains::default();
    if let (Some(api), Some((vpc, _))) = (api, &found.vpc) {
        run.progress.stage("removing load balancers of Services");
        services::delete_services(run, target, api, vpc).await?;
    }
    run.progress.stage("removing pools");
    remains.stuck.extend(delete_pools(run, found).await?);
    remains.newcomers = newcomers(run, target, found).await?;
    let mut refused = Vec::new();
    if remains.is_free() {
        refused.extend(remove_record(run, found).await?);
    }
    delete_part(run, target, found, &StackPart::ControlPlane, &mut remains).await?;
    let machines_are_gone = remains.is_free();
    // While the cloud controller manager lives it makes again what is swept.
    let controllers_are_gone = machines_are_gone || !found.live.stacks.contains_key(&StackPart::ControlPlane);
    if remains.newcomers.is_empty() && controllers_are_gone && found.vpc.is_some() {
        run.progress.stage("removing what Kubernetes made in the network");
        sweep::sweep_network(run, target, found, options).await?;
    }
    if remains.is_free() {
        remove_private_records(run, found).await?;
    }
    delete_part(run, target, found, &StackPart::Storage, &mut remains).await?;
    if remains.newcomers.is_empty() {
        remains.newcomers = newcomers(run, target, found).await?;
    }
    if remains.newcomers.is_empty() && machines_are_gone {
        refused.extend(data::delete_boot_objects(run, found).await?);
        if let (Some(grant), Some(key)) = (&found.grant, &target.kms_key) {
            run.clients.revoke_grant(key, &grant.id).await?;
            run.progress.note("ended the grant that let Auto Scaling use the key for disks");
        }
    }
    delete_part(run, target, found, &StackPart::Network, &mut remains).await?;
    if options.delete_data && remains.is_free() {
        run.progress.stage("deleting data");
        refused.extend(data::delete_data(run, target, found).await?);
    }
    run.progress.stage("looking for what is left");
    let now = Box::pin(look_again(&run.clients, target)).await?;
    remains.leftovers = Box::pin(audit(&run.clients, target, found, &now, options)).await?;
    // Of one that was there before the cluster nothing tells any more.
    let adopted = found.file_systems.iter().filter(|system| !system.is_made());
    remains.file_systems = adopted.chain(&now.file_systems).map(|system| system.id.clone()).collect();
    // What AWS refused is told with its reason, not twice.
    remains.leftovers.retain(|left| refused.iter().all(|refused| refused.remove != left.remove));
    remains.leftovers.extend(refused);
    if !remains.stuck.is_empty() {
        remains.blockers = name_blockers(run, target, found).await?;
    }
    Ok(remains)
}

/// Pools need nothing of each other.
async fn delete_pools(run: &Run, found: &Found) -> Result<Vec<Stuck>, DeployError> {
    let mut running = JoinSet::new();
    for (part, live) in found.live.stacks.iter().filter(|(part, _)| matches!(part, StackPart::Pool(_))) {
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

/// Deletes one of the stacks that others stand on, unless one of those is there.
async fn delete_part(
    run: &Run,
    target: &DestroyTarget,
    found: &Found,
    part: &StackPart,
    remains: &mut Remains,
) -> Result<(), DeployError> {
    if !remains.is_free() {
        return Ok(());
    }
    remains.newcomers = newcomers(run, target, found).await?;
    if let Some(live) = found.live.stacks.get(part).filter(|_| remains.is_free()) {
        remains.stuck.extend(delete_stack(run, part, &live.stack).await?);
    }
    Ok(())
}

/// The cluster's stacks that were not there at first: somebody is bringing it up, and nobody agreed to their going.
async fn newcomers(run: &Run, target: &DestroyTarget, found: &Found) -> Result<Vec<String>, DeployError> {
    let is_known = |stack: &Stack| found.live.stacks.values().any(|live| live.stack.arn == stack.arn);
    let stacks = run.clients.stacks().await?.into_iter();
    let new = stacks.filter(|stack| {
        StackPart::from_stack_name(&target.name, &stack.name).is_some()
            && is_of_cluster(stack, &target.name, target.cluster.as_ref())
            && !is_known(stack)
    });
    Ok(new.map(|stack| stack.name).collect())
}

/// The public name, if it still leads to this cluster; gives what somebody has changed since it was read.
async fn remove_record(run: &Run, found: &Found) -> Result<Vec<Leftover>, DeployError> {
    let Some(record) = &found.record else { return Ok(Vec::new()) };
    let mut changed = Vec::new();
    for own in &record.ours {
        if run.clients.remove_address_record(&record.zone, own).await? {
            run.progress.note(format!("removed the record of {}", record.name));
        } else {
            changed.push(Leftover {
                what: format!("record {} of type {}: somebody changed it meanwhile", record.name, own.kind),
                remove: format!(
                    "look at it: aws route53 list-resource-record-sets --hosted-zone-id {} --start-record-name {} --max-items 2",
                    record.zone, record.name
                ),
            });
        }
    }
    Ok(changed)
}

/// Whatever else somebody wrote into the private zone, which cannot go while it holds records. The storage stack removes its own.
async fn remove_private_records(run: &Run, found: &Found) -> Result<(), DeployError> {
    let Some((zone, _)) = &found.private_zone else { return Ok(()) };
    let own: BTreeSet<&str> = found.in_stacks.iter().map(|id| id.trim_end_matches('.')).collect();
    for _ in 0..ROUNDS {
        let records = run.clients.removable_records(zone).await?;
        let foreign: Vec<_> =
            records.into_iter().filter(|record| !own.contains(record.name.as_str())).collect();
        if foreign.is_empty() {
            break;
        }
        if run.clients.remove_records(zone, &foreign).await? {
            run.progress.note(format!("removed {} records of the private zone", foreign.len()));
            break;
        }
    }
    Ok(())
}

/// Who stands where a stack cannot go.
async fn name_blockers(run: &Run, target: &DestroyTarget, found: &Found) -> Result<Vec<String>, DeployError> {
    let now = network::NetworkFindings::read(&run.clients, target, found).await?;
    let mut blockers = now.foreign.descriptions(found);
    blockers.extend(now.own.descriptions(found));
    Ok(blockers)
}
