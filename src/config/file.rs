//! The format of cluster.yaml, exactly as written: texts and numbers with their places, nothing judged yet.
//!
//! The documentation of each field is what `infra schema` shows to editors.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::At;

/// Free `key: value` lines, each with its place.
pub type Entries = BTreeMap<At<String>, At<String>>;

/// A GPU Kubernetes cluster on AWS, described in one file.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterFile {
    /// The cluster's name: the first part of every stack, tag and inside DNS name.
    #[schemars(regex(pattern = r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$"))]
    pub cluster_name: At<String>,
    /// The API server's name in certificates, kubeconfig and DNS.
    #[serde(rename = "externalDNSName")]
    pub external_dns_name: At<String>,
    /// The AWS region.
    pub region: At<String>,
    /// The zones that machines are spread over; etcd members take them in turn.
    #[schemars(length(min = 1))]
    pub availability_zones: At<Vec<At<String>>>,
    /// The EC2 key pair for SSH; SSM Session Manager works without one.
    #[serde(default)]
    pub key_name: Option<At<String>>,
    /// The KMS key that protects uploaded objects and the file system; a key of the same region, by its own ARN.
    pub kms_key_arn: At<String>,
    /// Whether machines' disks use the KMS key too, instead of the account's default EBS key.
    #[serde(default)]
    pub encrypt_disks_with_kms_key: bool,
    /// Where assets are uploaded; `--s3-uri` wins over it.
    #[serde(default, rename = "s3URI")]
    pub s3_uri: Option<At<String>>,
    /// Kubernetes itself.
    #[serde(default)]
    pub kubernetes: KubernetesFile,
    /// The operating system of every machine.
    #[serde(default)]
    pub os: OsFile,
    /// The network, made or adopted.
    #[serde(default)]
    pub network: NetworkFile,
    /// Who may reach the API server, and under which names.
    #[serde(default)]
    pub api: ApiFile,
    /// Ranges that may reach machines by SSH; none by default.
    #[serde(default, rename = "sshAllowedCIDRs")]
    pub ssh_allowed_cidrs: At<Vec<At<String>>>,
    /// The public DNS record of the API server.
    #[serde(default)]
    pub dns: DnsFile,
    /// The etcd members.
    #[serde(default)]
    pub etcd: EtcdFile,
    /// The machines that run the control plane.
    #[serde(default)]
    pub controllers: ControllersFile,
    /// Pools of worker machines.
    #[serde(default)]
    pub pools: Vec<At<PoolFile>>,
    /// Shared storage; without this section there is none.
    #[serde(default)]
    pub storage: Option<StorageFile>,
    /// Parts of the cluster that can be left out.
    #[serde(default)]
    pub addons: AddonsFile,
    /// For closed networks: a host that nodes download from, and the URL of its copy.
    #[serde(default)]
    pub mirrors: Entries,
    /// Tags for everything that is made in AWS.
    #[serde(default)]
    pub tags: Entries,
}

/// Kubernetes itself.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct KubernetesFile {
    /// The version of every component.
    pub version: At<String>,
    /// The range that pods get their addresses from, a /24 a node.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: At<String>,
    /// The range that Services get their addresses from.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: At<String>,
    /// The kind of key that signs service-account tokens.
    pub service_account_key: ServiceAccountKey,
}

/// The kind of key that signs service-account tokens.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceAccountKey {
    /// Small and fast.
    Ecdsa,
    /// For pods that assume IAM roles through OIDC, which AWS is known to verify.
    Rsa,
}

/// The operating system of every machine.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OsFile {
    /// The distribution.
    pub distribution: At<Distribution>,
    /// The release channel that images are taken from.
    pub channel: Channel,
}

/// A distribution of the CoreOS family.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Flatcar Container Linux.
    Flatcar,
    /// Fedora CoreOS; known, and refused with the reason.
    FedoraCoreos,
}

