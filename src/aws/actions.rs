//! Every action that this program asks AWS for, in one table: calls name their action from here, and `infra policy` reads it.

/// What an action can be confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// AWS accepts no narrower resource for the action, or the resource is not known yet.
    Everything,
    /// The cluster's stacks and their change sets.
    Stacks,
    /// The change sets that infra creates.
    ChangeSets,
    /// New change sets of the cluster's stacks, with the cluster's tag and without resources that exist already.
    NewChangeSets,
    /// The bucket that assets are in.
    Bucket,
    /// The cluster's own objects in it.
    Objects,
    /// The cluster's KMS key.
    Key,
    /// The region's KMS keys: the account's default for disks may be any.
    Keys,
    /// What `infra init` does before there is a cluster: no policy of a cluster's operator allows it.
    NewKey,
    /// The grant of that key for disks.
    DiskGrants,
    /// The roles that AWS's services have for themselves.
    ServiceRoles,
    /// The cluster's Auto Scaling groups.
    Groups,
    /// What stacks of the cluster created, and tagged.
    OfStacks,
    /// What stacks, or Kubernetes, created in the cluster's network, and tagged.
    InNetwork,
    /// The cluster's records in hosted zones.
    Records,
}

/// An action as IAM names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// The name of the action.
    pub name: &'static str,
    /// What it can be confined to.
    pub scope: Scope,
}

macro_rules! actions {
    ($($constant:ident = $name:literal, $scope:ident;)*) => {
        $(pub(super) const $constant: Action = Action { name: $name, scope: Scope::$scope };)*

        /// Every action of the table.
        pub(crate) const ACTIONS: &[Action] = &[$($constant),*];
    };
}

