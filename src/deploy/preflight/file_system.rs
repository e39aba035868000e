//! The shared file system: an adopted one, or one that an earlier cluster of this name left behind.

use std::collections::BTreeSet;

use ipnet::Ipv4Net;

use super::finding::{SubjectFindings, join_names};
use super::join_all::join_all;
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, ExistingFileSystem, InboundRule, MountTarget};
use crate::blueprint::StackPart;
use crate::config::FileSystemSource;
use crate::config::address_plan::has_overlap;
use crate::config::values::AvailabilityZone;

/// The port of NFS 4.
const NFS: i32 = 2049;

/// A file system that is adopted, as cluster.yaml has it.
struct Adopted<'a> {
    preflight: &'a Preflight<'a>,
    id: &'a str,
    create_mount_targets: bool,
}

pub(crate) async fn check_adopted_file_system(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("file system");
    let cluster = &preflight.blueprint.cluster;
    match cluster.file_system.as_ref().map(|file_system| &file_system.source) {
        Some(FileSystemSource::Adopted { id, create_mount_targets }) => {
            let (id, create_mount_targets) = (id.as_str(), *create_mount_targets);
            Adopted { preflight, id, create_mount_targets }.check(clients, &mut findings).await?;
        }
        Some(FileSystemSource::Created { .. })
            if !preflight.live.is_or_will_be_complete(&StackPart::Storage) =>
        {
            let kept = clients.file_systems_of_cluster(cluster.name.as_str()).await;
            for kept in findings.take(kept)?.unwrap_or_default() {
                findings.warn(
                    format!("there is a file system of an earlier cluster {}: {}", cluster.name, kept.id),
                    "`destroy` keeps data; cluster.yaml would create a new, empty file system beside it, and both are billed",
                    format!("to use it again: storage.efs.fileSystemId: {} with createMountTargets: true", kept.id),
                );
            }
        }
        _ => {}
    }
    Ok(findings.into_list())
}

