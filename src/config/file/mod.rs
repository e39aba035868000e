//! The format of cluster.yaml, exactly as written: texts and numbers with their positions, nothing judged yet.
//!
//! The documentation of each field is what `infra schema` shows to editors.

mod addons;
mod entries;
mod network;
mod pool;
mod storage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use addons::{AddonsFile, MonitoringFile, MonitoringSettings};
pub(crate) use entries::Entries;
pub use network::Nat;
pub(crate) use network::{ExistingNetworkFile, NetworkFile, Topology};
pub(crate) use pool::{PoolFile, TaintFile};
pub use pool::{PoolImage, Rollout, TaintEffect};
pub(crate) use storage::{EfsDriver, EfsFile, StorageFile};
pub use storage::{Lifecycle, ThroughputMode};

use crate::document::At;

/// A GPU Kubernetes cluster on AWS, described in one file.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-formerly" = super::kube_aws::renamed_keys()))]
pub(crate) struct ClusterFile {
    /// The cluster's name: the first part of every stack name, tag and private DNS name.
    #[schemars(regex(pattern = r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$"))]
    pub cluster_name: At<String>,
    /// The API server's name in certificates, kubeconfig and DNS.
    #[serde(rename = "externalDNSName")]
    pub external_dns_name: At<String>,
    /// The AWS region.
    pub region: At<String>,
    /// The availability zones that machines are spread over; etcd members use them in turn.
    #[schemars(length(min = 1))]
    pub availability_zones: At<Vec<At<String>>>,
    /// The EC2 key pair for SSH; SSM Session Manager works without one.
    #[serde(default)]
    pub key_name: Option<At<String>>,
    /// The KMS key that protects uploaded objects and the file system; a key in the same region, by its key ARN.
    pub kms_key_arn: At<String>,
    /// The managed IAM policy that limits every IAM role of the cluster, its permissions boundary; `infra policy` prints one.
    #[serde(default)]
    pub permissions_boundary_arn: Option<At<String>>,
    /// Whether machines' disks use the KMS key too, instead of the account's default EBS key.
    #[serde(default)]
    pub encrypt_disks_with_kms_key: bool,
    /// Where assets are uploaded; `--s3-uri` overrides it.
    #[serde(default, rename = "s3URI")]
    pub s3_uri: Option<At<String>>,
    /// Kubernetes itself.
    #[serde(default)]
    pub kubernetes: KubernetesFile,
    /// The operating system of every machine.
    #[serde(default)]
    pub os: OsFile,
    /// The network, created or adopted.
    #[serde(default)]
    pub network: NetworkFile,
    /// Who may reach the API server, and under which names.
    #[serde(default)]
    pub api: ApiFile,
    /// CIDR ranges that may connect to machines by SSH; none by default.
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
    /// Parts of the cluster that can be left out. What is switched off later stays until you delete it, after `infra up`.
    #[serde(default)]
    pub addons: AddonsFile,
    /// What the cluster may cost; without this section there is no limit.
    #[serde(default)]
    pub budget: Option<BudgetFile>,
    /// For closed networks: a host that nodes download from, and the URL of its mirror.
    #[serde(default)]
    pub mirrors: Entries,
    /// Tags for everything that is created in AWS. A changed tag replaces etcd members, controllers and machines of rolling pools.
    #[serde(default)]
    pub tags: Entries,
}

/// Kubernetes itself.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct KubernetesFile {
    /// The version of every component.
    pub version: At<String>,
    /// The CIDR range of pod addresses, a /24 per node.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: At<String>,
    /// The CIDR range of Service addresses.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: At<String>,
    /// The type of the key that signs service-account tokens; `rsa` is for teams that publish the cluster's OIDC discovery themselves.
    pub service_account_key: ServiceAccountKey,
}

/// The type of the key that signs service-account tokens.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceAccountKey {
    /// Small and fast.
    Ecdsa,
    /// For teams that publish the cluster's OIDC discovery themselves: AWS verifies RSA signatures.
    Rsa,
}

/// The operating system of every machine.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct OsFile {
    /// The distribution.
    pub distribution: At<Distribution>,
    /// The release channel of the image.
    pub channel: Channel,
    /// The account whose images are used instead of Flatcar's, under Flatcar's names; required where Flatcar publishes none.
    #[schemars(with = "Option<String>", regex(pattern = r"^[0-9]{12}$"))]
    pub image_owner: Option<At<String>>,
}

/// A distribution of the CoreOS family.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
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

/// Who may reach the API server, and under which names.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ApiFile {
    /// Whether there is an internet-facing load balancer besides the one inside the VPC.
    pub public: bool,
    /// CIDR ranges that may connect to the API server from outside.
    #[serde(rename = "allowedCIDRs")]
    pub allowed_cidrs: At<Vec<At<String>>>,
    /// More names and addresses for the API server's certificate.
    pub additional_names: Vec<At<String>>,
}

/// The public DNS record of the API server.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct DnsFile {
    /// Whether `up` creates the record and `destroy` deletes it.
    pub manage: bool,
    /// The id of the Route 53 hosted zone; without it, the public hosted zone with the longest matching name.
    pub hosted_zone_id: Option<At<String>>,
}

/// The etcd members.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct EtcdFile {
    /// The number of members, which is odd.
    #[schemars(range(min = 1, max = 7))]
    pub count: At<u32>,
    /// The instance type of the machines.
    pub instance_type: At<String>,
    /// The size of each member's own disk.
    #[serde(rename = "volumeGiB")]
    #[schemars(range(min = 8, max = 1024))]
    pub volume_gib: At<u32>,
    /// The snapshot that members without data start from. Delete this section once they have started.
    pub restore: Option<RestoreFile>,
}

/// A snapshot of etcd's data, in `snapshots/` below the cluster's prefix.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RestoreFile {
    /// The name of the snapshot's object, without the path.
    pub snapshot: At<String>,
    /// The version of the object. `etcd.db` needs it: in a bucket with versioning, it is written every hour.
    pub version: Option<At<String>>,
    /// The SHA-256 of the snapshot, as the member that took it has printed it.
    pub sha256: At<String>,
}

/// The machines that run the control plane.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ControllersFile {
    /// The number of machines.
    #[schemars(range(min = 1, max = 9))]
    pub count: At<u32>,
    /// The instance type of the machines.
    pub instance_type: At<String>,
}

/// What the cluster may cost.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BudgetFile {
    /// The most that an hour may cost with every pool at its `maxCount`, at on-demand prices, in US dollars (in China: yuan). Machines of a capacity block are paid in advance and do not count. `infra up` refuses to exceed it without `--over-budget`.
    #[schemars(range(min = 0))]
    pub per_hour: At<f64>,
}
