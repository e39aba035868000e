//! The roles of a cluster's machines, and the settings of a pool's nodes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::gpu::{EfaCards, Gpus};
use crate::config::instance_store::InstanceStore;
use crate::config::values::{NvidiaDriver, PoolName};
use crate::config::{Cluster, Pool, PoolImage, TaintEffect};
use crate::well_known::{
    ACCELERATOR_LABEL, EFA_LABEL, GPU_COUNT_LABEL, GPU_MODEL_LABEL, GPU_RESOURCE, POOL_LABEL, POOL_PREFIX,
    SCRATCH_LABEL,
};

/// What a machine is for. All machines of a role boot the same configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// One etcd member.
    EtcdMember(u32),
    /// A controller.
    Controller,
    /// A node of a pool.
    Pool(PoolName),
}

impl Role {
    /// The role's name in files and object keys.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::EtcdMember(member) => format!("etcd-{member}"),
            Self::Controller => "controller".to_owned(),
            Self::Pool(pool) => format!("{POOL_PREFIX}{pool}"),
        }
    }

    /// The role of this name, if a cluster can have it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(member) = name.strip_prefix("etcd-") {
            let number = member.parse::<u32>().ok().filter(|number| number.to_string() == member);
            return number.map(Self::EtcdMember);
        }
        if name == "controller" {
            return Some(Self::Controller);
        }
        name.strip_prefix(POOL_PREFIX)?.parse().ok().map(Self::Pool)
    }

    /// Whether a cluster can have a role of this name.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        Self::from_name(name).is_some()
    }

    /// The logical id of its Auto Scaling group, which its machines signal.
    #[must_use]
    pub fn group_resource(&self) -> String {
        match self {
            Self::EtcdMember(member) => format!("EtcdMember{member}"),
            Self::Controller => "Controllers".to_owned(),
            Self::Pool(_) => "Nodes".to_owned(),
        }
    }

    /// The logical id of the volume that its machine claims.
    #[must_use]
    pub fn volume_resource(&self) -> Option<String> {
        match self {
            Self::EtcdMember(member) => Some(format!("EtcdVolume{member}")),
            Self::Controller | Self::Pool(_) => None,
        }
    }

    /// The first part of the names of snippets that are meant for this role.
    #[must_use]
    pub fn snippet_prefix(&self) -> String {
        match self {
            Self::EtcdMember(_) => "etcd".to_owned(),
            other => other.name(),
        }
    }
}

/// The settings of a pool's nodes.
#[derive(Clone, Debug)]
pub struct PoolNodes {
    /// The pool's name.
    pub name: PoolName,
    /// Labels that the kubelet registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints that the kubelet registers with.
    pub taints: Vec<NodeTaint>,
    /// What its machines boot.
    pub image: PoolImage,
    /// The driver of its GPUs that Flatcar downloads; the Deep Learning image contains its own.
    pub gpu_driver: Option<NvidiaDriver>,
    /// Whether its GPUs need NVIDIA's fabric manager.
    pub needs_fabric_manager: bool,
    /// The network cards with an elastic fabric adapter, if its machines talk over EFA.
    pub efa: Option<EfaCards>,
    /// Whether its machines are spot instances, which AWS may interrupt.
    pub spot: bool,
    /// The drives that its machines bring with them.
    pub instance_store: Option<InstanceStore>,
}

/// A taint as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeTaint {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// What the taint does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

impl PoolNodes {
    pub(super) fn new(pool: &Pool) -> Self {
        let mut labels: BTreeMap<String, String> =
            pool.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        labels.insert(POOL_LABEL.to_owned(), pool.name.to_string());
        let mut taints: Vec<NodeTaint> = Vec::new();
        if let Some(gpus) = &pool.gpus {
            labels.insert(GPU_MODEL_LABEL.to_owned(), gpus.model.to_owned());
            // By this label the autoscaler recognises a GPU node: it waits for the GPUs of a new node instead of adding another one.
            labels.insert(ACCELERATOR_LABEL.to_owned(), gpus.model.to_owned());
            labels.insert(GPU_COUNT_LABEL.to_owned(), gpus.count.to_string());
            let (key, value) = (GPU_RESOURCE.to_owned(), "present".to_owned());
            taints.push(NodeTaint { key, value, effect: TaintEffect::NoSchedule });
        }
        if let Some(cards) = pool.efa {
            labels.insert(EFA_LABEL.to_owned(), cards.count.to_string());
        }
        let instance_store = InstanceStore::of_pool(pool);
        if let Some(scratch) = instance_store.and_then(InstanceStore::scratch) {
            labels.insert(SCRATCH_LABEL.to_owned(), scratch.pods_gib.to_string());
        }
        taints.extend(pool.taints.iter().map(|taint| NodeTaint {
            key: taint.key.to_string(),
            value: taint.value.to_string(),
            effect: taint.effect,
        }));
        Self {
            name: pool.name.clone(),
            labels,
            taints,
            image: pool.image,
            gpu_driver: pool
                .gpus
                .as_ref()
                .filter(|_| pool.image == PoolImage::Flatcar)
                .map(|gpus| gpus.driver),
            needs_fabric_manager: pool.gpus.as_ref().is_some_and(Gpus::are_behind_nvswitch),
            efa: pool.efa,
            spot: pool.spot,
            instance_store,
        }
    }
}

/// Every role of a cluster, in the order in which their machines start.
pub(super) fn machine_roles(cluster: &Cluster) -> Vec<Role> {
    let members = (0..cluster.etcd.count).map(Role::EtcdMember);
    let pools = cluster.pools.iter().map(|pool| Role::Pool(pool.name.clone()));
    members.chain([Role::Controller]).chain(pools).collect()
}