/// A release channel of Flatcar.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// For production.
    Stable,
    /// What becomes stable.
    Beta,
    /// What developers try.
    Alpha,
}

/// The network, made or adopted.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NetworkFile {
    /// The VPC's range; of an adopted VPC, the range it has.
    #[serde(rename = "vpcCIDR")]
    pub vpc_cidr: At<String>,
    /// Whether machines have public addresses or stand behind NAT gateways.
    pub topology: At<Topology>,
    /// In private topology: one NAT gateway a zone, or one for all.
    pub nat: At<Nat>,
    /// A VPC that exists already and is used as it is.
    pub existing: Option<At<ExistingNetworkFile>>,
}

/// Where machines stand.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// In public subnets, with public addresses and closed security groups.
    Public,
    /// In private subnets behind NAT gateways.
    Private,
}

/// How many NAT gateways there are.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Nat {
    /// One a zone: a zone's loss leaves the others connected.
    PerZone,
    /// One for all: cheaper, and its zone's loss disconnects everything.
    Shared,
}

/// A VPC that exists already; nothing of it is changed or tagged.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingNetworkFile {
    /// The VPC.
    pub vpc_id: At<String>,
    /// Its subnets that the cluster uses.
    pub subnets: Vec<At<ExistingSubnetFile>>,
}

/// A subnet that exists already.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingSubnetFile {
    /// The subnet.
    pub id: At<String>,
    /// The zone it is in.
    pub availability_zone: At<String>,
    /// Whether its route table leads to an internet gateway.
    pub public: bool,
}

/// Who may reach the API server, and under which names.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ApiFile {
    /// Whether there is a load balancer on the internet, besides the one inside the VPC.
    pub public: bool,
    /// Ranges that may reach the API server from outside.
    #[serde(rename = "allowedCIDRs")]
    pub allowed_cidrs: At<Vec<At<String>>>,
    /// More names and addresses for the API server's certificate.
    pub additional_names: Vec<At<String>>,
}

/// The public DNS record of the API server.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DnsFile {
    /// Whether `up` writes the record and `destroy` removes it.
    pub manage: bool,
    /// The Route 53 zone; without it, the public zone with the longest matching name.
    pub hosted_zone_id: Option<At<String>>,
}

/// The etcd members.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EtcdFile {
    /// How many members: an odd number.
    #[schemars(range(min = 1, max = 7))]
    pub count: At<u32>,
    /// Their machine.
    pub instance_type: At<String>,
    /// The size of each member's own disk.
    #[serde(rename = "volumeGiB")]
    #[schemars(range(min = 8, max = 1024))]
    pub volume_gib: At<u32>,
}

/// The machines that run the control plane.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ControllersFile {
    /// How many.
    #[schemars(range(min = 1, max = 9))]
    pub count: At<u32>,
    /// Their machine.
    pub instance_type: At<String>,
}

