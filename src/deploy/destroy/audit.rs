//! Looks for anything of the cluster that is left, by tag and by name, and confirms each hit where it lives.

use schemars::JsonSchema;
use serde::Serialize;

use super::DestroyOptions;
use super::found::Found;
use super::removal::{is_backup, removal, snapshot_removal};
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients};
use crate::deploy::state::live::LiveCluster;

/// Something that is left although it should not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// What it is, with what AWS calls it.
    pub what: String,
    /// The command that removes it.
    pub remove: String,
}

/// What of a cluster is there now.
pub(crate) async fn look_again(clients: &Clients, target: &DestroyTarget) -> Result<Found, AwsError> {
    let live = LiveCluster::read(clients, &target.name, target.cluster.as_ref()).await?;
    Box::pin(Found::read(clients, target, live)).await
}

/// What is left of a cluster that the plan did not mean to leave.
pub async fn audit(
    clients: &Clients,
    target: &DestroyTarget,
    before: &Found,
    now: &Found,
    options: DestroyOptions,
) -> Result<Vec<Leftover>, AwsError> {
    let region = clients.region().unwrap_or_default();
    let mut left = Vec::new();
    for live in now.live.stacks.values() {
        let name = &live.stack.name;
        left.push(leftover(
            format!("stack {name} ({})", live.stack.status),
            format!("aws cloudformation delete-stack --stack-name {name} --region {region}"),
        ));
    }
    left.extend(tagged(clients, target, before, now, options).await?);
    left.extend(named(clients, target, now, region).await?);
    // Machines that are left need both.
    if !now.live.has_machines() {
        left.extend(now.stored.iter().filter(|stored| !stored.boot.is_empty()).map(|stored| {
            leftover(
                format!("{} objects below {}", stored.boot.len(), stored.address()),
                "run `infra destroy` again".to_owned(),
            )
        }));
        if let (Some(grant), Some(key)) = (&now.grant, &target.kms_key) {
            left.push(leftover(
                format!("grant {}", grant.id),
                format!("aws kms revoke-grant --key-id {key} --grant-id {} --region {region}", grant.id),
            ));
        }
    }
    if options.delete_data {
        left.extend(now.stored.iter().filter(|stored| !stored.backups.is_empty()).map(|stored| {
            leftover(
                format!("{} etcd snapshots below {}snapshots/", stored.backups.len(), stored.address()),
                "run `infra destroy --delete-data` again".to_owned(),
            )
        }));
        for snapshot in clients.snapshots_of(&before.volumes, target.tag()).await? {
            left.push(leftover(
                format!("disk snapshot {}", snapshot.id),
                snapshot_removal(&snapshot.id, region),
            ));
        }
    }
    left.sort_by(|one, other| one.what.cmp(&other.what));
    left.dedup();
    Ok(left)
}

/// What carries a tag of the cluster. The search tells of things for a while after they are gone, so each is looked at.
async fn tagged(
    clients: &Clients,
    target: &DestroyTarget,
    before: &Found,
    now: &Found,
    options: DestroyOptions,
) -> Result<Vec<Leftover>, AwsError> {
    let (key, value) = target.tag();
    let mut arns = clients.tagged(key, value).await?;
    arns.extend(clients.tagged(&target.kubernetes_tag(), "owned").await?);
    arns.sort();
    arns.dedup();
    let kept = kept_ids(before, now, options);
    let mut left = Vec::new();
    for arn in arns {
        let id = arn.rsplit(['/', ':']).next().unwrap_or(&arn).to_owned();
        // What stands in a stack that is left is left with it.
        let in_live_stacks = now.in_stacks.contains(&id) || now.in_stacks.contains(&arn);
        if kept.contains(&id) || in_live_stacks || arn.contains(":cloudformation:") || is_backup(&arn) {
            continue;
        }
        if clients.is_there(&arn).await? {
            left.push(leftover(arn.clone(), removal(&arn, clients.region().unwrap_or_default())));
        }
    }
    Ok(left)
}

/// What the search by tag does not list: groups of machines, and zones, which have no region.
async fn named(
    clients: &Clients,
    target: &DestroyTarget,
    now: &Found,
    region: &str,
) -> Result<Vec<Leftover>, AwsError> {
    let mut left = Vec::new();
    for group in now.live.groups.iter().filter(|group| !now.in_stacks.contains(&group.name)) {
        left.push(leftover(
            format!("Auto Scaling group {}", group.name),
            format!(
                "aws autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name {} --region {region}",
                group.name
            ),
        ));
    }
    let name = format!("{}.infra.internal", target.name);
    for zone in clients.private_zones(&name, region).await? {
        if !now.in_stacks.contains(&zone.id) {
            left.push(leftover(
                format!("private zone {} ({})", zone.id, zone.name),
                format!("aws route53 delete-hosted-zone --id {}", zone.id),
            ));
        }
    }
    Ok(left)
}

/// What the plan said would stay.
fn kept_ids(before: &Found, now: &Found, options: DestroyOptions) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let file_systems = before.file_systems.iter().chain(&now.file_systems);
    let staying = file_systems.filter(|system| !system.is_made() || !options.delete_data);
    kept.extend(staying.map(|system| system.id.clone()));
    // A VPC that was there before may carry any tag that people like.
    kept.extend(before.vpc.iter().filter(|(_, goes)| !goes).map(|(id, _)| id.clone()));
    let outputs = before.live.outputs().into_values().filter(|id| id.starts_with("subnet-"));
    kept.extend(outputs.filter(|id| !before.in_stacks.contains(id)));
    if !options.delete_data {
        kept.extend(now.snapshots.iter().map(|snapshot| snapshot.id.clone()));
    }
    kept
}

fn leftover(what: String, remove: String) -> Leftover {
    Leftover { what, remove }
}
