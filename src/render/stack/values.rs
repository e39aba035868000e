//! The values that stack templates may use, on top of those of every template. Nested documents are JSON texts, which are YAML too.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use super::super::engine::RenderError;
use super::super::values::TemplateValues;
use super::json::Json;
use super::network::{
    GroupValues, NetworkValues, RuleValues, SubnetValues, group_values, network_values, rule_values,
    subnet_values, zone_reference,
};
use super::storage::{StorageValues, storage_values};
use super::tags::{group_tags, tag_specifications};
use super::user_data::UserDataByRole;
use crate::blueprint::{Blueprint, CONTROL_PLANE_DISK_GIB, Role, SecurityGroup, Subnet, fixed_facts};
use crate::config::Cluster;
use crate::config::values::{KeyName, PolicyArn};
use crate::credentials::Credentials;

/// What the templates of all stacks but the pools' see.
#[derive(Serialize)]
pub(super) struct ClusterStackValues<'a> {
    #[serde(flatten)]
    shared: SharedValues<'a>,
    fixed_facts: Json,
    internal_domain: &'a str,
    efs_host: &'a str,
    network: NetworkValues,
    security_groups: Vec<GroupValues>,
    control_plane_groups: Vec<GroupValues>,
    security_rules: Vec<RuleValues>,
    machine_subnets: Vec<SubnetValues>,
    control_plane_subnets: Vec<SubnetValues>,
    storage: Option<StorageValues>,
    etcd_members: Vec<EtcdValues>,
    etcd_instance_type: &'a str,
    etcd_volume_gib: u32,
    controllers: ControllersValues,
    controller_instance_type: &'a str,
    root_disk: BTreeMap<&'static str, Json>,
    load_balancers: Vec<LoadBalancerValues>,
    api_load_balancer: &'static str,
    api_public: bool,
    certificates_expire: Option<String>,
}

#[derive(Serialize)]
pub(super) struct SharedValues<'a> {
    #[serde(flatten)]
    common: TemplateValues<'a>,
    kms_key_arn: &'a str,
    permissions_boundary: Option<&'a str>,
    key_name: Option<&'a str>,
    encrypt_disks_with_kms_key: bool,
    public_machines: bool,
}

#[derive(Serialize)]
struct EtcdValues {
    index: u32,
    zone_reference: Json,
    subnet: String,
    host: String,
    after: Json,
    tag_specifications: Json,
    group_tags: Json,
    user_data: Json,
}

#[derive(Serialize)]
struct ControllersValues {
    count: u32,
    in_service: u32,
    after: Json,
    tag_specifications: Json,
    group_tags: Json,
    user_data: Json,
}

#[derive(Serialize)]
struct LoadBalancerValues {
    name: &'static str,
    scheme: &'static str,
    subnets: Vec<String>,
}

impl<'a> SharedValues<'a> {
    pub(super) fn new(blueprint: &'a Blueprint) -> Self {
        let cluster = &blueprint.cluster;
        Self {
            common: TemplateValues::of_cluster(blueprint),
            kms_key_arn: cluster.kms_key.as_str(),
            permissions_boundary: cluster.permissions_boundary.as_ref().map(PolicyArn::as_str),
            key_name: cluster.key_name.as_ref().map(KeyName::as_str),
            encrypt_disks_with_kms_key: cluster.encrypt_disks_with_kms_key,
            public_machines: blueprint.network.public_machines,
        }
    }
}

