//! What AWS will bill for, by stack: kinds and numbers, no prices.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Blueprint, StackPart};
use crate::config::FileSystemSource;

/// One line of the bill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BilledItem {
    /// The name of the stack that creates it.
    pub stack: String,
    /// What is billed: a machine, a disk, a NAT gateway.
    pub what: String,
    /// The number of them.
    pub count: u32,
    /// What else the price depends on; may be empty.
    pub note: String,
}

impl Blueprint {
    /// Everything that is billed by the hour or by size while the cluster runs as cluster.yaml says.
    #[must_use]
    pub fn billed_items(&self) -> Vec<BilledItem> {
        let mut items = Vec::new();
        let mut add = |stack: &str, what: &str, count: u32, note: String| {
            if count > 0 {
                let stack = format!("{}-{stack}", self.cluster.name);
                items.push(BilledItem { stack, what: what.to_owned(), count, note });
            }
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let cluster = &self.cluster;
        add(
            "network",
            "NAT gateway",
            number(self.network.nat_availability_zones.len()),
            "and its traffic".to_owned(),
        );
        add(
            "network",
            "public IPv4 address",
            number(self.network.nat_availability_zones.len()),
            String::new(),
        );
        add("network", "private hosted zone", 1, String::new());
        if let Some(file_system) = &cluster.file_system
            && let FileSystemSource::Created { throughput_mode, .. } = &file_system.source
        {
            let note = format!("{throughput_mode} throughput, by what is stored and moved");
            add("storage", "EFS file system", 1, note);
        }
        let (etcd, controllers) = (&cluster.etcd, &cluster.controllers);
        add("control-plane", "machine", etcd.count, format!("{}, etcd", etcd.instance_type));
        add("control-plane", "disk", etcd.count, format!("{} GiB gp3, etcd's data", etcd.volume_gib));
        add(
            "control-plane",
            "machine",
            controllers.count,
            format!("{}, controllers", controllers.instance_type),
        );
        let root_disks = etcd.count + controllers.count;
        add("control-plane", "disk", root_disks, format!("{} GiB gp3", super::CONTROL_PLANE_DISK_GIB));
        let balancers = if cluster.api.public { 2 } else { 1 };
        add("control-plane", "network load balancer", balancers, "and its traffic".to_owned());
        let machines = if self.network.public_machines { etcd.count + controllers.count } else { 0 };
        let balanced = if cluster.api.public { number(self.network.public_subnets().count()) } else { 0 };
        add("control-plane", "public IPv4 address", machines + balanced, String::new());
        for pool in &cluster.pools {
            let stack = StackPart::Pool(pool.name.clone()).file_name();
            let how = if pool.spot { "spot" } else { "on demand" };
            let range = if pool.min_count == pool.max_count {
                String::new()
            } else {
                format!(", {} to {} with the autoscaler", pool.min_count, pool.max_count)
            };
            add(&stack, "machine", pool.count, format!("{}, {how}{range}", pool.instance_types[0]));
            add(&stack, "disk", pool.count, format!("{} GiB gp3", pool.root_volume_gib));
            if self.network.public_machines {
                add(&stack, "public IPv4 address", pool.count, String::new());
            }
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::Blueprint;

    #[test]
    fn what_is_billed_follows_the_cluster() -> Result<(), Box<dyn std::error::Error>> {
        let more = ", network: {topology: private, nat: shared}, api: {public: false}, \
                    pools: [{name: gpu, instanceType: g5.xlarge, count: 3, minCount: 0, spot: true}], storage: {efs: {}}";
        let items = Blueprint::new(cluster(more)?)?.billed_items();
        let lines: Vec<String> =
            items.iter().map(|i| format!("{} {} × {} {}", i.stack, i.count, i.what, i.note)).collect();
        for line in [
            "paddle-network 1 × NAT gateway and its traffic",
            "paddle-storage 1 × EFS file system elastic throughput, by what is stored and moved",
            "paddle-control-plane 3 × machine t3.medium, etcd",
            "paddle-control-plane 1 × network load balancer and its traffic",
            "paddle-pool-gpu 3 × machine g5.xlarge, spot, 0 to 3 with the autoscaler",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line} is not in {lines:#?}");
        }
        Ok(())
    }
}
