//! What IAM calls an operation, and which operations a run can do without.

/// Operations that have another name in IAM.
const OTHERWISE: [(&str, &str); 11] = [
    ("s3:DeleteObjects", "s3:DeleteObjectVersion"),
    ("s3:GetBucketLifecycleConfiguration", "s3:GetLifecycleConfiguration"),
    ("s3:GetPublicAccessBlock", "s3:GetBucketPublicAccessBlock"),
    ("s3:HeadBucket", "s3:ListBucket"),
    ("s3:HeadObject", "s3:GetObject"),
    ("s3:ListObjectVersions", "s3:ListBucketVersions"),
    ("s3:ListObjectsV2", "s3:ListBucket"),
    ("s3:PutBucketEncryption", "s3:PutEncryptionConfiguration"),
    ("s3:PutBucketLifecycleConfiguration", "s3:PutLifecycleConfiguration"),
    ("s3:PutPublicAccessBlock", "s3:PutBucketPublicAccessBlock"),
    ("tagging:GetResources", "tag:GetResources"),
];

/// Operations without which a cluster can be created.
const DISPENSABLE: [&str; 16] = [
    "s3:GetBucketLifecycleConfiguration",
    "s3:GetBucketVersioning",
    "s3:PutBucketLifecycleConfiguration",
    "s3:GetPublicAccessBlock",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:GetEbsDefaultKmsKeyId",
    "elasticfilesystem:DescribeFileSystems",
    "iam:GetRole",
    "kms:DescribeKey",
    "kms:GetKeyPolicy",
    "servicequotas:GetServiceQuota",
];

/// The permission that an operation takes.
pub fn permission_for(operation: &str) -> &str {
    let known = OTHERWISE.iter().find(|(name, _)| *name == operation);
    known.map_or(operation, |(_, permission)| permission)
}

/// Whether a run reports that it may not do it, and continues: what preflight checks, and the rule for old snapshots.
pub fn is_dispensable(operation: &str) -> bool {
    DISPENSABLE.contains(&operation)
}