impl<'a> ClusterStackValues<'a> {
    pub(super) fn new(
        blueprint: &'a Blueprint,
        credentials: &Credentials,
        user_data: &UserDataByRole,
    ) -> Result<Self, RenderError> {
        let cluster = &blueprint.cluster;
        let network = &blueprint.network;
        let subnets =
            |list: Vec<&Subnet>| list.into_iter().map(|subnet| subnet_values(subnet, blueprint)).collect();
        let groups = |wanted: fn(SecurityGroup) -> bool| {
            let list = blueprint.security_groups.iter().copied().filter(|group| wanted(*group));
            list.map(group_values).collect::<Vec<_>>()
        };
        let disk = root_disk(cluster, CONTROL_PLANE_DISK_GIB);
        let mut control_plane_subnets: Vec<&Subnet> = network.machine_subnets().collect();
        if cluster.api.public {
            control_plane_subnets
                .extend(network.public_subnets().filter(|subnet| subnet.public != network.public_machines));
        }
        Ok(Self {
            shared: SharedValues::new(blueprint),
            fixed_facts: json!(fixed_facts(cluster)).into(),
            internal_domain: &blueprint.names.internal_domain,
            efs_host: &blueprint.names.file_system,
            network: network_values(blueprint),
            security_groups: groups(|group| !group.is_of_pool()),
            control_plane_groups: groups(|group| {
                !matches!(group, SecurityGroup::Nodes | SecurityGroup::FileSystem) && !group.is_of_pool()
            }),
            security_rules: blueprint
                .rules
                .iter()
                .filter(|rule| !rule.to.is_of_pool())
                .map(rule_values)
                .collect(),
            machine_subnets: subnets(network.machine_subnets().collect()),
            control_plane_subnets: subnets(control_plane_subnets),
            storage: storage_values(blueprint),
            etcd_members: (0..cluster.etcd.count)
                .map(|member| etcd_values(blueprint, member, user_data))
                .collect::<Result<_, _>>()?,
            etcd_instance_type: cluster.etcd.instance_type.as_str(),
            etcd_volume_gib: cluster.etcd.volume_gib,
            controllers: ControllersValues {
                count: cluster.controllers.count,
                in_service: cluster.controllers.count - 1,
                after: controller_dependencies(blueprint),
                tag_specifications: tag_specifications(blueprint, "controller", false),
                group_tags: group_tags(blueprint, "controller", true),
                user_data: user_data.of(&Role::Controller)?,
            },
            controller_instance_type: cluster.controllers.instance_type.as_str(),
            root_disk: BTreeMap::from([("etcd", disk.clone()), ("controller", disk)]),
            load_balancers: load_balancers(blueprint),
            api_load_balancer: if cluster.api.public { "Public" } else { "Internal" },
            api_public: cluster.api.public,
            certificates_expire: credentials
                .first_expiry(&blueprint.identities)
                .and_then(|expiry| expiry.format(&Rfc3339).ok()),
        })
    }
}

pub(super) fn root_disk(cluster: &Cluster, gib: u32) -> Json {
    let mut disk =
        json!({"VolumeType": "gp3", "VolumeSize": gib, "Encrypted": true, "DeleteOnTermination": true});
    if cluster.encrypt_disks_with_kms_key {
        disk["KmsKeyId"] = cluster.kms_key.as_str().into();
    }
    disk.into()
}

fn etcd_values(
    blueprint: &Blueprint,
    member: u32,
    user_data: &UserDataByRole,
) -> Result<EtcdValues, RenderError> {
    let role = Role::EtcdMember(member);
    let zone = blueprint.cluster.etcd_availability_zone(member);
    let subnet = blueprint.network.machine_subnets().find(|subnet| subnet.zone == *zone);
    Ok(EtcdValues {
        index: member,
        zone_reference: zone_reference(zone),
        subnet: subnet.map(|subnet| subnet.resource.clone()).unwrap_or_default(),
        host: blueprint.names.etcd_member(member),
        after: etcd_dependencies(blueprint, member),
        tag_specifications: tag_specifications(blueprint, &role.name(), true),
        group_tags: group_tags(blueprint, &role.name(), false),
        user_data: user_data.of(&role)?,
    })
}

/// What must exist before an etcd member's machine starts.
fn etcd_dependencies(blueprint: &Blueprint, member: u32) -> Json {
    let before = match member.checked_sub(1) {
        Some(before) => vec![Role::EtcdMember(before).group_resource()],
        None => (0..blueprint.cluster.etcd.count).map(|member| format!("EtcdRecord{member}")).collect(),
    };
    let address = blueprint.network.public_machines.then(|| format!("EtcdAddressAssociation{member}"));
    json!(before.into_iter().chain(address).collect::<Vec<_>>()).into()
}

/// What must exist before controllers start.
fn controller_dependencies(blueprint: &Blueprint) -> Json {
    let last = Role::EtcdMember(blueprint.cluster.etcd.count - 1).group_resource();
    let listeners =
        load_balancers(blueprint).into_iter().map(|balancer| format!("{}Listener", balancer.name));
    json!([last, "ApiRecord".to_owned()].into_iter().chain(listeners).collect::<Vec<_>>()).into()
}

fn load_balancers(blueprint: &Blueprint) -> Vec<LoadBalancerValues> {
    let resources =
        |subnets: Vec<&Subnet>| subnets.into_iter().map(|subnet| subnet.resource.clone()).collect();
    let network = &blueprint.network;
    let internal = LoadBalancerValues {
        name: "Internal",
        scheme: "internal",
        subnets: resources(network.machine_subnets().collect()),
    };
    let public = blueprint.cluster.api.public.then(|| LoadBalancerValues {
        name: "Public",
        scheme: "internet-facing",
        subnets: resources(network.public_subnets().collect()),
    });
    std::iter::once(internal).chain(public).collect()
}
