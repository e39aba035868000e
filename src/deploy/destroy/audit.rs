//! Looks for anything of the cluster that is left, by tag and by name, and confirms each hit where it lives.

use serde::Serialize;

use super::DestroyOptions;
use super::found::Found;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients};
use crate::deploy::live::CLUSTER_TAG;

/// Something that is left although it should not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// What it is, with what AWS calls it.
    pub what: String,
    /// The command that removes it.
    pub remove: String,
}

/// What is left of a cluster that the plan did not mean to leave.
pub(super) async fn audit(
    clients: &Clients,
    target: &DestroyTarget,
    before: &Found,
    options: DestroyOptions,
) -> Result<Vec<Leftover>, AwsError> {
    let live = crate::deploy::live::LiveCluster::read(clients, &target.name).await?;
    let now = Found::read(clients, target, live).await?;
    let mut left = Vec::new();
    for live in now.live.stacks.values() {
        let name = &live.stack.name;
        left.push(leftover(
            format!("stack {name} ({})", live.stack.status),
            format!("aws cloudformation delete-stack --stack-name {name}"),
        ));
    }
    let in_live_stacks = |id: &str| now.in_stacks.iter().any(|known| known == id);
    let kept = kept_ids(before, &now, options);
    for arn in clients.tagged(CLUSTER_TAG, target.name.as_str()).await? {
        let id = arn.rsplit(['/', ':']).next().unwrap_or(&arn).to_owned();
        // What stands in a stack that is left is left with it.
        if kept.contains(&id)
            || in_live_stacks(&id)
            || in_live_stacks(&arn)
            || arn.contains(":cloudformation:")
        {
            continue;
        }
        if clients.is_there(&arn).await? {
            left.push(leftover(arn.clone(), removal(&arn, &id)));
        }
    }
    if !now.objects.is_empty()
        && let (Some(place), Some(prefix)) = (&target.place, target.object_prefix())
    {
        let what = format!("{} objects below s3://{}/{prefix}", now.objects.len(), place.bucket());
        left.push(leftover(
            what,
            format!("aws s3 rm --recursive s3://{}/{prefix} --exclude 'snapshots/*'", place.bucket()),
        ));
    }
    if let (Some(grant), Some(key)) = (&now.grant, &target.kms_key) {
        left.push(leftover(
            format!("grant {}", grant.id),
            format!("aws kms revoke-grant --key-id {key} --grant-id {}", grant.id),
        ));
    }
    if options.delete_data {
        let volumes = &before.volumes;
        for snapshot in clients.snapshots_of(volumes).await? {
            left.push(leftover(
                format!("disk snapshot {}", snapshot.id),
                format!("aws ec2 delete-snapshot --snapshot-id {}", snapshot.id),
            ));
        }
    }
    left.sort_by(|one, other| one.what.cmp(&other.what));
    left.dedup();
    Ok(left)
}

/// What the plan said would stay.
fn kept_ids(before: &Found, now: &Found, options: DestroyOptions) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let file_systems = [&before.file_system, &now.file_system];
    kept.extend(
        file_systems
            .into_iter()
            .flatten()
            .filter(|(_, made)| !made || !options.delete_data)
            .map(|(id, _)| id.clone()),
    );
    if !options.delete_data {
        kept.extend(now.snapshots.iter().map(|snapshot| snapshot.id.clone()));
    }
    kept
}

fn leftover(what: String, remove: String) -> Leftover {
    Leftover { what, remove }
}

/// The command that removes something by its ARN.
fn removal(arn: &str, id: &str) -> String {
    let kinds = [
        (":instance/", "ec2 terminate-instances --instance-ids"),
        (":volume/", "ec2 delete-volume --volume-id"),
        (":snapshot/", "ec2 delete-snapshot --snapshot-id"),
        (":network-interface/", "ec2 delete-network-interface --network-interface-id"),
        (":security-group/", "ec2 delete-security-group --group-id"),
        (":subnet/", "ec2 delete-subnet --subnet-id"),
        (":vpc/", "ec2 delete-vpc --vpc-id"),
        (":internet-gateway/", "ec2 delete-internet-gateway --internet-gateway-id"),
        (":route-table/", "ec2 delete-route-table --route-table-id"),
        (":natgateway/", "ec2 delete-nat-gateway --nat-gateway-id"),
        (":elastic-ip/", "ec2 release-address --allocation-id"),
        (":launch-template/", "ec2 delete-launch-template --launch-template-id"),
        (":vpc-endpoint/", "ec2 delete-vpc-endpoints --vpc-endpoint-ids"),
        (":file-system/", "efs delete-file-system --file-system-id"),
    ];
    if arn.contains(":loadbalancer/") {
        return format!("aws elbv2 delete-load-balancer --load-balancer-arn {arn}");
    }
    if arn.contains(":targetgroup/") {
        return format!("aws elbv2 delete-target-group --target-group-arn {arn}");
    }
    let known = kinds.iter().find(|(part, _)| arn.contains(part));
    known
        .map_or_else(|| format!("look at {arn} in the console"), |(_, command)| format!("aws {command} {id}"))
}
