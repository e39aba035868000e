//! What a cluster.yaml must mean to be built, a file for each part of it.
//!
//! Every rule records its problem and continues, so that one run shows them all. A part that could not be built is `None`; the
//! whole cluster exists only if every part does.

mod access;
mod addons;
mod budget;
mod images;
mod labels;
mod location;
mod machines;
mod network;
mod optional;
mod pools;
mod schedule;
mod storage;

use super::cluster::{Cluster, Kubernetes};
use super::file::{ClusterFile, Distribution, KubernetesFile, OsFile};
use super::kubernetes_release::release_of;
use super::values::{AccountId, KubernetesVersion, S3Uri};
use crate::document::{Fault, Problems};
pub use machines::GpuInstanceType;
use optional::parse_optional;

/// Turns the file into a cluster, and records every problem on the way.
pub(super) fn build_cluster(file: &ClusterFile, problems: &mut Problems) -> Option<Cluster> {
    let name = problems.parse(&file.cluster_name);
    let location = location::build_location(file, problems);
    check_distribution(&file.os, problems);
    let image_owner: Option<Option<AccountId>> =
        parse_optional(file.os.image_owner.as_ref(), |text| problems.parse(text));
    let external_dns_name = access::parse_external_name(&file.external_dns_name, problems);
    let key_name = access::parse_key_name(file, problems);
    let permissions_boundary = access::parse_permissions_boundary(file, &location, problems);
    let s3_uri: Option<Option<S3Uri>> = parse_optional(file.s3_uri.as_ref(), |text| problems.parse(text));
    let version = parse_version(&file.kubernetes, problems);
    let ranges = network::parse_ranges(file, problems);
    let layout = network::build_layout(file, &location, problems);
    let api = access::build_api(&file.api, problems);
    let ssh_allowed_ranges = access::parse_ssh_ranges(file, problems);
    let dns = access::build_dns(&file.dns, problems);
    let etcd = machines::build_etcd(&file.etcd, problems);
    let controllers = machines::build_controllers(&file.controllers, problems);
    let pools = pools::build_pools(file, &location, layout.as_ref(), problems);
    let file_system =
        parse_optional(file.storage.as_ref(), |storage| storage::build_file_system(&storage.efs, problems));
    let addons = addons::build_addons(&file.addons, problems);
    let budget_per_hour =
        parse_optional(file.budget.as_ref(), |budget| budget::parse_budget(budget, problems));
    let mirrors = access::build_mirrors(&file.mirrors, problems);
    let tags = labels::build_tags(file, problems);
    if let (Some(ranges), Some(layout)) = (&ranges, &layout) {
        network::check_room(file, ranges, layout, problems);
    }
    let (ranges, location) = (ranges?, location.complete()?);
    let cluster = Cluster {
        name: name?,
        external_dns_name: external_dns_name?,
        region: location.region,
        availability_zones: location.availability_zones,
        key_name: key_name?,
        kms_key: location.kms_key,
        permissions_boundary: permissions_boundary?,
        encrypt_disks_with_kms_key: file.encrypt_disks_with_kms_key,
        s3_uri: s3_uri?,
        kubernetes: Kubernetes {
            version: version?,
            pod_range: ranges.pods,
            service_range: ranges.services,
            service_account_key: file.kubernetes.service_account_key,
        },
        channel: file.os.channel,
        image_owner: image_owner?,
        network: super::cluster::Network { vpc_range: ranges.vpc, layout: layout? },
        api: api?,
        ssh_allowed_ranges: ssh_allowed_ranges?,
        dns: dns?,
        etcd: etcd?,
        controllers: controllers?,
        pools: pools?,
        file_system: file_system?,
        addons: addons?,
        budget_per_hour: budget_per_hour?,
        mirrors: mirrors?,
        tags: tags?,
    };
    // What keeps the file from being used comes first.
    if problems.can_be_used() {
        access::warn_of_open_api(&file.api, &cluster.api, problems);
    }
    Some(cluster)
}

fn check_distribution(os: &OsFile, problems: &mut Problems) {
    if os.distribution.value == Distribution::FedoraCoreos {
        let fault = Fault::new("Fedora CoreOS is not supported yet: it has no NVIDIA drivers and no Kubernetes binaries of its own")
            .help("use flatcar, which has both");
        problems.add(os.distribution.position, fault);
    }
}

fn parse_version(kubernetes: &KubernetesFile, problems: &mut Problems) -> Option<KubernetesVersion> {
    let version: KubernetesVersion = problems.parse(&kubernetes.version)?;
    problems.take(kubernetes.version.position, release_of(version).map(|_| version))
}
