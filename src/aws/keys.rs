//! KMS keys, and the one that EBS uses where none is named.

use super::actions;
use super::{AwsError, Clients};

/// A KMS key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The ARN of the key.
    pub arn: String,
    /// The state of the key; `Enabled` is the good one.
    pub state: String,
    /// What kind of key it is; `SYMMETRIC_DEFAULT` is the ordinary one.
    pub spec: String,
    /// What it is for (`ENCRYPT_DECRYPT`).
    pub usage: String,
    /// Whether AWS created the key for a service of its own, which may then use it without being asked.
    pub managed_by_aws: bool,
}

impl Key {
    /// Whether the key can be used.
    pub(crate) fn is_enabled(&self) -> bool {
        self.state == "Enabled"
    }

    /// Whether the key will be deleted after a while.
    pub(crate) fn is_pending_deletion(&self) -> bool {
        self.state == "PendingDeletion"
    }
}

impl Clients {
    /// A key by its ARN, id or alias.
    pub(crate) async fn key(&self, name: &str) -> Result<Option<Key>, AwsError> {
        let answer = self.kms.describe_key().key_id(name).send().await;
        match answer.map_err(AwsError::of(actions::KMS_DESCRIBE_KEY)) {
            Ok(answer) => Ok(answer.key_metadata.map(key_of)),
            Err(error) if error.has_code("NotFoundException") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The policy of a key, by the ARN or id of the key; only its own account may read it.
    pub(crate) async fn key_policy(&self, name: &str) -> Result<String, AwsError> {
        let answer = self.kms.get_key_policy().key_id(name).send().await;
        Ok(answer.map_err(AwsError::of(actions::KMS_GET_KEY_POLICY))?.policy.unwrap_or_default())
    }

    /// The name of the key that encrypts disks for which none is named: an ARN, an id or an alias.
    pub(crate) async fn default_disk_key(&self) -> Result<Option<String>, AwsError> {
        let answer = self.ec2.get_ebs_default_kms_key_id().send().await;
        Ok(answer.map_err(AwsError::of(actions::EC2_GET_EBS_DEFAULT_KMS_KEY_ID))?.kms_key_id)
    }
}

pub(super) fn key_of(key: aws_sdk_kms::types::KeyMetadata) -> Key {
    Key {
        state: key.key_state.as_ref().map(ToString::to_string).unwrap_or_default(),
        spec: key.key_spec.as_ref().map(ToString::to_string).unwrap_or_default(),
        usage: key.key_usage.as_ref().map(ToString::to_string).unwrap_or_default(),
        managed_by_aws: key.key_manager == Some(aws_sdk_kms::types::KeyManagerType::Aws),
        arn: key.arn.unwrap_or(key.key_id),
    }
}
