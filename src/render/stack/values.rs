//! The values that stack templates may use, on top of those of every template. Nested documents are JSON texts, which are YAML too.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::values::Values;
use super::tags::{group_tags, pool_group_tags, tag_specifications};
use crate::blueprint::{Blueprint, Group, Role, Rule, Source, Subnet, SubnetSource};
use crate::config::values::{AvailabilityZone, KeyName};
use crate::config::{Cluster, FileSystemSource, Lifecycle, Pool, Rollout, ThroughputMode};

/// The size of disks that hold nothing but the operating system and images of a few components.
const CONTROL_PLANE_DISK_GIB: u32 = 30;

/// What the templates of a cluster's own stacks see.
#[derive(Serialize)]
pub(super) struct ClusterStackValues<'a> {
    #[serde(flatten)]
    shared: SharedValues<'a>,
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
    root_disk: BTreeMap<&'static str, String>,
    load_balancers: Vec<LoadBalancerValues>,
    api_load_balancer: &'static str,
    api_public: bool,
}

/// What a pool's template sees.
#[derive(Serialize)]
pub(super) struct PoolStackValues<'a> {
    #[serde(flatten)]
    shared: SharedValues<'a>,
    pool: PoolValues,
}

#[derive(Serialize)]
struct SharedValues<'a> {
    #[serde(flatten)]
    common: Values<'a>,
    kms_key_arn: &'a str,
    key_name: Option<&'a str>,
    encrypt_disks_with_kms_key: bool,
    public_machines: bool,
}

#[derive(Serialize)]
struct NetworkValues {
    made: bool,
    vpc_cidr: String,
    vpc_reference: String,
    subnets: Vec<SubnetValues>,
    nat_gateways: Vec<NatValues>,
    private_route_tables: Vec<RouteTableValues>,
}

#[derive(Clone, Serialize)]
struct SubnetValues {
    resource: String,
    zone: String,
    zone_reference: String,
    kind: &'static str,
    public: bool,
    cidr: String,
    reference: String,
    route_table: String,
}

#[derive(Serialize)]
struct NatValues {
    index: usize,
    zone: String,
    subnet: String,
}

#[derive(Serialize)]
struct RouteTableValues {
    resource: String,
    zone: String,
    nat_index: usize,
}

#[derive(Serialize)]
struct GroupValues {
    resource: &'static str,
    name: &'static str,
    description: &'static str,
    of_nodes: bool,
}

#[derive(Serialize)]
struct RuleValues {
    resource: String,
    to: &'static str,
    protocol: &'static str,
    port: u16,
    from_group: Option<&'static str>,
    from_range: Option<String>,
    why: &'static str,
}

#[derive(Serialize)]
struct StorageValues {
    made: bool,
    reference: String,
    throughput_mode: &'static str,
    lifecycle: Option<&'static str>,
    backup: bool,
    mount_targets: Vec<MountTargetValues>,
}

#[derive(Serialize)]
struct MountTargetValues {
    index: usize,
    zone: String,
    subnet: String,
}

#[derive(Serialize)]
struct EtcdValues {
    index: u32,
    zone_reference: String,
    subnet: String,
    host: String,
    after: Option<String>,
    tag_specifications: String,
    group_tags: String,
    user_data: String,
}

#[derive(Serialize)]
struct ControllersValues {
    count: u32,
    in_service: u32,
    after: String,
    tag_specifications: String,
    group_tags: String,
    user_data: String,
}

#[derive(Serialize)]
struct LoadBalancerValues {
    name: &'static str,
    scheme: &'static str,
    subnets: Vec<String>,
}

#[derive(Serialize)]
struct PoolValues {
    name: String,
    instance_type: String,
    instance_types: Vec<String>,
    mixed: bool,
    spot: bool,
    count: u32,
    min_count: u32,
    max_count: u32,
    signals: u32,
    rolling: bool,
    in_service: u32,
    subnets: Vec<SubnetValues>,
    managed_policies: Vec<String>,
    metadata_hop_limit: u32,
    placement_group: bool,
    capacity_reservation: Option<String>,
    root_disk: String,
    tag_specifications: String,
    group_tags: String,
    user_data: String,
}

impl<'a> SharedValues<'a> {
    fn new(blueprint: &'a Blueprint) -> Self {
        let cluster = &blueprint.cluster;
        Self {
            common: Values::of_cluster(blueprint),
            kms_key_arn: cluster.kms_key.as_str(),
            key_name: cluster.key_name.as_ref().map(KeyName::as_str),
            encrypt_disks_with_kms_key: cluster.encrypt_disks_with_kms_key,
            public_machines: blueprint.network.public_machines,
        }
    }
}

