//! The key that protects uploads and the file system, and the one that disks get.

use super::finding::SubjectFindings;
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, Key};

/// The key that EBS uses unless another one is chosen.
const EBS_OWN_KEY: &str = "alias/aws/ebs";

pub(crate) async fn check(
    preflight: &Preflight<'_>,
    clients: &Clients,
    account: &str,
) -> Result<Vec<Finding>, AwsError> {
    let cluster = &preflight.blueprint.cluster;
    let arn = cluster.kms_key.as_str();
    let mut findings = SubjectFindings::about("key");
    let (key, disks) = tokio::join!(Box::pin(clients.key(arn)), Box::pin(disk_key(preflight, clients)));
    match findings.take(key)? {
        None => {}
        Some(None) => findings.refuse(
            format!("there is no KMS key {arn}"),
            "uploads and the file system are encrypted with it",
            "correct kmsKeyArn; `aws kms list-keys` lists yours",
        ),
        Some(Some(key)) => check_key(&key, &mut findings),
    }
    if let Some(Some(key)) = findings.take(disks)? {
        let role = format!(
            "arn:{}:iam::{account}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
            cluster.region.partition()
        );
        findings.warn(
            format!("disks are encrypted with the account's default EBS key, which is a key of your own: {key}"),
            "machines fail at launch unless Auto Scaling's service-linked role may use it, and etcd members need \
             kms:CreateGrant to claim their volumes",
            format!(
                "set encryptDisksWithKmsKey: true, and `up` arranges both for the key in kmsKeyArn; or: aws kms create-grant \
                 --key-id {key} --grantee-principal {role} --operations Encrypt Decrypt ReEncryptFrom ReEncryptTo \
                 GenerateDataKey GenerateDataKeyWithoutPlaintext DescribeKey CreateGrant"
            ),
        );
    }
    Ok(findings.into_list())
}

/// The account's default key for disks, where it is used and is not AWS's own. Disks are always encrypted, whether or not the account
/// does so by default.
async fn disk_key(preflight: &Preflight<'_>, clients: &Clients) -> Result<Option<String>, AwsError> {
    if preflight.blueprint.cluster.encrypt_disks_with_kms_key {
        return Ok(None);
    }
    let Some(name) = clients.default_disk_key().await? else { return Ok(None) };
    if name.ends_with(EBS_OWN_KEY) {
        return Ok(None);
    }
    let key = clients.key(&name).await?;
    Ok(key.is_none_or(|key| !key.managed_by_aws).then_some(name))
}

fn check_key(key: &Key, findings: &mut SubjectFindings) {
    let Key { arn, state, spec, usage, .. } = key;
    if state != "Enabled" {
        let fix = match state.as_str() {
            "Disabled" => format!("aws kms enable-key --key-id {arn}"),
            "PendingDeletion" => {
                format!("aws kms cancel-key-deletion --key-id {arn} and aws kms enable-key --key-id {arn}")
            }
            _ => "use another key, or wait until this one is enabled".to_owned(),
        };
        findings.refuse(
            format!("the KMS key {arn} is not enabled: {state}"),
            "uploads and the file system are encrypted with it, and machines could not read what they boot from",
            fix,
        );
    }
    if spec != "SYMMETRIC_DEFAULT" || usage != "ENCRYPT_DECRYPT" {
        findings.refuse(
            format!("the key {arn} is a {spec} key for {usage}"),
            "S3, EFS and EBS accept only symmetric keys for encryption",
            "use a SYMMETRIC_DEFAULT key for ENCRYPT_DECRYPT, which `aws kms create-key` creates",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::SubjectFindings;
    use super::check_key;
    use crate::aws::Key;

    fn found(state: &str, spec: &str) -> usize {
        let key = Key {
            arn: "arn".to_owned(),
            state: state.to_owned(),
            spec: spec.to_owned(),
            usage: "ENCRYPT_DECRYPT".to_owned(),
            managed_by_aws: false,
        };
        let mut findings = SubjectFindings::about("key");
        check_key(&key, &mut findings);
        findings.into_list().len()
    }

    #[test]
    fn only_an_enabled_symmetric_key_will_do() {
        assert_eq!(found("Enabled", "SYMMETRIC_DEFAULT"), 0);
        assert_eq!(found("PendingDeletion", "SYMMETRIC_DEFAULT"), 1);
        assert_eq!(found("Disabled", "RSA_2048"), 2);
    }
}
