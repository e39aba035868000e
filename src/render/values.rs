//! The values that templates may use; the same set for every template, so that any of them can be overridden.

use std::collections::BTreeMap;

use serde::Serialize;

use super::mount_unit::mount_unit;
use crate::blueprint::{
    Blueprint, ETCD_METRICS_PORT, NodeTaint, NvidiaRuntime, PROMETHEUS_DIRECTORY, PROMETHEUS_PORT, PoolNodes,
};
use crate::config::gpu::EfaCards;
use crate::config::instance_store::{InstanceStore, Scratch};
use crate::config::values::{NvidiaDriver, RemoteWriteUrl};
use crate::config::{Addons, Monitoring, PoolImage};
use crate::credentials::{Credentials, KeySet, RotatedKey};
use crate::well_known::{
    AUTOSCALER_TAG_PREFIX, CLUSTER_TAG, DEEP_LEARNING_CONTAINERS, EFA_LABEL, GPU_MODEL_LABEL, JOB_LABEL,
    NO_LOAD_BALANCER_LABEL, POOL_LABEL, ROLE_TAG, kubernetes_cluster_tag,
};

/// What every template sees.
#[derive(Clone, Serialize)]
pub(super) struct TemplateValues<'a> {
    cluster_name: &'a str,
    cluster_tag: &'static str,
    role_tag: &'static str,
    kubernetes_cluster_tag: String,
    autoscaler_tag_prefix: &'static str,
    gpu_model_label: &'static str,
    efa_label: &'static str,
    deep_learning_containers: &'static str,
    region: &'a str,
    region_partition_domain: &'static str,
    external_dns_name: &'a str,
    api_host: &'a str,
    kubernetes_version: String,
    pod_cidr: String,
    service_cidr: String,
    cluster_dns: String,
    etcd_endpoints: Vec<String>,
    /// The first one encrypts, all of them decrypt.
    pub(super) secrets_encryption_keys: Vec<EncryptionKey>,
    /// The name of the key that signs service-account tokens.
    service_account_key: String,
    /// The names of the keys whose tokens are accepted.
    service_account_keys: Vec<String>,
    images: &'a BTreeMap<String, String>,
    addons: AddonSwitches,
    monitoring: Option<MonitoringValues<'a>>,
    etcd_metrics_port: u16,
    prometheus_port: u16,
    prometheus_directory: &'static str,
    pool_label: &'static str,
    /// The label of a pool as Prometheus' discovery spells it.
    pool_label_in_prometheus: String,
    job_label: &'static str,
    efs: Option<Efs<'a>>,
    nvidia_runtime: &'a NvidiaRuntime,
    /// What the machine is for: `etcd`, `controller` or `worker`.
    role: &'static str,
    taints: Vec<NodeTaint>,
    node_labels: String,
    /// What the machine boots: `flatcar` or `deep-learning`.
    image: &'static str,
    needs_fabric_manager: bool,
    /// The number of EFA adapters.
    efa_adapters: u32,
    /// Huge pages that a machine sets aside; none without EFA.
    huge_pages: u32,
    /// Flatcar's extension with the driver.
    gpu_driver: Option<String>,
    /// How the instance store is divided, on machines that all have it.
    scratch: Option<ScratchValues>,
    etcd: Option<EtcdMember>,
}

#[derive(Clone, Serialize)]
struct AddonSwitches {
    cluster_autoscaler: bool,
    metrics_server: bool,
    job_set: bool,
}

#[derive(Clone, Serialize)]
struct ScratchValues {
    images_gib: u32,
    free_gib: u32,
}

#[derive(Clone, Serialize)]
struct MonitoringValues<'a> {
    remote_write: Option<&'a str>,
    etcd_members: Vec<MonitoredMember>,
    /// The certificates that machines hold, where they are known.
    certificates: Vec<CertificateEnd>,
}

#[derive(Clone, Serialize)]
struct MonitoredMember {
    name: String,
    host: String,
}

/// When a certificate expires.
#[derive(Clone, Serialize)]
struct CertificateEnd {
    name: String,
    /// In seconds since 1970.
    expires: i64,
}