impl<'a> ClusterStackValues<'a> {
    pub(super) fn new(blueprint: &'a Blueprint, user_data: &BTreeMap<Role, Value>) -> Self {
        let cluster = &blueprint.cluster;
        let network = &blueprint.network;
        let subnets =
            |list: Vec<&Subnet>| list.into_iter().map(|subnet| subnet_values(subnet, blueprint)).collect();
        let groups = |wanted: fn(Group) -> bool| {
            let list = blueprint.groups.iter().copied().filter(|group| wanted(*group));
            list.map(group_values).collect::<Vec<_>>()
        };
        let disk = root_disk(cluster, CONTROL_PLANE_DISK_GIB);
        let mut control_plane_subnets: Vec<&Subnet> = network.machine_subnets().collect();
        if cluster.api.public {
            control_plane_subnets
                .extend(network.public_subnets().filter(|subnet| subnet.public != network.public_machines));
        }
        Self {
            shared: SharedValues::new(blueprint),
            internal_domain: &blueprint.names.internal_domain,
            efs_host: &blueprint.names.file_system,
            network: network_values(blueprint),
            security_groups: groups(|_| true),
            control_plane_groups: groups(|group| !matches!(group, Group::Nodes | Group::FileSystem)),
            security_rules: blueprint.rules.iter().map(rule_values).collect(),
            machine_subnets: subnets(network.machine_subnets().collect()),
            control_plane_subnets: subnets(control_plane_subnets),
            storage: storage_values(blueprint),
            etcd_members: (0..cluster.etcd.count)
                .map(|member| etcd_values(blueprint, member, user_data))
                .collect(),
            etcd_instance_type: cluster.etcd.instance_type.as_str(),
            etcd_volume_gib: cluster.etcd.volume_gib,
            controllers: ControllersValues {
                count: cluster.controllers.count,
                in_service: cluster.controllers.count - 1,
                after: Role::EtcdMember(cluster.etcd.count - 1).group_resource(),
                tag_specifications: tag_specifications(blueprint, "controller", false),
                group_tags: group_tags(blueprint, "controller", true),
                user_data: text_of(user_data, &Role::Controller),
            },
            controller_instance_type: cluster.controllers.instance_type.as_str(),
            root_disk: BTreeMap::from([("etcd", disk.clone()), ("controller", disk)]),
            load_balancers: load_balancers(blueprint),
            api_load_balancer: if cluster.api.public { "Public" } else { "Internal" },
            api_public: cluster.api.public,
        }
    }
}

impl<'a> PoolStackValues<'a> {
    pub(super) fn new(blueprint: &'a Blueprint, pool: &Pool, user_data: &BTreeMap<Role, Value>) -> Self {
        let role = Role::Pool(pool.name.to_string());
        let nodes = blueprint.pools.iter().find(|nodes| nodes.name == pool.name.as_str());
        let gpus = pool.gpus.as_ref().map_or(0, |gpus| gpus.count);
        let subnets = blueprint.network.machine_subnets().filter(|subnet| pool.zones.contains(&subnet.zone));
        Self {
            shared: SharedValues::new(blueprint),
            pool: PoolValues {
                name: pool.name.to_string(),
                instance_type: pool.instance_types[0].to_string(),
                instance_types: pool.instance_types.iter().map(ToString::to_string).collect(),
                mixed: pool.spot || pool.instance_types.len() > 1,
                spot: pool.spot,
                count: pool.count,
                min_count: pool.min_count,
                max_count: pool.max_count,
                // A pool that may shrink need not be full to be a pool.
                signals: pool.min_count.min(pool.count),
                rolling: pool.rollout == Rollout::Rolling,
                in_service: pool.count.min(pool.max_count.saturating_sub(1)),
                subnets: subnets.map(|subnet| subnet_values(subnet, blueprint)).collect(),
                managed_policies: pool.managed_policies.iter().map(ToString::to_string).collect(),
                metadata_hop_limit: pool.metadata_hop_limit,
                placement_group: pool.placement_group,
                capacity_reservation: pool.capacity_reservation.as_ref().map(ToString::to_string),
                root_disk: root_disk(&blueprint.cluster, pool.root_volume_gib),
                tag_specifications: tag_specifications(blueprint, &role.name(), false),
                group_tags: nodes.map(|nodes| pool_group_tags(blueprint, nodes, gpus)).unwrap_or_default(),
                user_data: text_of(user_data, &role),
            },
        }
    }
}

/// A zone as a letter behind whatever region the stack is in.
fn zone_reference(zone: &AvailabilityZone) -> String {
    let letter = zone.as_str().chars().next_back().unwrap_or('a');
    json!({"Fn::Sub": format!("${{AWS::Region}}{letter}")}).to_string()
}

fn text_of(user_data: &BTreeMap<Role, Value>, role: &Role) -> String {
    user_data.get(role).map(ToString::to_string).unwrap_or_default()
}

fn root_disk(cluster: &Cluster, gib: u32) -> String {
    let mut disk =
        json!({"VolumeType": "gp3", "VolumeSize": gib, "Encrypted": true, "DeleteOnTermination": true});
    if cluster.encrypt_disks_with_kms_key {
        disk["KmsKeyId"] = cluster.kms_key.as_str().into();
    }
    disk.to_string()
}

