//! What is in a cluster's network besides the resources of its stacks: what is the cluster's, and what is foreign.

use std::collections::{BTreeMap, BTreeSet};

use super::file_systems::FileSystem;
use super::owner::owner_of;
use super::stack_contents::{ClusterVpc, StackContents};
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, Interface, LoadBalancer, TargetGroup, VpcSecurityGroup};

/// What of a network is the cluster's; everything else in the VPC is judged by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnNetwork<'a> {
    /// The VPC.
    pub(crate) vpc: &'a ClusterVpc,
    /// What the stacks hold.
    pub(crate) stacks: &'a StackContents,
    /// The file systems.
    pub(crate) file_systems: &'a [FileSystem],
}

/// What was found in the VPC.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkFindings {
    /// What is this cluster's.
    pub own: NetworkResources,
    /// Target groups of this cluster; they block nothing.
    pub target_groups: Vec<TargetGroup>,
    /// Foreign resources that block the deletion of a subnet, a security group or the VPC.
    pub foreign: NetworkResources,
}

/// Resources that block the deletion of a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkResources {
    /// Load balancers.
    pub balancers: Vec<LoadBalancer>,
    /// Security groups.
    pub groups: Vec<VpcSecurityGroup>,
    /// Mount targets.
    pub mounts: Vec<Mount>,
    /// Interfaces of anything else.
    pub interfaces: Vec<Interface>,
}

/// A mount target, as its network interface describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The id of the mount target.
    pub id: String,
    /// The id of the file system.
    pub file_system: String,
    /// The id of the subnet.
    pub subnet: String,
    /// Whether it may be deleted if the user asks for it: its subnet is deleted, and the cluster did not adopt its file system.
    pub can_be_deleted: bool,
}

impl NetworkFindings {
    /// Reads what is in the cluster's VPC.
    pub(crate) async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        own_network: OwnNetwork<'_>,
    ) -> Result<Self, AwsError> {
        let OwnNetwork { vpc, stacks, file_systems } = own_network;
        let (vpc, is_vpc_deleted) = (&vpc.id, !vpc.is_adopted);
        let (balancers, target_groups, groups, interfaces) = tokio::try_join!(
            clients.load_balancers_in(vpc),
            clients.target_groups_in(vpc),
            clients.security_groups_in(vpc),
            clients.interfaces_in(vpc),
        )?;
        // Of a VPC that is kept only the security groups are deleted.
        let blocks = |groups: &[String]| is_vpc_deleted || groups.iter().any(|group| stacks.contains(group));
        let mut findings = Self::default();
        let known: BTreeSet<String> = balancers.iter().map(|balancer| balancer.name.clone()).collect();
        let of_stacks =
            |id: &str, tags: &BTreeMap<String, String>| stacks.contains(id) || target.is_of_stack(tags);
        for balancer in balancers.into_iter().filter(|balancer| !of_stacks(&balancer.id, &balancer.tags)) {
            if target.is_of_cluster(&balancer.tags) {
                findings.own.balancers.push(balancer);
            } else if blocks(&balancer.security_groups) {
                findings.foreign.balancers.push(balancer);
            }
        }
        let of_cluster =
            |group: &TargetGroup| !of_stacks(&group.arn, &group.tags) && target.is_of_cluster(&group.tags);
        findings.target_groups = target_groups.into_iter().filter(of_cluster).collect();
        for group in groups.into_iter().filter(|group| !of_stacks(&group.id, &group.tags)) {
            let named: Vec<String> = group.named.iter().cloned().collect();
            if target.is_of_cluster(&group.tags) {
                findings.own.groups.push(group);
            } else if group.name != "default" && blocks(&named) {
                findings.foreign.groups.push(group);
            }
        }
        let is_foreign =
            |interface: &Interface| !is_of_stack(interface, stacks) && !target.is_of_stack(&interface.tags);
        for interface in interfaces.into_iter().filter(is_foreign) {
            if let Some(mut mount) = mount_of(&interface) {
                let own = file_systems.iter().find(|system| system.id == mount.file_system);
                mount.can_be_deleted = is_vpc_deleted && own.is_none_or(FileSystem::is_own);
                if is_vpc_deleted && own.is_some_and(FileSystem::is_own) {
                    findings.own.mounts.push(mount);
                } else if blocks(&interface.security_groups) {
                    findings.foreign.mounts.push(mount);
                }
            } else if target.is_of_cluster(&interface.tags) {
                findings.own.interfaces.push(interface);
            } else if blocks(&interface.security_groups)
                && !balancer_of(&interface).is_some_and(|name| known.contains(name))
            {
                findings.foreign.interfaces.push(interface);
            }
        }
        Ok(findings)
    }
}

impl NetworkResources {
    /// Each resource with its owner, in words.
    pub(crate) fn descriptions(&self, stacks: &StackContents) -> Vec<String> {
        let balancers = self.balancers.iter().map(|balancer| format!("load balancer {}", balancer.name));
        let mounts = self.mounts.iter().map(|mount| {
            let help =
                if mount.can_be_deleted { "; `--delete-foreign-mount-targets` deletes it" } else { "" };
            format!("mount target {} of {} in {}{help}", mount.id, mount.file_system, mount.subnet)
        });
        let groups = self
            .groups
            .iter()
            .map(|group| format!("security group {}: {}", group.id, describe_group(group, stacks)));
        let interfaces = self
            .interfaces
            .iter()
            .map(|interface| format!("{} in {}: {}", interface.id, interface.subnet, owner_of(interface)));
        let mut all: Vec<String> = balancers.chain(mounts).chain(groups).chain(interfaces).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// What a foreign security group has to do with the cluster.
pub(crate) fn describe_group(group: &VpcSecurityGroup, stacks: &StackContents) -> String {
    let ours: Vec<&str> = group.named.iter().filter(|id| stacks.contains(id)).map(String::as_str).collect();
    if ours.is_empty() {
        return format!("{}, is in the VPC", group.name);
    }
    format!("{}, its rules name {}", group.name, ours.join(", "))
}

/// Prefixes of ids that AWS writes on the interfaces which it creates for them.
const NAMED_ON_INTERFACES: [&str; 3] = ["fsmt-", "nat-", "vpce-"];

/// Whether a resource of a stack holds an interface, or is it.
fn is_of_stack(interface: &Interface, stacks: &StackContents) -> bool {
    let words = interface.description.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let balancer = interface.description.strip_prefix("ELB ").map(|name| format!(":loadbalancer/{name}"));
    stacks.contains(&interface.id)
        || words
            .filter(|word| NAMED_ON_INTERFACES.iter().any(|prefix| word.starts_with(prefix)))
            .any(|word| stacks.contains(word))
        || balancer.is_some_and(|end| stacks.resources.iter().any(|id| id.ends_with(&end)))
}

/// The load balancer behind an interface.
fn balancer_of(interface: &Interface) -> Option<&str> {
    let name = interface.description.strip_prefix("ELB ")?;
    Some(name.split('/').nth(1).unwrap_or(name))
}

/// The mount target behind an interface, which AWS describes as `EFS mount target for fs-1 (fsmt-2)`.
fn mount_of(interface: &Interface) -> Option<Mount> {
    let rest = interface.description.strip_prefix("EFS mount target for ")?;
    let (file_system, id) = rest.split_once(" (")?;
    Some(Mount {
        id: id.trim_end_matches(')').to_owned(),
        file_system: file_system.to_owned(),
        subnet: interface.subnet.clone(),
        can_be_deleted: false,
    })
}
