//! What `destroy` deletes, keeps and leaves, as plans and events carry it: every resource by its kind and its id.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ResourceKind {
    /// A CloudFormation stack.
    Stack,
    /// A record of the cluster's public DNS name.
    PublicRecord,
    /// Records of the private hosted zone that no stack created.
    PrivateRecords,
    /// The cluster's private hosted zone.
    PrivateHostedZone,
    /// A load balancer of either generation.
    LoadBalancer,
    /// A listener of a load balancer.
    Listener,
    /// A target group.
    TargetGroup,
    /// A security group.
    SecurityGroup,
    /// A network interface.
    NetworkInterface,
    /// A mount target of a file system.
    MountTarget,
    /// An EC2 instance.
    Machine,
    /// An Auto Scaling group.
    AutoScalingGroup,
    /// A launch template.
    LaunchTemplate,
    /// A placement group.
    PlacementGroup,
    /// An EBS volume.
    Volume,
    /// A snapshot of a volume.
    DiskSnapshot,
    /// A VPC.
    Vpc,
    /// A subnet.
    Subnet,
    /// An internet gateway.
    InternetGateway,
    /// A NAT gateway.
    NatGateway,
    /// A route table.
    RouteTable,
    /// An Elastic IP address.
    ElasticIp,
    /// A VPC endpoint.
    VpcEndpoint,
    /// Uploaded boot configs and templates below an S3 URI.
    UploadedAssets,
    /// Snapshots of etcd below an S3 URI.
    EtcdSnapshots,
    /// Objects below the cluster's S3 URI that infra did not upload.
    ForeignObjects,
    /// One version of an object.
    Object,
    /// A bucket.
    Bucket,
    /// A lifecycle rule of a bucket.
    LifecycleRule,
    /// A grant of a KMS key.
    KmsGrant,
    /// A KMS key.
    KmsKey,
    /// A shared file system.
    FileSystem,
    /// A recovery point that AWS Backup made of a file system.
    Backup,
    /// A kind that infra never creates; the id is the ARN.
    Other,
}

impl ResourceKind {
    /// The kind in words.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::PublicRecord => "public record",
            Self::PrivateRecords => "records of the private hosted zone",
            Self::PrivateHostedZone => "private hosted zone",
            Self::LoadBalancer => "load balancer",
            Self::Listener => "listener",
            Self::TargetGroup => "target group",
            Self::SecurityGroup => "security group",
            Self::NetworkInterface => "network interface",
            Self::MountTarget => "mount target",
            Self::Machine => "machine",
            Self::AutoScalingGroup => "Auto Scaling group",
            Self::LaunchTemplate => "launch template",
            Self::PlacementGroup => "placement group",
            Self::Volume => "volume",
            Self::DiskSnapshot => "disk snapshot",
            Self::Vpc => "VPC",
            Self::Subnet => "subnet",
            Self::InternetGateway => "internet gateway",
            Self::NatGateway => "NAT gateway",
            Self::RouteTable => "route table",
            Self::ElasticIp => "Elastic IP address",
            Self::VpcEndpoint => "VPC endpoint",
            Self::UploadedAssets => "uploaded assets",
            Self::EtcdSnapshots => "etcd snapshots",
            Self::ForeignObjects => "foreign objects",
            Self::Object => "object",
            Self::Bucket => "bucket",
            Self::LifecycleRule => "lifecycle rule",
            Self::KmsGrant => "grant of the KMS key",
            Self::KmsKey => "KMS key",
            Self::FileSystem => "file system",
            Self::Backup => "backup",
            Self::Other => "resource",
        }
    }
}

/// The identity of a resource: two with the same kind and id are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// The kind of the resource: `stack`, `file-system`, `security-group` and so on.
    // Not an enum in the schema: kinds may be added.
    #[schemars(with = "String")]
    pub kind: ResourceKind,
    /// The id or name that AWS gives the resource.
    pub id: String,
}

impl Resource {
    /// The resource of a kind with an id.
    pub(crate) fn new(kind: ResourceKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.name(), self.id)
    }
}

/// A resource in the plan of a `destroy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DestroyItem {
    /// The resource.
    #[serde(flatten)]
    pub resource: Resource,
    /// Why the resource is deleted, is kept or blocks the deletion.
    pub why: String,
}

/// A resource that is still there although `destroy` should have deleted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Leftover {
    /// The resource.
    #[serde(flatten)]
    pub resource: Resource,
    /// Why the resource is still there, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that deletes the resource, or what to do about it.
    pub fix: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.resource)?;
        self.why.as_ref().map_or(Ok(()), |why| write!(formatter, ": {why}"))
    }
}
