//! A cluster as everything behind the file sees it: validated, complete, every default filled in.

use std::collections::BTreeMap;

use ipnet::Ipv4Net;

use super::file::{
    Channel, Lifecycle, Nat, PoolImage, Rollout, ServiceAccountKey, TaintEffect, ThroughputMode,
};
use super::gpu::{EfaCards, Gpus};
use super::values::{
    AccountId, AvailabilityZone, CapacityReservationId, CertificateName, ClusterName, Cron, DnsName, Expiry,
    FileSystemId, HostedZoneId, InstanceType, KeyName, KmsKeyArn, KubernetesVersion, LabelKey, LabelValue,
    MirrorUrl, MirroredHost, Money, MountPath, ObjectVersion, PolicyArn, PoolName, Region, RemoteWriteUrl,
    S3Uri, Sha256Digest, SnapshotName, SubnetId, TagKey, TagValue, TimeZone, VpcId,
};

/// A whole cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The name.
    pub name: ClusterName,
    /// The API server's public name.
    pub external_dns_name: DnsName,
    /// The region of the cluster.
    pub region: Region,
    /// The availability zones it is spread over, in the order given; never empty.
    pub availability_zones: Vec<AvailabilityZone>,
    /// The key pair for SSH, if there is one.
    pub key_name: Option<KeyName>,
    /// The key that protects uploaded objects and the file system.
    pub kms_key: KmsKeyArn,
    /// The policy that limits every IAM role, if there is one.
    pub permissions_boundary: Option<PolicyArn>,
    /// Whether disks use that key too.
    pub encrypt_disks_with_kms_key: bool,
    /// Where assets are uploaded, if the file says so.
    pub s3_uri: Option<S3Uri>,
    /// Kubernetes itself.
    pub kubernetes: Kubernetes,
    /// The channel of Flatcar that images are taken from.
    pub channel: Channel,
    /// The account whose images are used instead of Flatcar's, if the file names one.
    pub image_owner: Option<AccountId>,
    /// The network.
    pub network: Network,
    /// Who may reach the API server.
    pub api: Api,
    /// Ranges that may reach machines by SSH.
    pub ssh_allowed_ranges: Vec<Ipv4Net>,
    /// The public record.
    pub dns: Dns,
    /// The etcd members.
    pub etcd: Etcd,
    /// The control plane's machines.
    pub controllers: Controllers,
    /// The pools of workers.
    pub pools: Vec<Pool>,
    /// The shared file system, if there is one.
    pub file_system: Option<FileSystem>,
    /// What else runs in the cluster.
    pub addons: Addons,
    /// The most that an hour may cost, if there is a limit.
    pub budget_per_hour: Option<Money>,
    /// Copies of the hosts that nodes download from.
    pub mirrors: BTreeMap<MirroredHost, MirrorUrl>,
    /// Tags for everything.
    pub tags: BTreeMap<TagKey, TagValue>,
}

impl Cluster {
    /// The pool of a name.
    #[must_use]
    pub fn pool(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == *name)
    }
}

/// Kubernetes itself.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The version of every component.
    pub version: KubernetesVersion,
    /// The range of pod addresses.
    pub pod_range: Ipv4Net,
    /// The range of Service addresses.
    pub service_range: Ipv4Net,
    /// The kind of key that signs tokens.
    pub service_account_key: ServiceAccountKey,
}

/// The network, created or adopted.
#[derive(Clone, Debug)]
pub struct Network {
    /// The VPC's range.
    pub vpc_range: Ipv4Net,
    /// Where its subnets come from.
    pub layout: NetworkLayout,
}

/// Where subnets come from.
#[derive(Clone, Debug)]
pub enum NetworkLayout {
    /// infra creates a VPC with public subnets.
    Public,
    /// infra creates a VPC with public and private subnets, and NAT gateways between them.
    Private(Nat),
    /// infra uses a VPC that exists.
    Adopted {
        /// The VPC.
        vpc: VpcId,
        /// The subnets that the cluster uses.
        subnets: Vec<AdoptedSubnet>,
    },
}

impl NetworkLayout {
    /// Whether machines are in public subnets and have public addresses.
    #[must_use]
    pub fn is_public(&self) -> bool {
        match self {
            Self::Public => true,
            Self::Private(_) => false,
            Self::Adopted { subnets, .. } => subnets.iter().all(|subnet| subnet.public),
        }
    }
}

/// A subnet that exists.
#[derive(Clone, Debug)]
pub struct AdoptedSubnet {
    /// The id.
    pub id: SubnetId,
    /// The availability zone.
    pub zone: AvailabilityZone,
    /// Whether the subnet has a route to an internet gateway.
    pub public: bool,
}

/// Who may reach the API server, and under which names.
#[derive(Clone, Debug)]
pub struct Api {
    /// Whether there is a load balancer on the internet.
    pub public: bool,
    /// Ranges that may reach it.
    pub allowed_ranges: Vec<Ipv4Net>,
    /// More names for its certificate.
    pub additional_names: Vec<CertificateName>,
}

/// The public record of the API server.
#[derive(Clone, Debug)]
pub struct Dns {
    /// Whether infra creates and deletes the record.
    pub manage: bool,
    /// The id of the hosted zone; none if it is to be looked up.
    pub hosted_zone: Option<HostedZoneId>,
}

