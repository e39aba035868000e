//! What CloudFormation does in the caller's name, allowed only to CloudFormation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::arns::ClusterArns;
use super::statement::{allow_actions, allow_if};
use crate::check::handler_permissions;
use crate::config::FileSystemSource;

/// Services whose actions AWS lists for types of ours, for features that no stack of ours uses.
const UNUSED_SERVICES: [&str; 6] =
    ["cognito-idp", "managed-fleets", "ssm", "vpc-lattice", "vpce", "cloudwatch"];

/// Actions for features that no stack of ours uses, and which reach other resources; and what would remove a role's boundary, or let
/// someone else assume it.
const UNUSED_ACTIONS: [&str; 12] = [
    "ec2:AcceptAddressTransfer",
    "ec2:AttachVpnGateway",
    "ec2:CopyVolumes",
    "ec2:DetachVpnGateway",
    "elasticfilesystem:CreateReplicationConfiguration",
    "elasticfilesystem:DeleteFileSystemPolicy",
    "elasticfilesystem:DeleteReplicationConfiguration",
    "elasticfilesystem:PutFileSystemPolicy",
    "elasticloadbalancing:ModifyCapacityReservation",
    "elasticloadbalancing:ModifyIpPools",
    "iam:DeleteRolePermissionsBoundary",
    "iam:UpdateAssumeRolePolicy",
];

/// Actions with a statement of their own.
const SINGLE_ACTIONS: [&str; 5] = [
    "ec2:CreateVolume",
    "iam:CreateServiceLinkedRole",
    "iam:PassRole",
    "kms:CreateGrant",
    "route53:ChangeResourceRecordSets",
];

/// Actions that give a role more than it has.
const ROLE_GRANTS: [&str; 4] =
    ["iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"];

/// Actions on what exists. CloudFormation tags each of these resources as it creates it (`tagOnCreate` in the schema of its type), so that
/// the cluster's tag is there when it changes or deletes one. Interfaces are not among them: those of mount targets have no tag.
const BY_TAG: &[&str] = &[
    "ec2:AssociateAddress",
    "ec2:AssociateRouteTable",
    "ec2:AttachInternetGateway",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateLaunchTemplateVersion",
    "ec2:CreateRoute",
    "ec2:DeleteInternetGateway",
    "ec2:DeleteLaunchTemplate",
    "ec2:DeleteNatGateway",
    "ec2:DeleteRoute",
    "ec2:DeleteRouteTable",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVolume",
    "ec2:DeleteVpc",
    "ec2:DeleteVpcEndpoints",
    "ec2:DetachInternetGateway",
    "ec2:DisassociateAddress",
    "ec2:DisassociateRouteTable",
    "ec2:ModifyVolume",
    "ec2:ModifyVpcEndpoint",
    "ec2:ReleaseAddress",
    "ec2:ReplaceRoute",
    "ec2:ReplaceRouteTableAssociation",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:UpdateSecurityGroupRuleDescriptionsEgress",
    "ec2:UpdateSecurityGroupRuleDescriptionsIngress",
    "elasticfilesystem:CreateMountTarget",
    "elasticfilesystem:DeleteFileSystem",
    "elasticfilesystem:DeleteMountTarget",
    "elasticfilesystem:ModifyMountTargetSecurityGroups",
    "elasticfilesystem:PutBackupPolicy",
    "elasticfilesystem:PutLifecycleConfiguration",
    "elasticfilesystem:UpdateFileSystem",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:DeleteListener",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:ModifyListener",
    "elasticloadbalancing:ModifyLoadBalancerAttributes",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:RegisterTargets",
    "elasticloadbalancing:SetSecurityGroups",
];

