//! The command that removes something by hand.

use crate::aws::ObjectVersion;

/// Parts of ARNs, and the command that takes what stands behind them.
const KINDS: [(&str, &str); 15] = [
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
    (":placement-group/", "ec2 delete-placement-group --group-name"),
    (":file-system/", "efs delete-file-system --file-system-id"),
];

/// The same for what is removed by its whole ARN.
const KINDS_BY_ARN: [(&str, &str); 4] = [
    (":loadbalancer/app/", "elbv2 delete-load-balancer --load-balancer-arn"),
    (":loadbalancer/net/", "elbv2 delete-load-balancer --load-balancer-arn"),
    (":listener/", "elbv2 delete-listener --listener-arn"),
    (":targetgroup/", "elbv2 delete-target-group --target-group-arn"),
];

/// The command that removes what an ARN names.
pub(crate) fn removal(arn: &str, region: &str) -> String {
    let id = arn.rsplit(['/', ':']).next().unwrap_or(arn);
    if let Some((_, command)) = KINDS_BY_ARN.iter().find(|(part, _)| arn.contains(part)) {
        return format!("aws {command} {arn} --region {region}");
    }
    if arn.contains(":loadbalancer/") {
        return format!("aws elb delete-load-balancer --load-balancer-name {id} --region {region}");
    }
    match KINDS.iter().find(|(part, _)| arn.contains(part)) {
        Some((_, command)) => format!("aws {command} {id} --region {region}"),
        None => format!("look at {arn} in the console"),
    }
}

/// The command that removes a snapshot of a disk.
pub(crate) fn snapshot_removal(id: &str, region: &str) -> String {
    format!("aws ec2 delete-snapshot --snapshot-id {id} --region {region}")
}

/// The command that removes a file system.
pub(crate) fn file_system_removal(id: &str, region: &str) -> String {
    format!("aws efs delete-file-system --file-system-id {id} --region {region}")
}

/// The command that removes one version of an object for good.
pub(crate) fn object_removal(bucket: &str, object: &ObjectVersion) -> String {
    let version = object.version.as_deref().unwrap_or("null");
    format!("aws s3api delete-object --bucket {bucket} --key '{}' --version-id {version}", object.key)
}

/// The command that removes a backup of AWS Backup, which keeps those of file systems in a vault of this name unless told otherwise.
pub(crate) fn backup_removal(arn: &str, region: &str) -> String {
    format!(
        "aws backup delete-recovery-point --backup-vault-name aws/efs/automatic-backup-vault --recovery-point-arn {arn} --region {region}"
    )
}

/// Whether an ARN names a backup of AWS Backup, which carries the tags of what it is a backup of.
pub(crate) fn is_backup(arn: &str) -> bool {
    arn.contains(":backup:") && arn.contains(":recovery-point:")
}

#[cfg(test)]
mod tests {
    use super::{is_backup, removal};

    #[test]
    fn backups_are_known_by_their_arns() {
        assert!(is_backup(
            "arn:aws:backup:us-west-2:111122223333:recovery-point:1EB3B5E7-9EB0-435A-A80B-108B488B0D45"
        ));
        assert!(!is_backup("arn:aws:backup:us-west-2:111122223333:backup-vault:Default"));
        assert!(!is_backup("arn:aws:elasticfilesystem:us-west-2:111122223333:file-system/fs-1"));
    }

    #[test]
    fn both_generations_of_load_balancers_have_their_own_command() {
        let of = |name: &str| removal(&format!("arn:aws:elasticloadbalancing:r:1:{name}"), "r");
        assert_eq!(of("loadbalancer/a1"), "aws elb delete-load-balancer --load-balancer-name a1 --region r");
        assert_eq!(
            of("loadbalancer/net/a1/2"),
            "aws elbv2 delete-load-balancer --load-balancer-arn arn:aws:elasticloadbalancing:r:1:loadbalancer/net/a1/2 --region r"
        );
    }

    #[test]
    fn what_nobody_here_makes_is_looked_at() {
        assert_eq!(removal("arn:aws:sqs:r:1:queue", "r"), "look at arn:aws:sqs:r:1:queue in the console");
    }
}