/// The etcd members.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// The number of members; odd.
    pub count: u32,
    /// The instance type of the machines.
    pub instance_type: InstanceType,
    /// The size of each member's own disk.
    pub volume_gib: u32,
    /// The snapshot that members without data start from.
    pub restore: Option<Restore>,
}

/// A snapshot of etcd's data.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The name of its object.
    pub snapshot: SnapshotName,
    /// The version of the object, if it is not the newest.
    pub version: Option<ObjectVersion>,
    /// What the object must hold.
    pub sha256: Sha256Digest,
}

/// The control plane's machines.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// The number of machines.
    pub count: u32,
    /// The instance type of the machines.
    pub instance_type: InstanceType,
}

/// A pool of workers.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The name.
    pub name: PoolName,
    /// The instance types, the preferred one first; never empty.
    pub instance_types: Vec<InstanceType>,
    /// The GPUs of each machine, the same on all types.
    pub gpus: Option<Gpus>,
    /// The image of the machines.
    pub image: PoolImage,
    /// The network cards that have an elastic fabric adapter, if machines talk over EFA; the same on all types.
    pub efa: Option<EfaCards>,
    /// The number of machines.
    pub count: u32,
    /// The fewest machines.
    pub min_count: u32,
    /// The most machines.
    pub max_count: u32,
    /// Whether they are spot machines.
    pub spot: bool,
    /// The availability zones; never empty.
    pub availability_zones: Vec<AvailabilityZone>,
    /// How machines of a changed pool are replaced.
    pub rollout: Rollout,
    /// The size of each machine's disk.
    pub root_volume_gib: u32,
    /// Whether the machines are in one placement group.
    pub placement_group: bool,
    /// The capacity reservation that the machines start in.
    pub capacity_reservation: Option<CapacityReservationId>,
    /// Policies for the IAM role of the machines.
    pub managed_policies: Vec<PolicyArn>,
    /// The hop limit of instance metadata.
    pub metadata_hop_limit: u32,
    /// When the pool has how many machines.
    pub schedule: PoolSchedule,
    /// Labels of the nodes.
    pub labels: BTreeMap<LabelKey, LabelValue>,
    /// Taints of the nodes.
    pub taints: Vec<Taint>,
}

impl Pool {
    /// Whether its capacity reservation may be a capacity block: only AWS knows which of the two an id is.
    #[must_use]
    pub fn may_have_block(&self) -> bool {
        self.capacity_reservation.is_some() && self.image == PoolImage::DeepLearning
    }
}

/// When a pool has how many machines, by AWS's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSchedule {
    /// The recurring moments; no two of them meet.
    pub entries: Vec<ScheduleEntry>,
    /// The time zone of the entries.
    pub time_zone: TimeZone,
    /// When the pool ends.
    pub expires: Option<Expiry>,
}

impl PoolSchedule {
    /// Whether AWS never changes the size of the pool by the clock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.expires.is_none()
    }
}

/// How many machines a pool has from a recurring moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// The moment.
    pub at: Cron,
    /// The number of machines; at most the pool's maximum.
    pub count: u32,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: LabelKey,
    /// The value.
    pub value: LabelValue,
    /// What the taint does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What else runs in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addons {
    /// Whether pools grow and shrink by themselves.
    pub cluster_autoscaler: bool,
    /// Whether `kubectl top` is answered.
    pub metrics_server: bool,
    /// Whether JobSets run.
    pub job_set: bool,
    /// How the cluster is measured, if it is.
    pub monitoring: Option<Monitoring>,
}

/// How the cluster is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitoring {
    /// Where Prometheus writes everything to as well.
    pub remote_write: Option<RemoteWriteUrl>,
}

/// The shared file system.
#[derive(Clone, Debug)]
pub struct FileSystem {
    /// Where nodes mount the file system.
    pub mount_path: MountPath,
    /// Whether infra creates it or uses one that exists.
    pub source: FileSystemSource,
}

/// Where the file system comes from.
#[derive(Clone, Debug)]
pub enum FileSystemSource {
    /// infra creates it.
    Created {
        /// How throughput is paid for.
        throughput_mode: ThroughputMode,
        /// When files move to cheaper storage.
        lifecycle: Lifecycle,
        /// Whether AWS Backup copies it.
        backup: bool,
    },
    /// It exists already, and infra uses it.
    Adopted {
        /// The id.
        id: FileSystemId,
        /// Whether infra creates the mount targets that are missing.
        create_mount_targets: bool,
    },
}

impl Cluster {
    /// The availability zone of an etcd member: members use the availability zones in turn.
    #[must_use]
    pub fn etcd_availability_zone(&self, member: u32) -> &AvailabilityZone {
        &self.availability_zones[member as usize % self.availability_zones.len()]
    }

    /// Availability zones whose loss would cost etcd its quorum.
    #[must_use]
    pub fn availability_zones_with_quorum(&self) -> Vec<&AvailabilityZone> {
        let members_in = |zone: &AvailabilityZone| {
            (0..self.etcd.count).filter(|n| self.etcd_availability_zone(*n) == zone).count()
        };
        let tolerated = (self.etcd.count as usize - 1) / 2;
        self.availability_zones.iter().filter(|zone| members_in(zone) > tolerated).collect()
    }
}