actions! {
    AUTOSCALING_DESCRIBE_AUTO_SCALING_GROUPS = "autoscaling:DescribeAutoScalingGroups", Everything;
    AUTOSCALING_DESCRIBE_SCALING_ACTIVITIES = "autoscaling:DescribeScalingActivities", Everything;
    AUTOSCALING_DESCRIBE_SCHEDULED_ACTIONS = "autoscaling:DescribeScheduledActions", Everything;
    AUTOSCALING_SUSPEND_PROCESSES = "autoscaling:SuspendProcesses", Groups;
    AUTOSCALING_TERMINATE_INSTANCE_IN_AUTO_SCALING_GROUP = "autoscaling:TerminateInstanceInAutoScalingGroup", Groups;
    AUTOSCALING_UPDATE_AUTO_SCALING_GROUP = "autoscaling:UpdateAutoScalingGroup", Groups;
    CFN_CANCEL_UPDATE_STACK = "cloudformation:CancelUpdateStack", Stacks;
    CFN_CONTINUE_UPDATE_ROLLBACK = "cloudformation:ContinueUpdateRollback", Stacks;
    CFN_CREATE_CHANGE_SET = "cloudformation:CreateChangeSet", NewChangeSets;
    CFN_DELETE_CHANGE_SET = "cloudformation:DeleteChangeSet", Stacks;
    CFN_DELETE_STACK = "cloudformation:DeleteStack", Stacks;
    CFN_DESCRIBE_CHANGE_SET = "cloudformation:DescribeChangeSet", Stacks;
    CFN_DESCRIBE_EVENTS = "cloudformation:DescribeEvents", Stacks;
    CFN_DESCRIBE_STACK_DRIFT_DETECTION_STATUS = "cloudformation:DescribeStackDriftDetectionStatus", Everything;
    CFN_DESCRIBE_STACK_EVENTS = "cloudformation:DescribeStackEvents", Stacks;
    CFN_DESCRIBE_STACK_RESOURCE_DRIFTS = "cloudformation:DescribeStackResourceDrifts", Stacks;
    CFN_DESCRIBE_STACKS = "cloudformation:DescribeStacks", Everything;
    CFN_DETECT_STACK_DRIFT = "cloudformation:DetectStackDrift", Stacks;
    CFN_ESTIMATE_TEMPLATE_COST = "cloudformation:EstimateTemplateCost", Everything;
    CFN_EXECUTE_CHANGE_SET = "cloudformation:ExecuteChangeSet", Stacks;
    CFN_GET_STACK_POLICY = "cloudformation:GetStackPolicy", Stacks;
    CFN_GET_TEMPLATE = "cloudformation:GetTemplate", Stacks;
    CFN_LIST_STACK_RESOURCES = "cloudformation:ListStackResources", Stacks;
    CFN_LIST_STACKS = "cloudformation:ListStacks", Everything;
    CFN_ROLLBACK_STACK = "cloudformation:RollbackStack", Stacks;
    CFN_SET_STACK_POLICY = "cloudformation:SetStackPolicy", Stacks;
    CFN_UPDATE_TERMINATION_PROTECTION = "cloudformation:UpdateTerminationProtection", Stacks;
    EC2_DELETE_NETWORK_INTERFACE = "ec2:DeleteNetworkInterface", InNetwork;
    EC2_DELETE_SECURITY_GROUP = "ec2:DeleteSecurityGroup", InNetwork;
    EC2_DELETE_SNAPSHOT = "ec2:DeleteSnapshot", OfStacks;
    EC2_DESCRIBE_ADDRESSES = "ec2:DescribeAddresses", Everything;
    EC2_DESCRIBE_AVAILABILITY_ZONES = "ec2:DescribeAvailabilityZones", Everything;
    EC2_DESCRIBE_CAPACITY_RESERVATIONS = "ec2:DescribeCapacityReservations", Everything;
    EC2_DESCRIBE_DHCP_OPTIONS = "ec2:DescribeDhcpOptions", Everything;
    EC2_DESCRIBE_IMAGES = "ec2:DescribeImages", Everything;
    EC2_DESCRIBE_INSTANCE_TYPE_OFFERINGS = "ec2:DescribeInstanceTypeOfferings", Everything;
    EC2_DESCRIBE_INSTANCE_TYPES = "ec2:DescribeInstanceTypes", Everything;
    EC2_DESCRIBE_INSTANCES = "ec2:DescribeInstances", Everything;
    EC2_DESCRIBE_INTERNET_GATEWAYS = "ec2:DescribeInternetGateways", Everything;
    EC2_DESCRIBE_KEY_PAIRS = "ec2:DescribeKeyPairs", Everything;
    EC2_DESCRIBE_LAUNCH_TEMPLATES = "ec2:DescribeLaunchTemplates", Everything;
    EC2_DESCRIBE_NAT_GATEWAYS = "ec2:DescribeNatGateways", Everything;
    EC2_DESCRIBE_NETWORK_INTERFACES = "ec2:DescribeNetworkInterfaces", Everything;
    EC2_DESCRIBE_PLACEMENT_GROUPS = "ec2:DescribePlacementGroups", Everything;
    EC2_DESCRIBE_REGIONS = "ec2:DescribeRegions", Everything;
    EC2_DESCRIBE_ROUTE_TABLES = "ec2:DescribeRouteTables", Everything;
    EC2_DESCRIBE_SECURITY_GROUPS = "ec2:DescribeSecurityGroups", Everything;
    EC2_DESCRIBE_SNAPSHOTS = "ec2:DescribeSnapshots", Everything;
    EC2_DESCRIBE_SPOT_PRICE_HISTORY = "ec2:DescribeSpotPriceHistory", Everything;
    EC2_DESCRIBE_SUBNETS = "ec2:DescribeSubnets", Everything;
    EC2_DESCRIBE_VOLUMES = "ec2:DescribeVolumes", Everything;
    EC2_DESCRIBE_VPC_ATTRIBUTE = "ec2:DescribeVpcAttribute", Everything;
    EC2_DESCRIBE_VPC_ENDPOINTS = "ec2:DescribeVpcEndpoints", Everything;
    EC2_DESCRIBE_VPCS = "ec2:DescribeVpcs", Everything;
    EC2_GET_CONSOLE_OUTPUT = "ec2:GetConsoleOutput", OfStacks;
    EC2_GET_EBS_DEFAULT_KMS_KEY_ID = "ec2:GetEbsDefaultKmsKeyId", Everything;
    EC2_REVOKE_SECURITY_GROUP_INGRESS = "ec2:RevokeSecurityGroupIngress", OfStacks;
    EFS_DELETE_FILE_SYSTEM = "elasticfilesystem:DeleteFileSystem", OfStacks;
    EFS_DELETE_MOUNT_TARGET = "elasticfilesystem:DeleteMountTarget", OfStacks;
    EFS_DESCRIBE_FILE_SYSTEMS = "elasticfilesystem:DescribeFileSystems", Everything;
    EFS_DESCRIBE_MOUNT_TARGET_SECURITY_GROUPS = "elasticfilesystem:DescribeMountTargetSecurityGroups", Everything;
    EFS_DESCRIBE_MOUNT_TARGETS = "elasticfilesystem:DescribeMountTargets", Everything;
    ELB_DELETE_LOAD_BALANCER = "elasticloadbalancing:DeleteLoadBalancer", InNetwork;
    ELB_DELETE_TARGET_GROUP = "elasticloadbalancing:DeleteTargetGroup", InNetwork;
    ELB_DESCRIBE_LOAD_BALANCERS = "elasticloadbalancing:DescribeLoadBalancers", Everything;
    ELB_DESCRIBE_TAGS = "elasticloadbalancing:DescribeTags", Everything;
    ELB_DESCRIBE_TARGET_GROUPS = "elasticloadbalancing:DescribeTargetGroups", Everything;
    IAM_GET_ROLE = "iam:GetRole", ServiceRoles;
    KMS_CREATE_ALIAS = "kms:CreateAlias", NewKey;
    KMS_CREATE_GRANT = "kms:CreateGrant", DiskGrants;
    KMS_CREATE_KEY = "kms:CreateKey", NewKey;
    KMS_DESCRIBE_KEY = "kms:DescribeKey", Keys;
    KMS_ENABLE_KEY_ROTATION = "kms:EnableKeyRotation", NewKey;
    KMS_GET_KEY_POLICY = "kms:GetKeyPolicy", Keys;
    KMS_LIST_ALIASES = "kms:ListAliases", NewKey;
    KMS_LIST_GRANTS = "kms:ListGrants", Key;
    KMS_LIST_KEYS = "kms:ListKeys", NewKey;
    KMS_LIST_RESOURCE_TAGS = "kms:ListResourceTags", NewKey;
    KMS_REVOKE_GRANT = "kms:RevokeGrant", Key;
    PRICING_GET_PRODUCTS = "pricing:GetProducts", Everything;
    ROUTE53_CHANGE_RESOURCE_RECORD_SETS = "route53:ChangeResourceRecordSets", Records;
    ROUTE53_GET_CHANGE = "route53:GetChange", Everything;
    ROUTE53_GET_HOSTED_ZONE = "route53:GetHostedZone", Everything;
    ROUTE53_LIST_HOSTED_ZONES = "route53:ListHostedZones", Everything;
    ROUTE53_LIST_RESOURCE_RECORD_SETS = "route53:ListResourceRecordSets", Everything;
    S3_CREATE_BUCKET = "s3:CreateBucket", Bucket;
    S3_DELETE_OBJECT_VERSION = "s3:DeleteObjectVersion", Objects;
    S3_GET_BUCKET_PUBLIC_ACCESS_BLOCK = "s3:GetBucketPublicAccessBlock", Bucket;
    S3_GET_BUCKET_VERSIONING = "s3:GetBucketVersioning", Bucket;
    S3_GET_LIFECYCLE_CONFIGURATION = "s3:GetLifecycleConfiguration", Bucket;
    S3_GET_OBJECT = "s3:GetObject", Objects;
    S3_LIST_BUCKET = "s3:ListBucket", Bucket;
    S3_LIST_BUCKET_VERSIONS = "s3:ListBucketVersions", Bucket;
    S3_PUT_BUCKET_POLICY = "s3:PutBucketPolicy", Bucket;
    S3_PUT_BUCKET_PUBLIC_ACCESS_BLOCK = "s3:PutBucketPublicAccessBlock", Bucket;
    S3_PUT_BUCKET_VERSIONING = "s3:PutBucketVersioning", Bucket;
    S3_PUT_ENCRYPTION_CONFIGURATION = "s3:PutEncryptionConfiguration", Bucket;
    S3_PUT_LIFECYCLE_CONFIGURATION = "s3:PutLifecycleConfiguration", Bucket;
    S3_PUT_OBJECT = "s3:PutObject", Objects;
    QUOTAS_GET_AWS_DEFAULT_SERVICE_QUOTA = "servicequotas:GetAWSDefaultServiceQuota", Everything;
    QUOTAS_GET_SERVICE_QUOTA = "servicequotas:GetServiceQuota", Everything;
    STS_GET_CALLER_IDENTITY = "sts:GetCallerIdentity", Everything;
    TAG_GET_RESOURCES = "tag:GetResources", Everything;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ACTIONS;

    #[test]
    fn no_action_is_listed_twice() {
        let names: BTreeSet<&str> = ACTIONS.iter().map(|action| action.name).collect();
        assert_eq!(names.len(), ACTIONS.len());
    }
}
