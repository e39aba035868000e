//! What a destroy takes, what it leaves, and what stands in its way, before it begins.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::DestroyOptions;
use super::file_systems::{FileSystem, Standing};
use super::found::Found;
use super::network::why;
use super::owner::owner_of;
use super::removal::backup_removal;
use super::target::DestroyTarget;
use crate::blueprint::StackPart;
use crate::config::values::S3Uri;

/// How the plan calls a file system.
pub const FILE_SYSTEM: &str = "file system";
/// How the plan calls a backup that AWS Backup made of one.
pub const BACKUP: &str = "backup";

/// One thing in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestroyItem {
    /// What it is.
    pub what: String,
    /// What AWS calls it.
    pub id: String,
    /// Why it goes, stays or is in the way.
    pub why: String,
}

/// What a destroy takes, what it leaves, and what is somebody else's. The exit code is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestroyPlan {
    /// In the order it goes.
    pub goes: Vec<DestroyItem>,
    /// What is left on purpose.
    pub stays: Vec<DestroyItem>,
    /// What is not this cluster's and holds its network.
    pub foreign: Vec<DestroyItem>,
}

fn item(what: impl Into<String>, id: impl Into<String>, why: impl Into<String>) -> DestroyItem {
    DestroyItem { what: what.into(), id: id.into(), why: why.into() }
}

impl DestroyPlan {
    /// Puts what was found in order.
    #[must_use]
    pub fn new(target: &DestroyTarget, found: &Found, options: DestroyOptions) -> Self {
        let mut plan = Self::default();
        plan.plan_stacks(found, |part| matches!(part, StackPart::Pool(_)));
        plan.plan_record(found);
        plan.plan_stacks(found, |part| *part == StackPart::ControlPlane);
        plan.plan_network(found, options);
        plan.plan_stacks(found, |part| *part == StackPart::Storage);
        plan.plan_uploads(found);
        plan.plan_stacks(found, |part| *part == StackPart::Network);
        plan.plan_data(target, found, options);
        plan
    }

    fn plan_stacks(&mut self, found: &Found, is_next: fn(&StackPart) -> bool) {
        for (part, live) in found.live.stacks.iter().filter(|(part, _)| is_next(part)) {
            let count = live.template["Resources"].as_object().map_or(0, serde_json::Map::len);
            let why = if count > 0 { format!("{count} resources") } else { live.stack.status.to_string() };
            self.goes.push(item(format!("stack of {part}"), &live.stack.name, why));
        }
    }

    fn plan_record(&mut self, found: &Found) {
        let Some(record) = &found.record else { return };
        let leads = format!("leads to {}", record.leads);
        if record.ours.is_empty() {
            let why = format!("{leads}, which is not this cluster");
            self.stays.push(item("public record", &record.name, why));
        } else {
            self.goes.push(item("public record", &record.name, leads));
        }
    }

    fn plan_network(&mut self, found: &Found, options: DestroyOptions) {
        let (own, foreign) = (&found.network.own, &found.network.foreign);
        for balancer in &own.balancers {
            let service = balancer
                .tags
                .get("kubernetes.io/service-name")
                .or_else(|| balancer.tags.get("service.k8s.aws/stack"));
            let owner =
                service.map_or_else(|| "made by Kubernetes".to_owned(), |name| format!("of Service {name}"));
            self.goes.push(item("load balancer", &balancer.name, owner));
        }
        for group in &found.network.target_groups {
            self.goes.push(item("target group", &group.name, "made by Kubernetes"));
        }
        for group in &own.groups {
            self.goes.push(item("security group", &group.id, format!("{}, made by Kubernetes", group.name)));
        }
        for interface in own.interfaces.iter().filter(|interface| interface.free) {
            self.goes.push(item("network interface", &interface.id, "nothing uses it any more"));
        }
        for balancer in &foreign.balancers {
            self.foreign.push(item("load balancer", &balancer.name, "carries no tag of this cluster"));
        }
        let mounts = own.mounts.iter().map(|mount| (mount, true));
        for (mount, ours) in mounts.chain(foreign.mounts.iter().map(|mount| (mount, false))) {
            let entry =
                item("mount target", &mount.id, format!("of {} in {}", mount.file_system, mount.subnet));
            if ours || options.remove_foreign_mount_targets && mount.removable {
                self.goes.push(entry);
            } else {
                self.foreign.push(entry);
            }
        }
        for group in &foreign.groups {
            self.foreign.push(item("security group", &group.id, why(group, found)));
        }
        for interface in &foreign.interfaces {
            self.foreign.push(item(
                "network interface",
                &interface.id,
                format!("of {}", owner_of(interface)),
            ));
        }
        if let Some((zone, records)) = &found.private_zone
            && !records.is_empty()
        {
            self.goes.push(item("records of the private zone", zone, format!("{} of them", records.len())));
        }
    }

    fn plan_uploads(&mut self, found: &Found) {
        for stored in found.stored.iter().filter(|stored| !stored.boot.is_empty()) {
            let count = format!("{} objects with all versions", stored.boot.len());
            self.goes.push(item("machine configurations", stored.address(), count));
        }
        if let Some(grant) = &found.grant {
            self.goes.push(item("grant of the KMS key", &grant.id, "let Auto Scaling use the key for disks"));
        }
    }

    fn plan_data(&mut self, target: &DestroyTarget, found: &Found, options: DestroyOptions) {
        let mut data = Vec::new();
        for FileSystem { id, standing } in &found.file_systems {
            match standing {
                Standing::Made => data.push(item(FILE_SYSTEM, id, "holds your files")),
                Standing::Adopted => {
                    self.stays.push(item(FILE_SYSTEM, id, "was there before the cluster"));
                }
                Standing::InUse(place) => {
                    let why = format!("a cluster of this name made it, and somebody mounts it in {place}");
                    self.stays.push(item("file system in use", id, why));
                }
            }
        }
        for stored in &found.stored {
            if !stored.backups.is_empty() {
                let count = format!("{} objects", stored.backups.len());
                data.push(item("etcd snapshots", format!("{}snapshots/", stored.address()), count));
            }
            if let Some((count, example)) = stored.strangers() {
                let why = format!("{count}, for example {example}: this tool did not write them");
                self.stays.push(item("objects of others", stored.address(), why));
            }
        }
        for snapshot in &found.snapshots {
            data.push(item("disk snapshot", &snapshot.id, format!("of etcd's volume {}", snapshot.volume)));
        }
        if found.live.stacks.contains_key(&StackPart::ControlPlane)
            && !found.volumes.is_empty()
            && !options.delete_data
        {
            self.stays.push(item(
                "disk snapshots",
                format!("{} to be made", found.volumes.len()),
                "etcd's disks are kept as snapshots",
            ));
        }
        if options.delete_data { &mut self.goes } else { &mut self.stays }.extend(data);
        for arn in &found.backups {
            let why = format!("a backup of your files; `{}` deletes it", backup_removal(arn, &found.region));
            self.stays.push(item(BACKUP, arn, why));
        }
        let buckets: BTreeSet<&str> = target.places.iter().map(S3Uri::bucket).collect();
        for bucket in buckets {
            self.stays.push(item("bucket", bucket, "may hold more than this cluster"));
        }
        if let Some(key) = &target.kms_key {
            self.stays.push(item("KMS key", key, "was there before the cluster"));
        }
        if let Some((vpc, false)) = &found.vpc {
            self.stays.push(item("VPC", vpc, "was there before the cluster"));
        }
    }
}