#[derive(Clone, Serialize)]
struct Efs<'a> {
    server: &'a str,
    mount_path: &'a str,
    mount_unit: String,
}

/// A key that encrypts Secrets.
#[derive(Clone, Serialize)]
pub(super) struct EncryptionKey {
    /// The name of the key, which is stored with everything that it has encrypted.
    name: String,
    /// A mark; the key is inserted after the template engine is done, so that the engine never sees it.
    pub(super) secret: String,
    /// The name of the key among the credentials.
    #[serde(skip)]
    pub(super) file: String,
}

#[derive(Clone, Serialize)]
struct EtcdMember {
    name: String,
    host: String,
    initial_cluster: String,
    snapshot_minute: String,
    quota_bytes: u64,
    restore: Option<RestoredSnapshot>,
}

#[derive(Clone, Serialize)]
struct RestoredSnapshot {
    snapshot: String,
    version: Option<String>,
    sha256: String,
}

impl<'a> TemplateValues<'a> {
    /// What follows from the cluster alone.
    pub(super) fn of_cluster(blueprint: &'a Blueprint) -> Self {
        let cluster = &blueprint.cluster;
        let Addons { cluster_autoscaler, metrics_server, job_set, monitoring } = &cluster.addons;
        Self {
            cluster_name: cluster.name.as_str(),
            cluster_tag: CLUSTER_TAG,
            role_tag: ROLE_TAG,
            kubernetes_cluster_tag: kubernetes_cluster_tag(&cluster.name),
            autoscaler_tag_prefix: AUTOSCALER_TAG_PREFIX,
            gpu_model_label: GPU_MODEL_LABEL,
            efa_label: EFA_LABEL,
            deep_learning_containers: DEEP_LEARNING_CONTAINERS,
            region: cluster.region.as_str(),
            region_partition_domain: cluster.region.partition().dns_suffix(),
            external_dns_name: cluster.external_dns_name.as_str(),
            api_host: &blueprint.names.internal_api,
            kubernetes_version: cluster.kubernetes.version.to_string(),
            pod_cidr: cluster.kubernetes.pod_range.to_string(),
            service_cidr: cluster.kubernetes.service_range.to_string(),
            cluster_dns: blueprint.names.cluster_dns.to_string(),
            etcd_endpoints: blueprint.names.etcd_endpoints(),
            secrets_encryption_keys: encryption_keys(KeySet::default()),
            service_account_key: RotatedKey::ServiceAccount.numbered(1),
            service_account_keys: vec![RotatedKey::ServiceAccount.numbered(1)],
            images: &blueprint.components.images,
            addons: AddonSwitches {
                cluster_autoscaler: *cluster_autoscaler,
                metrics_server: *metrics_server,
                job_set: *job_set,
            },
            monitoring: monitoring.as_ref().map(|monitoring| MonitoringValues::new(blueprint, monitoring)),
            etcd_metrics_port: ETCD_METRICS_PORT,
            prometheus_port: PROMETHEUS_PORT,
            prometheus_directory: PROMETHEUS_DIRECTORY,
            pool_label: POOL_LABEL,
            pool_label_in_prometheus: POOL_LABEL.replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
            job_label: JOB_LABEL,
            efs: cluster.file_system.as_ref().map(|file_system| Efs {
                server: &blueprint.names.file_system,
                mount_path: file_system.mount_path.as_str(),
                mount_unit: mount_unit(file_system.mount_path.as_str()),
            }),
            nvidia_runtime: &blueprint.components.nvidia_runtime,
            role: "cluster",
            taints: Vec::new(),
            node_labels: String::new(),
            image: "flatcar",
            needs_fabric_manager: false,
            efa_adapters: 0,
            huge_pages: 0,
            gpu_driver: None,
            scratch: None,
            etcd: None,
        }
    }

