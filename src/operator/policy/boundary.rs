//! The most that the IAM roles of a cluster may be allowed. An operator writes the policies of these roles, through stacks; the boundary is
//! what keeps them from writing an administrator's.
//!
//! It allows what `stacks/*.yaml.tera` let machines do, for all machines together (`tests/aws/test_roles.py` compares them).

use serde_json::{Value, json};

use super::arns::ClusterArns;
use super::statement::{allow_actions, allow_if};
use crate::well_known::AUTOSCALER_TAG_PREFIX;

/// What machines look up, and what AWS knows no resource for.
const EVERYWHERE: [&str; 29] = [
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "autoscaling:DescribeTags",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTopology",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeRegions",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcs",
    "ec2:GetInstanceTypesFromInstanceRequirements",
    // From repositories of other accounts, too: a policy in managedPolicyArns may allow it, and their owners must.
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:BatchImportUpstreamImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "elasticloadbalancing:Describe*",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
];

/// What the cloud controller manager does with load balancers that exist.
const LOAD_BALANCERS: [&str; 13] = [
    "elasticloadbalancing:AddTags",
    "elasticloadbalancing:Apply*",
    "elasticloadbalancing:AttachLoadBalancerToSubnets",
    "elasticloadbalancing:ConfigureHealthCheck",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateLoadBalancerListeners",
    "elasticloadbalancing:CreateLoadBalancerPolicy",
    "elasticloadbalancing:Delete*",
    "elasticloadbalancing:Deregister*",
    "elasticloadbalancing:DetachLoadBalancerFromSubnets",
    "elasticloadbalancing:Modify*",
    "elasticloadbalancing:Register*",
    "elasticloadbalancing:SetLoadBalancerPolicies*",
];

pub(super) fn boundary_statements(arns: &ClusterArns<'_>) -> Vec<Value> {
    let ec2 = |resource: &str| arns.regional("ec2", resource);
    let requested = json!({"StringEquals": {format!("aws:RequestTag/{}", arns.kubernetes_tag()): "owned"}});
    let [mut tagging, mut balancer_tagging] = [requested.clone(), requested.clone()];
    tagging["StringEquals"]["ec2:CreateAction"] = json!("CreateSecurityGroup");
    balancer_tagging["StringEquals"]["elasticloadbalancing:CreateAction"] =
        json!(["CreateListener", "CreateLoadBalancer", "CreateTargetGroup"]);
    let mut statements = vec![
        allow_actions(json!(EVERYWHERE), "*"),
        allow_actions(json!(["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"]), arns.objects()),
        allow_actions("s3:GetBucketVersioning", arns.bucket()),
        allow_if("s3:ListBucket", arns.bucket(), json!({"StringLike": {"s3:prefix": arns.object_prefix()}})),
        allow_if(json!(["kms:Decrypt", "kms:GenerateDataKey"]), arns.key(), arns.through("s3")),
        allow_actions("cloudformation:SignalResource", arns.stacks()),
        allow_if("ec2:AttachVolume", json!([ec2("instance/*"), ec2("volume/*")]), arns.of_stacks()),
        allow_if("ec2:CreateSecurityGroup", ec2("security-group/*"), requested.clone()),
        allow_actions("ec2:CreateSecurityGroup", ec2("vpc/*")),
        allow_if("ec2:CreateTags", ec2("security-group/*"), tagging),
        allow_if(
            json!([
                "ec2:AuthorizeSecurityGroupIngress",
                "ec2:DeleteSecurityGroup",
                "ec2:RevokeSecurityGroupIngress"
            ]),
            ec2("security-group/*"),
            arns.of_kubernetes(),
        ),
        allow_if("elasticloadbalancing:AddTags", "*", balancer_tagging),
        allow_if(
            json!(["elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"]),
            "*",
            requested,
        ),
        allow_if(json!(LOAD_BALANCERS), "*", arns.of_kubernetes()),
        allow_if(
            "iam:CreateServiceLinkedRole",
            arns.service_roles(),
            json!({"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}}),
        ),
        allow_if(
            json!(["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]),
            "*",
            json!({"StringEquals": {
                format!("aws:ResourceTag/{AUTOSCALER_TAG_PREFIX}{}", arns.cluster.name): "owned"}}),
        ),
    ];
    if arns.cluster.encrypt_disks_with_kms_key {
        statements.push(allow_if(
            "kms:CreateGrant",
            arns.key(),
            json!({"Bool": {"kms:GrantIsForAWSResource": "true"}}),
        ));
        statements.push(allow_if(
            json!([
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:GenerateDataKeyWithoutPlaintext",
                "kms:ReEncrypt*"
            ]),
            arns.key(),
            arns.through("ec2"),
        ));
    }
    statements
}
