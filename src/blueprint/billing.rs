//! What AWS will bill for, by stack: what, how many, and how each is charged.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::{Charge, MachineCharge};
use super::prices::UnitPrice;
use super::{Blueprint, StackPart};
use crate::config::values::InstanceType;
use crate::config::{FileSystemSource, Pool, ThroughputMode};

/// The ids of the capacity reservations that are capacity blocks: only AWS knows which of the two an id is.
pub type BlockIds = BTreeSet<String>;

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
    /// What each of them is charged for.
    #[serde(skip)]
    pub charge: Charge,
}

impl Blueprint {
    /// Everything that is billed by the hour or by size while the cluster runs as cluster.yaml says.
    #[must_use]
    pub fn billed_items(&self, blocks: &BlockIds) -> Vec<BilledItem> {
        self.items(|pool| pool.count, blocks)
    }

    /// The most that can be billed: every pool at its `maxCount`, and no machine cheaper than on demand, but for those that are paid in
    /// advance.
    #[must_use]
    pub fn largest_items(&self, blocks: &BlockIds) -> Vec<BilledItem> {
        let items = self.items(|pool| pool.max_count, blocks).into_iter();
        items.map(|item| BilledItem { charge: item.charge.on_demand(), ..item }).collect()
    }

    /// What is billed by use, which no one knows in advance.
    #[must_use]
    pub fn used_units(&self) -> Vec<UnitPrice> {
        let mut units = Vec::new();
        if !self.network.nat_availability_zones.is_empty() {
            units.push(UnitPrice::NatGatewayGigabyte);
        }
        units.push(UnitPrice::LoadBalancerCapacityHour);
        if let Some(file_system) = &self.cluster.file_system {
            units.push(UnitPrice::FileSystemGibibyteMonth);
            if let FileSystemSource::Created { throughput_mode: ThroughputMode::Elastic, .. } =
                &file_system.source
            {
                units.extend([UnitPrice::FileSystemRead, UnitPrice::FileSystemWrite]);
            }
        }
        units.extend([UnitPrice::BucketGigabyteMonth, UnitPrice::KeyMonth]);
        units
    }

