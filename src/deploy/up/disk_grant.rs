//! Lets Auto Scaling start machines whose disks are encrypted with the cluster's own key.

use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::disk_grant::grant_name;

/// Creates the grant unless it exists.
pub(crate) async fn ensure_disk_grant(run: &Run, cluster: &Cluster) -> Result<(), DeployError> {
    if !cluster.encrypt_disks_with_kms_key {
        return Ok(());
    }
    let key = cluster.kms_key.as_str();
    let account = run.clients.caller_identity().await?.account;
    let role = format!(
        "arn:{}:iam::{account}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
        cluster.region.partition()
    );
    let name = grant_name(cluster.name.as_str());
    let grants = run.clients.grants(key).await?;
    if !grants.iter().any(|grant| grant.name == name && grant.grantee == role) {
        run.clients.grant_disk_use(key, &role, &name).await?;
        run.progress.note(format!("granted Auto Scaling the use of {key} for disks"));
    }
    Ok(())
}