fn group_values(group: Group) -> GroupValues {
    GroupValues {
        resource: group.resource(),
        name: group.name(),
        description: group.description(),
        of_nodes: matches!(group, Group::Controllers | Group::Nodes),
    }
}

fn rule_values(rule: &Rule) -> RuleValues {
    let (from_group, from_range) = match &rule.from {
        Source::Group(group) => (Some(group.resource()), None),
        Source::Range(range) => (None, Some(range.clone())),
    };
    let (to, protocol, port, why) = (rule.to.resource(), rule.protocol, rule.port, rule.why);
    RuleValues { resource: rule.resource(), to, protocol, port, from_group, from_range, why }
}

fn subnet_values(subnet: &Subnet, blueprint: &Blueprint) -> SubnetValues {
    let (cidr, reference) = match &subnet.source {
        SubnetSource::Made(range) => (range.to_string(), json!({"Ref": subnet.resource})),
        SubnetSource::Adopted(id) => (String::new(), json!(id)),
    };
    let shared = blueprint.network.nat_zones.len() == 1;
    SubnetValues {
        resource: subnet.resource.clone(),
        zone: subnet.zone.to_string(),
        zone_reference: zone_reference(&subnet.zone),
        kind: if subnet.public { "public" } else { "private" },
        public: subnet.public,
        cidr,
        reference: reference.to_string(),
        route_table: match subnet.public {
            true => "PublicRoutes".to_owned(),
            false if shared => "PrivateRoutes0".to_owned(),
            false => format!("PrivateRoutes{}", subnet.zone_index),
        },
    }
}

fn network_values(blueprint: &Blueprint) -> NetworkValues {
    let network = &blueprint.network;
    let zone = |index: usize| blueprint.cluster.zones[index].to_string();
    NetworkValues {
        made: network.adopted_vpc.is_none(),
        vpc_cidr: blueprint.cluster.network.vpc_range.to_string(),
        vpc_reference: match &network.adopted_vpc {
            Some(id) => json!(id).to_string(),
            None => json!({"Ref": "Vpc"}).to_string(),
        },
        subnets: network.subnets.iter().map(|subnet| subnet_values(subnet, blueprint)).collect(),
        nat_gateways: network
            .nat_zones
            .iter()
            .map(|index| NatValues {
                index: *index,
                zone: zone(*index),
                subnet: format!("PublicSubnet{index}"),
            })
            .collect(),
        private_route_tables: network
            .nat_zones
            .iter()
            .map(|index| RouteTableValues {
                resource: format!("PrivateRoutes{index}"),
                zone: zone(*index),
                nat_index: *index,
            })
            .collect(),
    }
}

fn etcd_values(blueprint: &Blueprint, member: u32, user_data: &BTreeMap<Role, Value>) -> EtcdValues {
    let role = Role::EtcdMember(member);
    let zone = blueprint.cluster.etcd_zone(member);
    let subnet = blueprint.network.machine_subnets().find(|subnet| subnet.zone == *zone);
    EtcdValues {
        index: member,
        zone_reference: zone_reference(zone),
        subnet: subnet.map(|subnet| subnet.resource.clone()).unwrap_or_default(),
        host: blueprint.names.etcd_member(member),
        after: member.checked_sub(1).map(|before| Role::EtcdMember(before).group_resource()),
        tag_specifications: tag_specifications(blueprint, &role.name(), true),
        group_tags: group_tags(blueprint, &role.name(), false),
        user_data: text_of(user_data, &role),
    }
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

fn storage_values(blueprint: &Blueprint) -> Option<StorageValues> {
    let file_system = blueprint.cluster.file_system.as_ref()?;
    let targets = blueprint.network.machine_subnets().filter(|_| blueprint.makes_mount_targets);
    let mount_targets = targets
        .map(|subnet| MountTargetValues {
            index: subnet.zone_index,
            zone: subnet.zone.to_string(),
            subnet: subnet.resource.clone(),
        })
        .collect();
    Some(match &file_system.source {
        FileSystemSource::Adopted { id, .. } => StorageValues {
            made: false,
            reference: json!(id.as_str()).to_string(),
            throughput_mode: "",
            lifecycle: None,
            backup: false,
            mount_targets,
        },
        FileSystemSource::Made { throughput_mode, lifecycle, backup } => StorageValues {
            made: true,
            reference: json!({"Ref": "FileSystem"}).to_string(),
            throughput_mode: match throughput_mode {
                ThroughputMode::Elastic => "elastic",
                ThroughputMode::Bursting => "bursting",
            },
            lifecycle: match lifecycle {
                Lifecycle::Never => None,
                Lifecycle::Days7 => Some("AFTER_7_DAYS"),
                Lifecycle::Days14 => Some("AFTER_14_DAYS"),
                Lifecycle::Days30 => Some("AFTER_30_DAYS"),
                Lifecycle::Days60 => Some("AFTER_60_DAYS"),
                Lifecycle::Days90 => Some("AFTER_90_DAYS"),
            },
            backup: *backup,
            mount_targets,
        },
    })
}