pub(super) fn cloudformation_statements(arns: &ClusterArns<'_>) -> Vec<Value> {
    let sorted = SortedActions::new();
    let mut statements = vec![
        allow_if(
            "iam:PassRole",
            arns.roles(),
            json!({"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}),
        ),
        allow_if(
            "iam:CreateServiceLinkedRole",
            arns.service_roles(),
            json!({"StringEquals": {"iam:AWSServiceName": [
                "autoscaling.amazonaws.com", "elasticfilesystem.amazonaws.com",
                "elasticloadbalancing.amazonaws.com", "spot.amazonaws.com"]}}),
        ),
        only_through_cloudformation(allow_if(json!(ROLE_GRANTS), arns.roles(), arns.has_boundary())),
        only_through_cloudformation(allow_actions(json!(sorted.roles), arns.roles_and_profiles())),
        only_through_cloudformation(allow_actions(json!(sorted.key), arns.key())),
        only_through_cloudformation(allow_if(
            "kms:CreateGrant",
            arns.key(),
            json!({"Bool": {"kms:GrantIsForAWSResource": "true"}}),
        )),
        only_through_cloudformation(allow_actions(json!(sorted.groups), arns.groups())),
        only_through_cloudformation(allow_if(
            "route53:ChangeResourceRecordSets",
            arns.hosted_zone(None),
            arns.private_records(),
        )),
        // Without the snapshot that it could be made from, which may be another team's.
        only_through_cloudformation(allow_actions("ec2:CreateVolume", arns.regional("ec2", "volume/*"))),
        only_through_cloudformation(allow_if(json!(BY_TAG), "*", arns.of_stacks())),
        only_through_cloudformation(allow_actions(json!(sorted.others), "*")),
    ];
    statements.extend(adopted_file_system(arns));
    statements
}

/// The mount targets of a file system that is not the cluster's own.
fn adopted_file_system(arns: &ClusterArns<'_>) -> Option<Value> {
    match &arns.cluster.file_system.as_ref()?.source {
        FileSystemSource::Adopted { id, create_mount_targets: true } => {
            Some(only_through_cloudformation(allow_actions(
                json!([
                    "elasticfilesystem:CreateMountTarget",
                    "elasticfilesystem:DeleteMountTarget",
                    "elasticfilesystem:ModifyMountTargetSecurityGroups"
                ]),
                arns.regional("elasticfilesystem", &format!("file-system/{id}")),
            )))
        }
        _ => None,
    }
}

/// The statement, for calls that CloudFormation makes only.
fn only_through_cloudformation(mut statement: Value) -> Value {
    statement["Condition"]["ForAnyValue:StringEquals"] =
        json!({"aws:CalledVia": ["cloudformation.amazonaws.com"]});
    statement
}

/// What the handlers of our resource types call, by what it can be limited to.
#[derive(Default)]
struct SortedActions {
    roles: BTreeSet<&'static str>,
    key: BTreeSet<&'static str>,
    groups: BTreeSet<&'static str>,
    others: BTreeSet<&'static str>,
}

impl SortedActions {
    fn new() -> Self {
        let mut sorted = Self::default();
        for action in handler_permissions() {
            let (service, name) = action.split_once(':').unwrap_or_default();
            if UNUSED_SERVICES.contains(&service)
                || UNUSED_ACTIONS.contains(&action)
                || ROLE_GRANTS.contains(&action)
                || SINGLE_ACTIONS.contains(&action)
                || BY_TAG.contains(&action)
            {
                continue;
            }
            match service {
                "iam" => sorted.roles.insert(action),
                "kms" => sorted.key.insert(action),
                "autoscaling" if !name.starts_with("Describe") => sorted.groups.insert(action),
                _ => sorted.others.insert(action),
            };
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::{BY_TAG, ROLE_GRANTS, SINGLE_ACTIONS, UNUSED_ACTIONS};
    use crate::check::handler_permissions;

    #[test]
    fn every_action_named_here_is_one_of_a_handler() {
        let known: Vec<&str> = handler_permissions().into_iter().collect();
        for action in BY_TAG.iter().chain(&ROLE_GRANTS).chain(&SINGLE_ACTIONS).chain(&UNUSED_ACTIONS) {
            assert!(known.contains(action), "{action}");
        }
    }
}