/// A pool of worker machines.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolFile {
    /// The pool's name: its stack's, and the value of its nodes' label `infra.internal/pool`.
    #[schemars(regex(pattern = r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$"))]
    pub name: At<String>,
    /// Its machine.
    pub instance_type: At<String>,
    /// More types to choose from, of the same architecture and GPU.
    #[serde(default)]
    pub instance_types: Vec<At<String>>,
    /// How many machines.
    #[serde(default = "super::defaults::pool_count")]
    #[schemars(range(min = 0, max = 5000))]
    pub count: At<u32>,
    /// The fewest that the autoscaler may leave; `count` if not given.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub min_count: Option<At<u32>>,
    /// The most that the autoscaler may start; `count` if not given.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub max_count: Option<At<u32>>,
    /// Whether machines are spot machines: cheaper, and taken away at two minutes' notice.
    #[serde(default)]
    pub spot: At<bool>,
    /// The zones of this pool; all of the cluster's if not given. Training wants one.
    #[serde(default)]
    pub availability_zones: Option<At<Vec<At<String>>>>,
    /// How a changed pool gets new machines; `manual` for GPU pools and `rolling` for others if not given.
    #[serde(default)]
    pub rollout: Option<Rollout>,
    /// The size of each machine's disk.
    #[serde(default = "super::defaults::root_volume_gib", rename = "rootVolumeGiB")]
    #[schemars(range(min = 20, max = 16384))]
    pub root_volume_gib: At<u32>,
    /// Whether machines stand close together for fast traffic among them; needs one zone.
    #[serde(default)]
    pub placement_group: At<bool>,
    /// A capacity reservation to start machines in; excludes spot.
    #[serde(default)]
    pub capacity_reservation_id: Option<At<String>>,
    /// Managed IAM policies for the machines' role.
    #[serde(default)]
    pub managed_policy_arns: At<Vec<At<String>>>,
    /// How many network hops instance metadata travels; 2 lets pods use the machine's role.
    #[serde(default = "super::defaults::metadata_hop_limit")]
    #[schemars(range(min = 1, max = 64))]
    pub metadata_hop_limit: At<u32>,
    /// Labels of the pool's nodes.
    #[serde(default)]
    pub labels: Entries,
    /// Taints of the pool's nodes.
    #[serde(default)]
    pub taints: Vec<At<TaintFile>>,
}

/// How a changed pool gets new machines.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rollout {
    /// One after the other, by `up`.
    Rolling,
    /// When you say so: `up --pool NAME --replace-nodes`.
    Manual,
}

/// A taint of a pool's nodes.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaintFile {
    /// The taint's key.
    pub key: At<String>,
    /// The taint's value.
    #[serde(default)]
    pub value: Option<At<String>>,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub enum TaintEffect {
    /// They are not started here.
    NoSchedule,
    /// They are started here only if there is no other place.
    PreferNoSchedule,
    /// They are not started here, and running ones are evicted.
    NoExecute,
}

/// Shared storage.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageFile {
    /// An EFS file system that every node mounts.
    pub efs: At<EfsFile>,
}

/// An EFS file system, made or adopted.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EfsFile {
    /// How nodes reach it.
    pub driver: At<EfsDriver>,
    /// How its throughput is paid for.
    pub throughput_mode: At<ThroughputMode>,
    /// Where nodes mount it.
    pub mount_path: At<String>,
    /// After how many days without access a file moves to cheaper storage.
    pub lifecycle: At<Lifecycle>,
    /// Whether AWS Backup copies it every day.
    pub backup: At<bool>,
    /// A file system that exists already and is used as it is.
    pub file_system_id: Option<At<String>>,
    /// Whether the adopted file system gets mount targets where it has none.
    pub create_mount_targets: At<bool>,
}

/// How nodes reach the file system.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EfsDriver {
    /// Plain NFS 4.1.
    Nfs,
    /// AWS's CSI driver; known, and refused with the reason.
    Csi,
}

/// How throughput is paid for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThroughputMode {
    /// By what is read and written.
    Elastic,
    /// By the size of what is stored.
    Bursting,
}

/// After how many days without access a file moves to cheaper storage.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub enum Lifecycle {
    /// Never.
    #[serde(rename = "never")]
    Never,
    /// A week.
    #[serde(rename = "7d")]
    Days7,
    /// Two weeks.
    #[serde(rename = "14d")]
    Days14,
    /// About a month.
    #[serde(rename = "30d")]
    Days30,
    /// About two months.
    #[serde(rename = "60d")]
    Days60,
    /// About three months.
    #[serde(rename = "90d")]
    Days90,
}

/// Parts of the cluster that can be left out.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AddonsFile {
    /// Grows and shrinks pools between `minCount` and `maxCount`.
    pub cluster_autoscaler: bool,
    /// Answers `kubectl top` and horizontal autoscalers.
    pub metrics_server: bool,
}
