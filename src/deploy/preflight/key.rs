//! The key that protects uploads and the file system, and the one that disks get.

use super::finding::{SubjectFindings, join_names};
use super::key_policy::{KeyPolicy, KeyUse, Verdict};
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, Key};
use crate::blueprint::StackPart;
use crate::config::Cluster;

/// The key that EBS uses unless another one is chosen.
const EBS_OWN_KEY: &str = "alias/aws/ebs";

/// What EC2 does with the key of a disk in the name of whoever starts a machine, creates a volume or attaches one.
const DISK_ACTIONS: [&str; 6] = [
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
];

/// What machines do with the cluster's key through S3: they read what they boot from, and etcd members write snapshots.
const OBJECT_ACTIONS: [&str; 2] = ["kms:Decrypt", "kms:GenerateDataKey"];

pub(crate) async fn check_disk_key(
    preflight: &Preflight<'_>,
    clients: &Clients,
    account: &str,
) -> Result<Vec<Finding>, AwsError> {
    let cluster = &preflight.blueprint.cluster;
    let arn = cluster.kms_key.as_str();
    let mut findings = SubjectFindings::about("key");
    let (key, disks) =
        tokio::join!(Box::pin(clients.key(arn)), Box::pin(default_disk_key(cluster, clients, account)));
    match findings.take(key)? {
        None => {}
        Some(None) => findings.refuse(
            format!("there is no KMS key {arn}"),
            "uploads and the file system are encrypted with it",
            "correct kmsKeyArn; `aws kms list-keys` lists yours, and `infra init --create-key` creates one",
        ),
        Some(Some(key)) => {
            check_key(&key, &mut findings);
            // KMS shows the policy of a key to its own account only.
            if cluster.kms_key.account() == account
                && let Some(text) = findings.take(clients.key_policy(arn).await)?
            {
                check_policy(cluster, &text, &mut findings);
            }
        }
    }
    if let Some(Some(key)) = findings.take(disks)? {
        report_disk_key(preflight, account, &key, &mut findings);
    }
    Ok(findings.into_list())
}

/// The account's default key for disks, where it is used and nothing opens it to machines. Disks are always encrypted, whether or not
/// the account does so by default.
async fn default_disk_key(
    cluster: &Cluster,
    clients: &Clients,
    account: &str,
) -> Result<Option<String>, AwsError> {
    if cluster.encrypt_disks_with_kms_key {
        return Ok(None);
    }
    let Some(name) = clients.default_disk_key().await? else { return Ok(None) };
    if name.ends_with(EBS_OWN_KEY) {
        return Ok(None);
    }
    let Some(key) = clients.key(&name).await? else { return Ok(Some(name)) };
    if key.managed_by_aws {
        return Ok(None);
    }
    let is_open = match clients.key_policy(&key.arn).await {
        Ok(text) => is_open_to_disks(cluster, account, &text),
        // A policy that may not be read is not known to allow anything.
        Err(error) if error.is_denied() => false,
        Err(error) => return Err(error),
    };
    Ok((!is_open).then_some(name))
}

/// Whether a key's policy lets everyone in the account use it for disks, as the policy of AWS's own key does.
fn is_open_to_disks(cluster: &Cluster, account: &str, policy: &str) -> bool {
    let through = service_host(cluster, "ec2");
    KeyPolicy::parse(policy).is_ok_and(|policy| {
        let is_open = |action| policy.allows_everyone(KeyUse { action, account, through: &through });
        DISK_ACTIONS.into_iter().all(|action| is_open(action) == Verdict::Allowed)
    })
}

