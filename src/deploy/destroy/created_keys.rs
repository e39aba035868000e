//! The KMS keys that `infra init` created for a cluster. They are kept: what was encrypted with a key can never be read again once the
//! key is deleted, and KMS deletes keys only after a wait.

use super::plan::DestroyPlan;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients};
use crate::deploy::event::ResourceKind;
use crate::well_known::{KEPT_TAG, KEPT_VALUE};

/// A key that `infra init` created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreatedKey {
    /// The ARN of the key.
    pub(crate) arn: String,
    /// Whether someone has scheduled the deletion of the key.
    is_pending_deletion: bool,
}

/// Data that may be encrypted with a key of the cluster.
const ENCRYPTED: [ResourceKind; 5] = [
    ResourceKind::FileSystem,
    ResourceKind::EtcdSnapshots,
    ResourceKind::DiskSnapshot,
    ResourceKind::Volume,
    ResourceKind::Backup,
];

impl CreatedKey {
    /// Finds the keys among what has the cluster's tag, whether or not cluster.yaml still names them.
    pub(crate) async fn read_all(
        clients: &Clients,
        target: &DestroyTarget,
        tagged: &[String],
    ) -> Result<Vec<Self>, AwsError> {
        if !tagged.iter().any(|arn| is_key(arn)) {
            return Ok(Vec::new());
        }
        let arns = clients.tagged_with_all(&[target.tag(), (KEPT_TAG, KEPT_VALUE)]).await?;
        let mut keys = Vec::new();
        for arn in arns.into_iter().filter(|arn| is_key(arn)) {
            match clients.key(&arn).await {
                Ok(Some(key)) => {
                    keys.push(Self { is_pending_deletion: key.is_pending_deletion(), arn });
                }
                // The tagging service learns late of deletions.
                Ok(None) => {}
                Err(error) if error.is_denied() => keys.push(Self { arn, is_pending_deletion: false }),
                Err(error) => return Err(error),
            }
        }
        Ok(keys)
    }

    /// The last part of the ARN.
    pub(crate) fn id(&self) -> &str {
        self.arn.rsplit('/').next().unwrap_or(&self.arn)
    }

    /// Lists the key as kept. The data that is kept must be in the plan by then.
    pub(crate) fn list(&self, region: &str, plan: &mut DestroyPlan) {
        let deletion = if self.is_pending_deletion {
            "its deletion is scheduled".to_owned()
        } else {
            format!(
                "`aws kms schedule-key-deletion --key-id {} --pending-window-in-days 30 --region {region}` schedules its deletion",
                self.arn
            )
        };
        let is_needed = plan.keep.iter().any(|item| ENCRYPTED.contains(&item.resource.kind));
        let loss =
            if is_needed { ", after which kept data that is encrypted with it cannot be read" } else { "" };
        let why = format!("created by `infra init`; {deletion}{loss}");
        plan.keep(ResourceKind::KmsKey, &self.arn, why);
    }
}

fn is_key(arn: &str) -> bool {
    arn.contains(":kms:") && arn.contains(":key/")
}

#[cfg(test)]
mod tests {
    use super::{CreatedKey, DestroyPlan, ResourceKind};

    fn reason(is_pending_deletion: bool, keeps_files: bool) -> String {
        let mut plan = DestroyPlan::default();
        if keeps_files {
            plan.keep(ResourceKind::FileSystem, "fs-1", "holds your files");
        }
        let arn = "arn:aws:kms:us-west-2:111122223333:key/1234abcd".to_owned();
        CreatedKey { arn, is_pending_deletion }.list("us-west-2", &mut plan);
        plan.keep.pop().map(|item| item.why).unwrap_or_default()
    }

    #[test]
    fn the_command_and_its_consequence_are_named() {
        assert_eq!(
            reason(false, false),
            "created by `infra init`; `aws kms schedule-key-deletion --key-id arn:aws:kms:us-west-2:111122223333:key/1234abcd \
             --pending-window-in-days 30 --region us-west-2` schedules its deletion"
        );
        assert!(
            reason(false, true).ends_with(", after which kept data that is encrypted with it cannot be read")
        );
        assert_eq!(reason(true, false), "created by `infra init`; its deletion is scheduled");
    }
}
