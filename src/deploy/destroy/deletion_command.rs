//! The command that deletes a resource by hand: from an ARN, or from a kind and an id.

use crate::aws::ObjectVersion;
use crate::deploy::event::{Leftover, Resource, ResourceKind};

/// What names a resource in the command that deletes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    /// The last part of the ARN.
    Id,
    /// The whole ARN; the resource's name is the part before the last.
    ArnOfName,
    /// The whole ARN, which is the only name of the resource.
    Arn,
}

/// A part of ARNs that identifies a kind, and the command that deletes resources of the kind.
struct Form {
    part: &'static str,
    kind: ResourceKind,
    command: &'static str,
    argument: Argument,
}

const fn by_id(part: &'static str, kind: ResourceKind, command: &'static str) -> Form {
    Form { part, kind, command, argument: Argument::Id }
}

const fn by_arn(part: &'static str, kind: ResourceKind, command: &'static str) -> Form {
    Form { part, kind, command, argument: Argument::ArnOfName }
}

const FORMS: [Form; 20] = [
    by_id(":instance/", ResourceKind::Machine, "ec2 terminate-instances --instance-ids"),
    by_id(":volume/", ResourceKind::Volume, "ec2 delete-volume --volume-id"),
    by_id(":snapshot/", ResourceKind::DiskSnapshot, "ec2 delete-snapshot --snapshot-id"),
    by_id(
        ":network-interface/",
        ResourceKind::NetworkInterface,
        "ec2 delete-network-interface --network-interface-id",
    ),
    by_id(":security-group/", ResourceKind::SecurityGroup, "ec2 delete-security-group --group-id"),
    by_id(":subnet/", ResourceKind::Subnet, "ec2 delete-subnet --subnet-id"),
    by_id(":vpc/", ResourceKind::Vpc, "ec2 delete-vpc --vpc-id"),
    by_id(
        ":internet-gateway/",
        ResourceKind::InternetGateway,
        "ec2 delete-internet-gateway --internet-gateway-id",
    ),
    by_id(":route-table/", ResourceKind::RouteTable, "ec2 delete-route-table --route-table-id"),
    by_id(":natgateway/", ResourceKind::NatGateway, "ec2 delete-nat-gateway --nat-gateway-id"),
    by_id(":elastic-ip/", ResourceKind::ElasticIp, "ec2 release-address --allocation-id"),
    by_id(
        ":launch-template/",
        ResourceKind::LaunchTemplate,
        "ec2 delete-launch-template --launch-template-id",
    ),
    by_id(":vpc-endpoint/", ResourceKind::VpcEndpoint, "ec2 delete-vpc-endpoints --vpc-endpoint-ids"),
    by_id(":placement-group/", ResourceKind::PlacementGroup, "ec2 delete-placement-group --group-name"),
    by_id(":file-system/", ResourceKind::FileSystem, "efs delete-file-system --file-system-id"),
    by_arn(
        ":loadbalancer/app/",
        ResourceKind::LoadBalancer,
        "elbv2 delete-load-balancer --load-balancer-arn",
    ),
    by_arn(
        ":loadbalancer/net/",
        ResourceKind::LoadBalancer,
        "elbv2 delete-load-balancer --load-balancer-arn",
    ),
    by_arn(":targetgroup/", ResourceKind::TargetGroup, "elbv2 delete-target-group --target-group-arn"),
    // After those of the second generation, whose ARNs also begin so.
    by_id(":loadbalancer/", ResourceKind::LoadBalancer, "elb delete-load-balancer --load-balancer-name"),
    Form {
        part: ":listener/",
        kind: ResourceKind::Listener,
        command: "elbv2 delete-listener --listener-arn",
        argument: Argument::Arn,
    },
];

/// What an ARN names, as a leftover.
pub(crate) fn leftover_of_arn(arn: &str, region: &str) -> Leftover {
    let Some(form) = FORMS.iter().find(|form| arn.contains(form.part)) else {
        let resource = Resource::new(ResourceKind::Other, arn);
        return Leftover { resource, why: None, fix: format!("find {arn} in the AWS console") };
    };
    let mut parts = arn.rsplit(['/', ':']);
    let id = match form.argument {
        Argument::Id => parts.next(),
        Argument::ArnOfName => parts.nth(1),
        Argument::Arn => Some(arn),
    };
    let id = id.unwrap_or(arn);
    let argument = if form.argument == Argument::Id { id } else { arn };
    Leftover {
        resource: Resource::new(form.kind, id),
        why: None,
        fix: format!("aws {} {argument} --region {region}", form.command),
    }
}

/// The command that deletes a snapshot of a disk.
pub(crate) fn snapshot_deletion(id: &str, region: &str) -> String {
    format!("aws ec2 delete-snapshot --snapshot-id {id} --region {region}")
}

/// The command that deletes a file system.
pub(crate) fn file_system_deletion(id: &str, region: &str) -> String {
    format!("aws efs delete-file-system --file-system-id {id} --region {region}")
}

/// The command that deletes one version of an object for good.
pub(crate) fn object_deletion(bucket: &str, object: &ObjectVersion) -> String {
    let version = object.version.as_deref().unwrap_or("null");
    format!("aws s3api delete-object --bucket {bucket} --key '{}' --version-id {version}", object.key)
}

/// The command that deletes a recovery point of AWS Backup, which keeps those of file systems in a vault of this name by default.
pub(crate) fn backup_deletion(arn: &str, region: &str) -> String {
    format!(
        "aws backup delete-recovery-point --backup-vault-name aws/efs/automatic-backup-vault --recovery-point-arn {arn} --region {region}"
    )
}

/// Whether an ARN names a recovery point of AWS Backup, which carries the tags of what it is a backup of.
pub(crate) fn is_backup(arn: &str) -> bool {
    arn.contains(":backup:") && arn.contains(":recovery-point:")
}

#[cfg(test)]
mod tests {
    use super::{is_backup, leftover_of_arn};
    use crate::deploy::event::{Resource, ResourceKind};

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
        let of = |name: &str| leftover_of_arn(&format!("arn:aws:elasticloadbalancing:r:1:{name}"), "r");
        let resource = Resource::new(ResourceKind::LoadBalancer, "a1");
        let (older, newer) = (of("loadbalancer/a1"), of("loadbalancer/net/a1/2"));
        assert_eq!(older.fix, "aws elb delete-load-balancer --load-balancer-name a1 --region r");
        assert_eq!(
            newer.fix,
            "aws elbv2 delete-load-balancer --load-balancer-arn arn:aws:elasticloadbalancing:r:1:loadbalancer/net/a1/2 --region r"
        );
        assert_eq!((&older.resource, &newer.resource), (&resource, &resource));
    }

    #[test]
    fn an_arn_of_an_unknown_kind_is_its_own_id() {
        let leftover = leftover_of_arn("arn:aws:sqs:r:1:queue", "r");
        assert_eq!(leftover.resource, Resource::new(ResourceKind::Other, "arn:aws:sqs:r:1:queue"));
        assert_eq!(leftover.fix, "find arn:aws:sqs:r:1:queue in the AWS console");
    }
}
