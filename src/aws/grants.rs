//! Grants: who else may use a key.

use aws_sdk_kms::types::GrantOperation;

use super::actions;
use super::{AwsError, Clients};

/// What Auto Scaling needs of a key to start machines whose disks are encrypted with it.
const DISK_OPERATIONS: [GrantOperation; 7] = [
    GrantOperation::CreateGrant,
    GrantOperation::Decrypt,
    GrantOperation::DescribeKey,
    GrantOperation::Encrypt,
    GrantOperation::GenerateDataKeyWithoutPlaintext,
    GrantOperation::ReEncryptFrom,
    GrantOperation::ReEncryptTo,
];

/// A grant of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The id of the grant.
    pub id: String,
    /// The name of the grant.
    pub name: String,
    /// Who may use the key.
    pub grantee: String,
}

impl Clients {
    /// Every grant of a key.
    pub(crate) async fn grants(&self, key: &str) -> Result<Vec<Grant>, AwsError> {
        let mut pages = self.kms.list_grants().key_id(key).into_paginator().items().send();
        let mut grants = Vec::new();
        while let Some(next) = pages.next().await {
            let found = next.map_err(AwsError::of(actions::KMS_LIST_GRANTS))?;
            grants.push(Grant {
                id: found.grant_id.unwrap_or_default(),
                name: found.name.unwrap_or_default(),
                grantee: found.grantee_principal.unwrap_or_default(),
            });
        }
        Ok(grants)
    }

    /// Lets a role start machines with disks of this key. The name makes a repetition the same grant.
    pub(crate) async fn grant_disk_use(&self, key: &str, grantee: &str, name: &str) -> Result<(), AwsError> {
        let call = self.kms.create_grant().key_id(key).grantee_principal(grantee).name(name);
        let call = call.set_operations(Some(DISK_OPERATIONS.to_vec()));
        call.send().await.map_err(AwsError::of(actions::KMS_CREATE_GRANT)).map(|_| ())
    }

    /// Revokes a grant; one that is gone is no error.
    pub(crate) async fn revoke_grant(&self, key: &str, id: &str) -> Result<(), AwsError> {
        let call = self.kms.revoke_grant().key_id(key).grant_id(id);
        match call.send().await.map_err(AwsError::of(actions::KMS_REVOKE_GRANT)) {
            Err(error) if error.has_code("NotFoundException") => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