fn report_disk_key(preflight: &Preflight<'_>, account: &str, key: &str, findings: &mut SubjectFindings) {
    let cluster = &preflight.blueprint.cluster;
    let region = &cluster.region;
    let what =
        format!("the account's default EBS key, with which disks are encrypted, is a key of your own: {key}");
    let reset = format!(
        "make AWS's own key the default again: aws ec2 reset-ebs-default-kms-key-id --region {region}"
    );
    // The volumes of a cluster that exists have their key already, so only new machines are in question.
    if preflight.live.stacks.contains_key(&StackPart::ControlPlane) {
        let role = format!(
            "arn:{}:iam::{account}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
            region.partition()
        );
        findings.warn(
            what,
            "new machines fail at launch unless Auto Scaling's service-linked role may use that key",
            format!(
                "{reset}; or let the role use it: aws kms create-grant --key-id {key} --grantee-principal {role} --operations \
                 Encrypt Decrypt ReEncryptFrom ReEncryptTo GenerateDataKey GenerateDataKeyWithoutPlaintext DescribeKey \
                 CreateGrant --region {region}"
            ),
        );
        return;
    }
    findings.refuse(
        what,
        "its policy does not open it to the account through EC2: machines would fail at launch, and etcd members could not attach \
         their volumes",
        format!(
            "set encryptDisksWithKmsKey: true in cluster.yaml: disks then get the key in kmsKeyArn, which may be this one, with the \
             permissions that takes; or {reset}"
        ),
    );
}

/// Checks that what IAM roles are allowed counts for the key.
fn check_policy(cluster: &Cluster, text: &str, findings: &mut SubjectFindings) {
    let (arn, account) = (cluster.kms_key.as_str(), cluster.kms_key.account());
    let print = format!("aws kms get-key-policy --key-id {arn} --output text --region {}", cluster.region);
    let policy = match KeyPolicy::parse(text) {
        Ok(policy) => policy,
        Err(error) => {
            findings.warn(
                format!("the policy of the KMS key {arn} could not be checked: {error}"),
                "machines read what they boot from only if it lets IAM policies allow that",
                format!("read it: {print}"),
            );
            return;
        }
    };
    let through_s3 = service_host(cluster, "s3");
    let through_ec2 = service_host(cluster, "ec2");
    let uses = OBJECT_ACTIONS.into_iter().map(|action| KeyUse { action, account, through: &through_s3 });
    let disks = cluster.encrypt_disks_with_kms_key.then_some(DISK_ACTIONS).into_iter().flatten();
    let uses = uses.chain(disks.map(|action| KeyUse { action, account, through: &through_ec2 }));
    let (mut refused, mut conditions) = (Vec::new(), Vec::new());
    for key_use in uses {
        match policy.delegates(key_use) {
            Verdict::Allowed => {}
            Verdict::NotAllowed | Verdict::Denied => refused.push(key_use.action),
            Verdict::Conditional(keys) => conditions.extend(keys),
        }
    }
    refused.sort_unstable();
    refused.dedup();
    conditions.sort();
    conditions.dedup();
    if !refused.is_empty() {
        let root = format!("arn:{}:iam::{account}:root", cluster.region.partition());
        findings.warn(
            format!("the policy of the KMS key {arn} does not let IAM policies allow {}", join_names(refused)),
            "machines use the key with IAM roles that `up` creates, which no key policy can name beforehand: none could read what it \
             boots from",
            format!(
                "add a statement to the key's policy that allows kms:* to {root}, as the default policy of a key does, and delete \
                 what denies it; {print}"
            ),
        );
    } else if !conditions.is_empty() {
        findings.warn(
            format!("whether IAM policies can allow the use of the KMS key {arn} depends on conditions: {}", join_names(conditions)),
            "machines use the key with IAM roles that `up` creates: if its policy excludes them, none can read what it boots from",
            format!("make sure that the conditions hold for every IAM role of account {account}; {print}"),
        );
    }
}

/// How KMS names a service through which a key is used.
fn service_host(cluster: &Cluster, service: &str) -> String {
    format!("{service}.{}.{}", cluster.region, cluster.region.partition().dns_suffix())
}

fn check_key(key: &Key, findings: &mut SubjectFindings) {
    let Key { arn, state, spec, usage, .. } = key;
    if !key.is_enabled() {
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
