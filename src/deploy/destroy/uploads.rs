//! What `up` created outside of stacks: the assets in the bucket, and the grant of the KMS key.

use super::plan::DestroyPlan;
use super::scope::DestroyScope;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Leftover, ResourceKind};
use crate::deploy::run::Run;
use crate::plural::count_of;

/// Lists the uploaded assets and the grant as deleted.
pub(crate) fn list_uploads(scope: &DestroyScope, plan: &mut DestroyPlan) {
    for stored in scope.found.stored.iter().filter(|stored| !stored.boot.is_empty()) {
        let count = count_of(stored.boot.len(), "object version");
        plan.delete(ResourceKind::UploadedAssets, stored.address(), count);
    }
    if let Some(grant) = &scope.found.grant {
        plan.delete(ResourceKind::KmsGrant, &grant.id, "lets Auto Scaling use the key for disks");
    }
}

/// Deletes the uploaded assets and the grant; returns the objects that S3 refused to delete.
pub(crate) async fn delete_uploads(run: &Run, scope: &DestroyScope) -> Result<Vec<Leftover>, DeployError> {
    let mut refused = Vec::new();
    for stored in &scope.found.stored {
        refused.extend(stored.delete(run, &stored.boot, "uploaded assets").await?);
    }
    if let (Some(grant), Some(key)) = (&scope.found.grant, &scope.target.kms_key) {
        run.clients.revoke_grant(key, &grant.id).await?;
        run.progress.note("revoked the grant that let Auto Scaling use the key for disks");
    }
    Ok(refused)
}
