//! The cluster.yaml that `infra init` writes, with a comment for every key.

use std::collections::BTreeMap;

use serde::Serialize;

use super::engine::{RenderError, Templates};
use crate::config::values::{
    AvailabilityZone, ClusterName, DnsName, InstanceType, KeyName, KmsKeyArn, Region, S3Uri,
};
use crate::well_known::GPU_RESOURCE;

/// What a new cluster.yaml is rendered from.
#[derive(Clone, Debug)]
pub struct ClusterAnswers {
    /// The cluster's name.
    pub cluster_name: ClusterName,
    /// The API server's public name.
    pub external_dns_name: DnsName,
    /// The region.
    pub region: Region,
    /// The availability zones.
    pub availability_zones: Vec<AvailabilityZone>,
    /// The key that protects uploads and the file system.
    pub kms_key: KmsKeyArn,
    /// The key pair for SSH.
    pub key_name: Option<KeyName>,
    /// Where assets are uploaded.
    pub s3_uri: Option<S3Uri>,
    /// How many etcd members.
    pub etcd_count: u32,
    /// How many controllers.
    pub controllers_count: u32,
    /// A pool of GPU machines besides the one for everything else.
    pub gpu: Option<GpuPool>,
    /// Whether there is a shared file system.
    pub file_system: bool,
}

/// A pool of GPU machines.
#[derive(Clone, Debug)]
pub struct GpuPool {
    /// The instance type of its machines.
    pub instance_type: InstanceType,
    /// How many machines.
    pub count: u32,
}

#[derive(Serialize)]
struct Values<'a> {
    cluster_name: &'a str,
    external_dns_name: &'a str,
    region: &'a str,
    availability_zones: Vec<&'a str>,
    kms_key_arn: &'a str,
    key_name: Option<&'a str>,
    s3_uri: Option<String>,
    etcd_count: u32,
    controllers_count: u32,
    pools: Vec<PoolValues<'a>>,
    file_system: bool,
}

/// Comments at the last pool show the other keys that a pool can have.
#[derive(Serialize)]
struct PoolValues<'a> {
    name: &'a str,
    comment: &'a str,
    instance_type: &'a str,
    count: u32,
    rollout: &'a str,
    documented: bool,
}

/// Renders a cluster.yaml.
pub fn render_cluster_file(answers: &ClusterAnswers) -> Result<String, RenderError> {
    let cpu = PoolValues {
        name: "cpu",
        comment: "Machines for everything that needs no GPU.",
        instance_type: "m5.large",
        count: 1,
        rollout: "rolling",
        documented: answers.gpu.is_none(),
    };
    let gpu_comment = format!(
        "Machines for training; they carry the taint {GPU_RESOURCE}, so that nothing else runs there."
    );
    let gpu = answers.gpu.as_ref().map(|gpu| PoolValues {
        name: "gpu",
        comment: &gpu_comment,
        instance_type: gpu.instance_type.as_str(),
        count: gpu.count,
        rollout: "manual",
        documented: true,
    });
    let values = Values {
        cluster_name: answers.cluster_name.as_str(),
        external_dns_name: answers.external_dns_name.as_str(),
        region: answers.region.as_str(),
        availability_zones: answers.availability_zones.iter().map(AvailabilityZone::as_str).collect(),
        kms_key_arn: answers.kms_key.as_str(),
        key_name: answers.key_name.as_ref().map(KeyName::as_str),
        s3_uri: answers.s3_uri.as_ref().map(ToString::to_string),
        etcd_count: answers.etcd_count,
        controllers_count: answers.controllers_count,
        pools: std::iter::once(cpu).chain(gpu).collect(),
        file_system: answers.file_system,
    };
    Templates::new(&BTreeMap::new())?.render("cluster.yaml", &values)
}

/// The .gitignore for files that hold keys.
#[must_use]
pub fn render_gitignore() -> &'static str {
    include_str!("../../templates/gitignore")
}