    fn items(&self, size: fn(&Pool) -> u32, blocks: &BlockIds) -> Vec<BilledItem> {
        let cluster = &self.cluster;
        let mut items = Vec::new();
        let mut add = |stack: &str, what: &str, count: u32, note: String, charge: Charge| {
            if count > 0 {
                let stack = format!("{}-{stack}", cluster.name);
                items.push(BilledItem { stack, what: what.to_owned(), count, note, charge });
            }
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let one = |unit: UnitPrice| Charge::Units(unit, 1);
        let disk = |gib: u32| Charge::Units(UnitPrice::DiskGibibyteMonth, gib);
        let on_demand = |name: &InstanceType| Charge::Machine(MachineCharge::on_demand(name.to_string()));
        let traffic = || "and its traffic".to_owned();
        let gateways = number(self.network.nat_availability_zones.len());
        add("network", "NAT gateway", gateways, traffic(), one(UnitPrice::NatGatewayHour));
        add("network", "public IPv4 address", gateways, String::new(), one(UnitPrice::PublicAddressHour));
        add("network", "private hosted zone", 1, String::new(), one(UnitPrice::HostedZoneMonth));
        if let Some(file_system) = &cluster.file_system
            && let FileSystemSource::Created { throughput_mode, .. } = &file_system.source
        {
            let note = format!("{throughput_mode} throughput, by what is stored and moved");
            add("storage", "EFS file system", 1, note, Charge::Use);
        }
        let (etcd, controllers) = (&cluster.etcd, &cluster.controllers);
        let note = format!("{}, etcd", etcd.instance_type);
        add("control-plane", "machine", etcd.count, note, on_demand(&etcd.instance_type));
        let note = format!("{} GiB gp3, etcd's data", etcd.volume_gib);
        add("control-plane", "disk", etcd.count, note, disk(etcd.volume_gib));
        let note = format!("{}, controllers", controllers.instance_type);
        add("control-plane", "machine", controllers.count, note, on_demand(&controllers.instance_type));
        let gib = super::CONTROL_PLANE_DISK_GIB;
        let note = format!("{gib} GiB gp3");
        add("control-plane", "disk", etcd.count + controllers.count, note, disk(gib));
        let balancers = if cluster.api.public { 2 } else { 1 };
        let charge = one(UnitPrice::LoadBalancerHour);
        add("control-plane", "network load balancer", balancers, traffic(), charge);
        let machines = if self.network.public_machines { etcd.count + controllers.count } else { 0 };
        let balanced = if cluster.api.public { number(self.network.public_subnets().count()) } else { 0 };
        let charge = one(UnitPrice::PublicAddressHour);
        add("control-plane", "public IPv4 address", machines + balanced, String::new(), charge);
        for pool in &cluster.pools {
            let stack = StackPart::Pool(pool.name.clone()).file_name();
            let count = size(pool);
            add(&stack, "machine", count, describe_machines(pool, blocks), pool_charge(pool, blocks));
            let note = format!("{} GiB gp3", pool.root_volume_gib);
            add(&stack, "disk", count, note, disk(pool.root_volume_gib));
            if self.network.public_machines {
                let charge = one(UnitPrice::PublicAddressHour);
                add(&stack, "public IPv4 address", count, String::new(), charge);
            }
        }
        items
    }
}

/// How a machine of a pool is paid for.
#[must_use]
pub fn pool_charge(pool: &Pool, blocks: &BlockIds) -> Charge {
    if has_block(pool, blocks) {
        return Charge::Prepaid;
    }
    Charge::Machine(MachineCharge {
        types: pool.instance_types.iter().map(ToString::to_string).collect(),
        spot: pool.spot,
        zones: pool.availability_zones.iter().map(ToString::to_string).collect(),
    })
}

/// Whether the machines of a pool are those of a capacity block.
fn has_block(pool: &Pool, blocks: &BlockIds) -> bool {
    let reservation = pool.capacity_reservation.as_ref().filter(|_| pool.may_have_block());
    reservation.is_some_and(|id| blocks.contains(id.as_str()))
}

fn describe_machines(pool: &Pool, blocks: &BlockIds) -> String {
    let how = if pool.spot {
        "spot"
    } else if has_block(pool, blocks) {
        "capacity block, paid in advance"
    } else if pool.may_have_block() {
        "on demand, unless the reservation is a capacity block"
    } else {
        "on demand"
    };
    let range = if pool.min_count == pool.max_count {
        String::new()
    } else {
        format!(", {} to {} with the autoscaler", pool.min_count, pool.max_count)
    };
    format!("{}, {how}{range}", pool.instance_types[0])
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::{BilledItem, BlockIds, Blueprint, Charge};

    #[test]
    fn what_is_billed_follows_the_cluster() -> Result<(), Box<dyn std::error::Error>> {
        let more = ", network: {topology: private, nat: shared}, api: {public: false}, \
                    pools: [{name: gpu, instanceType: g5.xlarge, count: 3, minCount: 0, spot: true}], storage: {efs: {}}";
        let items = Blueprint::new(cluster(more)?)?.billed_items(&BlockIds::new());
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

    #[test]
    fn a_pool_can_grow_to_its_largest_and_is_paid_on_demand_then() -> Result<(), Box<dyn std::error::Error>> {
        let more = ", pools: [{name: gpu, instanceType: g5.xlarge, count: 0, maxCount: 8, spot: true}]";
        let blueprint = Blueprint::new(cluster(more)?)?;
        let of_pool = |items: Vec<BilledItem>| -> Vec<(u32, Charge)> {
            let items = items.into_iter().filter(|item| item.stack == "paddle-pool-gpu");
            items.map(|item| (item.count, item.charge)).collect()
        };
        let none = BlockIds::new();
        assert_eq!(of_pool(blueprint.billed_items(&none)), []);
        let largest = of_pool(blueprint.largest_items(&none));
        assert_eq!(largest.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [8, 8, 8]);
        assert!(matches!(&largest[0].1, Charge::Machine(machine) if !machine.spot), "{largest:?}");
        Ok(())
    }

    #[test]
    fn a_capacity_block_is_paid_in_advance_and_its_disks_are_not() -> Result<(), Box<dyn std::error::Error>> {
        let id = "cr-0123456789abcdef0";
        let more = ", pools: [{name: gpu, instanceType: p5.48xlarge, image: deep-learning, maxCount: 4, \
                    capacityReservationId: cr-0123456789abcdef0}]";
        let blueprint = Blueprint::new(cluster(more)?)?;
        let of_pool = |items: Vec<BilledItem>| -> Vec<(String, u32, Charge)> {
            let items = items.into_iter().filter(|item| item.stack == "paddle-pool-gpu");
            items.map(|item| (item.note, item.count, item.charge)).collect()
        };
        let block = BlockIds::from([id.to_owned()]);
        for (items, count) in [(blueprint.billed_items(&block), 1), (blueprint.largest_items(&block), 4)] {
            let found = of_pool(items);
            let note = "p5.48xlarge, capacity block, paid in advance, 1 to 4 with the autoscaler";
            assert_eq!(found[0], (note.to_owned(), count, Charge::Prepaid));
            assert!(matches!(found[1], (_, disks, Charge::Units(..)) if disks == count), "{found:?}");
        }
        // Before anyone has asked AWS, it counts as what it costs most as.
        let unknown = of_pool(blueprint.largest_items(&BlockIds::from(["cr-00000000000000000".to_owned()])));
        let (note, _, charge) = &unknown[0];
        assert!(note.contains("on demand, unless the reservation is a capacity block"), "{note}");
        assert!(matches!(charge, Charge::Machine(_)), "{charge:?}");
        Ok(())
    }
}
