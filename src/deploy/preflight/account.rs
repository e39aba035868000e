//! Whose account and which region this is, and the roles that AWS's services have in it.

use super::finding::SubjectFindings;
use super::join_all::join_all;
use super::{Finding, Preflight};
use crate::aws::{AwsError, CallerIdentity, Clients};
use crate::config::{Cluster, FileSystemSource};

/// A role that a service needs in the account.
struct ServiceRole {
    name: &'static str,
    service: &'static str,
    what_for: &'static str,
    /// Why the role must exist first; if none, the service creates it with the first use, if the caller may create it.
    why_first: Option<&'static str>,
}

pub(crate) fn check_account(
    preflight: &Preflight<'_>,
    caller: &CallerIdentity,
    region: Option<&str>,
) -> Vec<Finding> {
    let cluster = &preflight.blueprint.cluster;
    let mut findings = SubjectFindings::about("account");
    if region != Some(cluster.region.as_str()) {
        let asked = region.unwrap_or("none");
        findings.refuse(
            format!("the region in use is {asked}, but cluster.yaml names {}", cluster.region),
            "every check and every stack would be in the wrong region",
            format!("leave out --region, or pass {}", cluster.region),
        );
    }
    let partition = cluster.region.partition().as_str();
    if let Some(callers) = account_field(&caller.arn, 1)
        && callers != partition
    {
        findings.refuse(
            format!(
                "the credentials belong to partition {callers}, but {} belongs to {partition}",
                cluster.region
            ),
            "an account of one partition does not exist in another",
            format!("use credentials of an account in {partition}"),
        );
    }
    if let Some(keys) = account_field(cluster.kms_key.as_str(), 4)
        && keys != caller.account
    {
        findings.warn(
            format!("the key in kmsKeyArn belongs to account {keys}, the caller to {}", caller.account),
            "a key of another account works only if both its policy and the IAM roles of this account allow it",
            format!(
                "make sure that the key's policy allows account {}, or use a key of that account",
                caller.account
            ),
        );
    }
    findings.into_list()
}

pub(crate) async fn check_service_roles(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("service-linked roles");
    let roles = service_roles(&preflight.blueprint.cluster);
    let answers = join_all(roles.iter().map(|role| clients.role_exists(role.name))).await;
    for (role, answer) in roles.iter().zip(answers) {
        if findings.take(answer)? != Some(false) {
            continue;
        }
        let what = format!("the account has no IAM role {}", role.name);
        let command = format!("aws iam create-service-linked-role --aws-service-name {}", role.service);
        match role.why_first {
            Some(why) => findings.refuse(what, why, format!("run: {command}")),
            None => findings.warn(
                what,
                format!(
                    "AWS creates it with the first {} if the caller may iam:CreateServiceLinkedRole",
                    role.what_for
                ),
                format!("if the caller may not, someone who may runs: {command}"),
            ),
        }
    }
    Ok(findings.into_list())
}

fn service_roles(cluster: &Cluster) -> Vec<ServiceRole> {
    let mut roles = vec![
        ServiceRole {
            name: "AWSServiceRoleForAutoScaling",
            service: "autoscaling.amazonaws.com",
            what_for: "Auto Scaling group",
            why_first: cluster.encrypt_disks_with_kms_key.then_some(
                "encryptDisksWithKmsKey: true grants it the use of the key before the first Auto Scaling group exists, and KMS accepts only a role that exists",
            ),
        },
        ServiceRole {
            name: "AWSServiceRoleForElasticLoadBalancing",
            service: "elasticloadbalancing.amazonaws.com",
            what_for: "load balancer",
            why_first: None,
        },
    ];
    if cluster.pools.iter().any(|pool| pool.spot) {
        roles.push(ServiceRole {
            name: "AWSServiceRoleForEC2Spot",
            service: "spot.amazonaws.com",
            what_for: "spot machine",
            why_first: Some("without it no spot machine starts, and Auto Scaling cannot create it"),
        });
    }
    let created = |source: &FileSystemSource| matches!(source, FileSystemSource::Created { .. });
    if cluster.file_system.as_ref().is_some_and(|file_system| created(&file_system.source)) {
        roles.push(ServiceRole {
            name: "AWSServiceRoleForAmazonElasticFileSystem",
            service: "elasticfilesystem.amazonaws.com",
            what_for: "file system",
            why_first: None,
        });
    }
    roles
}

/// A field of an ARN.
fn account_field(arn: &str, place: usize) -> Option<&str> {
    arn.split(':').nth(place)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{account_field, check_account, service_roles};
    use crate::aws::CallerIdentity;
    use crate::blueprint::Blueprint;
    use crate::config;
    use crate::deploy::preflight::{Preflight, Severity};
    use crate::deploy::state::live::LiveCluster;

    const FILE: &str = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, \
        availabilityZones: [us-west-2a], kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd', \
        pools: [{name: gpu, instanceType: g5.xlarge, spot: true}], storage: {efs: {}}}";

    #[test]
    fn region_partition_and_account_must_fit() -> Result<(), Box<dyn std::error::Error>> {
        let blueprint = Blueprint::new(config::validate(Path::new("cluster.yaml"), FILE)?.value)?;
        let preflight = Preflight {
            blueprint: &blueprint,
            s3_uri: None,
            create_bucket: false,
            image: None,
            blocks: &[],
            now: time::OffsetDateTime::UNIX_EPOCH,
            certificates: &[],
            live: &LiveCluster::default(),
        };
        let caller = |account: &str, partition: &str| CallerIdentity {
            account: account.to_owned(),
            arn: format!("arn:{partition}:iam::{account}:user/ada"),
        };
        assert!(check_account(&preflight, &caller("111122223333", "aws"), Some("us-west-2")).is_empty());
        let findings = check_account(&preflight, &caller("444455556666", "aws-cn"), Some("cn-north-1"));
        let severities: Vec<Severity> = findings.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Refused, Severity::Refused, Severity::Warning]);
        assert_eq!(check_account(&preflight, &caller("111122223333", "aws"), None).len(), 1);
        assert_eq!(service_roles(&blueprint.cluster).len(), 4);
        Ok(())
    }

    #[test]
    fn fields_of_names_are_found() {
        assert_eq!(account_field("arn:aws:kms:us-west-2:111122223333:key/1", 4), Some("111122223333"));
        assert_eq!(account_field("", 4), None);
    }
}