impl Adopted<'_> {
    async fn check(&self, clients: &Clients, findings: &mut SubjectFindings) -> Result<(), AwsError> {
        let (found, targets) =
            tokio::join!(Box::pin(clients.file_system(self.id)), Box::pin(clients.mount_targets(self.id)));
        match findings.take(found)? {
            None => {}
            Some(None) => {
                findings.refuse(
                    format!("there is no file system {}", self.id),
                    "every node mounts it",
                    "correct storage.efs.fileSystemId; `aws efs describe-file-systems` lists yours",
                );
                return Ok(());
            }
            Some(Some(file_system)) => self.check_file_system(&file_system, findings),
        }
        let Some(targets) = findings.take(targets)? else { return Ok(()) };
        if !self.check_targets(&targets, findings) {
            return Ok(());
        }
        let answers =
            join_all(targets.iter().map(|target| clients.mount_target_security_groups(&target.id))).await;
        let mut grouped: Vec<(&MountTarget, Vec<String>)> = Vec::new();
        for (target, groups) in targets.iter().zip(answers) {
            grouped.extend(findings.take(groups)?.map(|groups| (target, groups)));
        }
        let ids: BTreeSet<&String> = grouped.iter().flat_map(|(_, groups)| groups).collect();
        let ids: Vec<String> = ids.into_iter().cloned().collect();
        let Some(found) = findings.take(clients.security_groups(&ids).await)? else { return Ok(()) };
        for (target, groups) in grouped {
            let own = found.iter().filter(|group| groups.contains(&group.id));
            let rules: Vec<&InboundRule> = own.flat_map(|group| &group.inbound).collect();
            self.check_rules(target, &groups, &rules, findings);
        }
        Ok(())
    }

    fn check_file_system(&self, found: &ExistingFileSystem, findings: &mut SubjectFindings) {
        let id = self.id;
        if found.state != "available" {
            findings.refuse(
                format!("the file system {id} is {}", found.state),
                "every node mounts it",
                "wait until it is available, or name another",
            );
        }
        if !found.encrypted {
            findings.warn(
                format!("the file system {id} is not encrypted"),
                "anyone with access to its storage can read its data; encryption can only be chosen when it is created",
                "copy the data to an encrypted one if that matters",
            );
        }
        let other =
            |zone: &&AvailabilityZone| found.only_zone.as_deref().is_some_and(|only| only != zone.as_str());
        let others: Vec<&str> = self
            .preflight
            .blueprint
            .cluster
            .availability_zones
            .iter()
            .filter(other)
            .map(AvailabilityZone::as_str)
            .collect();
        if self.create_mount_targets && !others.is_empty() {
            findings.refuse(
                format!("the file system {id} is in one availability zone, but the cluster is also in {}", join_names(others)),
                "it can have a mount target in its own availability zone only, and the others would fail",
                "set createMountTargets: false and keep pools in its availability zone, or adopt a regional file system",
            );
        }
    }

    /// Returns whether the cluster can use any of them.
    fn check_targets(&self, targets: &[MountTarget], findings: &mut SubjectFindings) -> bool {
        let id = self.id;
        let blueprint = self.preflight.blueprint;
        let vpcs: BTreeSet<&str> = targets.iter().filter_map(|target| target.vpc.as_deref()).collect();
        let foreign = match &blueprint.network.adopted_vpc {
            Some(vpc) => vpcs.iter().any(|other| *other != vpc.as_str()),
            // None of them can be in a VPC that does not exist yet; the id of one that infra has created is not known here.
            None => !self.preflight.live.is_or_will_be_complete(&StackPart::Network) && !vpcs.is_empty(),
        };
        if foreign {
            findings.refuse(
                format!("the mount targets of file system {id} are in another VPC: {}", join_names(vpcs)),
                "a file system has mount targets in one VPC at a time, and its name resolves only there",
                "adopt that VPC (network.existing), or delete the mount targets and set createMountTargets: true",
            );
            return false;
        }
        let zones: BTreeSet<&str> = targets
            .iter()
            .filter(|target| target.state == "available")
            .map(|target| target.zone.as_str())
            .collect();
        let pools = blueprint
            .cluster
            .pools
            .iter()
            .flat_map(|pool| &pool.availability_zones)
            .map(AvailabilityZone::as_str);
        let missing: BTreeSet<&str> = pools.filter(|zone| !zones.contains(zone)).collect();
        if !self.create_mount_targets && !missing.is_empty() {
            findings.refuse(
                format!("the file system {id} has no mount target in {}", join_names(missing)),
                "nodes reach it through the mount target of their own availability zone, and would wait for it at boot",
                "set createMountTargets: true, create them yourself, or keep pools in availability zones that have one",
            );
        }
        true
    }

    fn check_rules(
        &self,
        target: &MountTarget,
        groups: &[String],
        rules: &[&InboundRule],
        findings: &mut SubjectFindings,
    ) {
        let MountTarget { id, zone, .. } = target;
        let vpc = self.preflight.blueprint.cluster.network.vpc_range;
        let rules: Vec<&InboundRule> = rules.iter().copied().filter(|rule| is_for_nfs(rule)).collect();
        let in_range = rules.iter().any(|rule| lets_in(rule, vpc));
        let by_name = rules.iter().any(|rule| rule.names_others);
        // If the cluster exists, its security groups may be among those that are named.
        if in_range || (by_name && self.preflight.live.is_or_will_be_complete(&StackPart::Network)) {
            return;
        }
        let names = join_names(groups);
        let what = if by_name {
            format!(
                "mount target {id} in {zone} accepts connections from certain security groups only ({names})"
            )
        } else {
            format!("no security group of mount target {id} in {zone} allows {vpc} on port {NFS} ({names})")
        };
        let group = groups.first().map_or("GROUP", String::as_str);
        findings.warn(
            what,
            "nodes are in security groups of their own, and would wait for the file system at boot",
            format!(
                "aws ec2 authorize-security-group-ingress --group-id {group} --protocol tcp --port {NFS} --cidr {vpc}"
            ),
        );
    }
}

fn is_for_nfs(rule: &InboundRule) -> bool {
    let from = rule.first_port.is_none_or(|port| port <= NFS);
    let to = rule.last_port.is_none_or(|port| port >= NFS);
    rule.protocol == "-1" || (rule.protocol == "tcp" && from && to)
}

fn lets_in(rule: &InboundRule, vpc: Ipv4Net) -> bool {
    rule.ranges.iter().filter_map(|range| range.parse::<Ipv4Net>().ok()).any(|range| has_overlap(range, vpc))
}

#[cfg(test)]
mod tests {
    use super::{is_for_nfs, lets_in};
    use crate::aws::InboundRule;

    fn rule(protocol: &str, ports: Option<(i32, i32)>) -> InboundRule {
        InboundRule {
            protocol: protocol.to_owned(),
            first_port: ports.map(|(first, _)| first),
            last_port: ports.map(|(_, last)| last),
            ranges: vec!["10.0.64.0/18".to_owned()],
            names_others: false,
        }
    }

    #[test]
    fn rules_for_nfs_are_distinguished_from_others() {
        assert!(is_for_nfs(&rule("tcp", Some((2049, 2049)))));
        assert!(is_for_nfs(&rule("tcp", Some((0, 65535)))));
        assert!(is_for_nfs(&rule("-1", None)));
        assert!(!is_for_nfs(&rule("tcp", Some((22, 443)))));
        assert!(!is_for_nfs(&rule("udp", Some((2049, 2049)))));
    }

    #[test]
    fn a_rule_admits_only_ranges_that_it_overlaps() {
        let rule = rule("-1", None);
        assert!("10.0.0.0/16".parse().is_ok_and(|vpc| lets_in(&rule, vpc)));
        assert!("10.1.0.0/16".parse().is_ok_and(|vpc| !lets_in(&rule, vpc)));
    }
}