    /// What manifests see: what follows from the cluster, and when certificates expire.
    pub(super) fn of_manifests(blueprint: &'a Blueprint, credentials: &Credentials) -> Self {
        let mut values = Self::of_cluster(blueprint);
        if let Some(monitoring) = &mut values.monitoring {
            let expiries = credentials.expiries(&blueprint.identities).into_iter();
            let ends = expiries.map(|(name, at)| CertificateEnd { name, expires: at.unix_timestamp() });
            monitoring.certificates = ends.collect();
        }
        values
    }

    /// What an etcd member's templates see.
    pub(super) fn of_etcd_member(blueprint: &'a Blueprint, member: u32) -> Self {
        let names = &blueprint.names;
        let etcd = EtcdMember {
            name: format!("etcd-{member}"),
            host: names.etcd_member(member),
            initial_cluster: names.etcd_initial_cluster(),
            snapshot_minute: format!("{:02}", 5 + member % 7 * 8),
            quota_bytes: blueprint.etcd_quota_bytes,
            restore: blueprint.cluster.etcd.restore.as_ref().map(|restore| RestoredSnapshot {
                snapshot: restore.snapshot.to_string(),
                version: restore.version.as_ref().map(ToString::to_string),
                sha256: restore.sha256.to_string(),
            }),
        };
        Self { role: "etcd", etcd: Some(etcd), ..Self::of_cluster(blueprint) }
    }

    /// What a controller's templates see.
    pub(super) fn of_controller(blueprint: &'a Blueprint, credentials: &Credentials) -> Self {
        let keys = credentials.keys_in_use(RotatedKey::ServiceAccount);
        let numbers = keys.numbers().into_iter();
        Self {
            role: "controller",
            secrets_encryption_keys: encryption_keys(credentials.keys_in_use(RotatedKey::SecretsEncryption)),
            service_account_key: RotatedKey::ServiceAccount.numbered(keys.current),
            service_account_keys: numbers.map(|number| RotatedKey::ServiceAccount.numbered(number)).collect(),
            // The cloud controller manager would open the controllers' security group to a Service's clients.
            node_labels: format!("{NO_LOAD_BALANCER_LABEL}=true"),
            ..Self::of_cluster(blueprint)
        }
    }

    /// What the templates of a pool's nodes see.
    pub(super) fn of_pool(blueprint: &'a Blueprint, pool: &'a PoolNodes) -> Self {
        let labels = pool.labels.iter().map(|(key, value)| format!("{key}={value}"));
        Self {
            role: "worker",
            taints: pool.taints.clone(),
            node_labels: labels.collect::<Vec<_>>().join(","),
            image: match pool.image {
                PoolImage::Flatcar => "flatcar",
                PoolImage::DeepLearning => "deep-learning",
            },
            needs_fabric_manager: pool.needs_fabric_manager,
            efa_adapters: pool.efa.map_or(0, |cards| cards.count),
            huge_pages: pool.efa.map_or(0, |_| EfaCards::HUGE_PAGES),
            gpu_driver: pool.gpu_driver.map(NvidiaDriver::extension),
            scratch: pool
                .instance_store
                .and_then(InstanceStore::scratch)
                .map(|Scratch { images_gib, free_gib, .. }| ScratchValues { images_gib, free_gib }),
            ..Self::of_cluster(blueprint)
        }
    }
}

impl<'a> MonitoringValues<'a> {
    fn new(blueprint: &Blueprint, monitoring: &'a Monitoring) -> Self {
        let member = |member: u32| MonitoredMember {
            name: format!("etcd-{member}"),
            host: blueprint.names.etcd_member(member),
        };
        Self {
            remote_write: monitoring.remote_write.as_ref().map(RemoteWriteUrl::as_str),
            etcd_members: (0..blueprint.cluster.etcd.count).map(member).collect(),
            certificates: Vec::new(),
        }
    }
}

fn encryption_keys(keys: KeySet) -> Vec<EncryptionKey> {
    let key = |number: u32| EncryptionKey {
        name: format!("key{number}"),
        secret: format!("@secrets-encryption-key-{number}@"),
        file: RotatedKey::SecretsEncryption.numbered(number),
    };
    keys.numbers().into_iter().map(key).collect()
}
