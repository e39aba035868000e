//! What the resources of stacks are charged for: of live stacks, and of stacks as they should be.

use serde_json::Value;

use super::desired::DesiredStack;
use super::live::{LiveCluster, LiveStack};
use crate::aws::{AUTO_SCALING_GROUP_TYPE, GroupMachine, ScalingGroup, Stack};
use crate::blueprint::{BLOCK_ENDS_AT, Charge, MachineCharge, StackPart, UnitPrice};
use crate::config::Cluster;
use crate::well_known::ROLE_TAG;

/// Charges, and how often each applies.
pub(crate) type Charges = Vec<(u32, Charge)>;

/// What runs now is charged for: each machine by its own type and availability zone.
#[must_use]
pub(crate) fn running_charges(live: &LiveCluster) -> Charges {
    let stacks = live.stacks.values();
    stacks
        .flat_map(|stack| {
            let prepaid = is_in_block(&stack.stack);
            TemplateCharges { zones: Vec::new(), prepaid, size: &|role| running_machines(live, role) }
                .of(stack.template())
        })
        .collect()
}

/// What the cluster is charged for before and after `desired` is applied. Stacks for which `is_deleted` holds are not there afterwards.
#[must_use]
pub(crate) fn planned_charges(
    cluster: &Cluster,
    live: &LiveCluster,
    desired: &[DesiredStack],
    is_deleted: impl Fn(&StackPart) -> bool,
) -> (Charges, Charges) {
    let zones = |part: &StackPart| match part {
        StackPart::Pool(name) => cluster
            .pool(name)
            .map_or_else(Vec::new, |pool| pool.availability_zones.iter().map(ToString::to_string).collect()),
        _ => Vec::new(),
    };
    let of_live = |(part, stack): (&StackPart, &LiveStack)| {
        let size = |role: &str| Size::Alike(live_group(live, role).map(|group| group.desired));
        TemplateCharges { zones: zones(part), prepaid: is_in_block(&stack.stack), size: &size }
            .of(stack.template())
    };
    let before = live.stacks.iter().flat_map(of_live).collect();
    let is_desired = |part: &StackPart| desired.iter().any(|stack| stack.part == *part);
    let kept =
        live.stacks.iter().filter(|(part, _)| !is_desired(part) && !is_deleted(part)).flat_map(of_live);
    let wanted = desired.iter().flat_map(|stack| {
        let size = |_: &str| Size::Alike(stack.machines(live));
        TemplateCharges { zones: zones(&stack.part), prepaid: stack.block().is_some(), size: &size }
            .of(stack.template.document())
    });
    (before, kept.chain(wanted).collect())
}

/// Whether the machines of a pool's live stack are in a capacity block, which is paid in advance.
#[must_use]
pub(crate) fn is_in_block(stack: &Stack) -> bool {
    stack.parameters.get(BLOCK_ENDS_AT).is_some_and(|at| !at.is_empty())
}

fn live_group<'a>(live: &'a LiveCluster, role: &str) -> Option<&'a ScalingGroup> {
    live.groups.iter().find(|group| group.tags.get(ROLE_TAG).map(String::as_str) == Some(role))
}

fn running_machines<'a>(live: &'a LiveCluster, role: &str) -> Size<'a> {
    let machines = live_group(live, role).map_or(&[][..], |group| &group.machines);
    Size::Each(machines.iter().filter(|machine| !machine.is_terminating()).collect())
}

/// The machines of an Auto Scaling group.
enum Size<'a> {
    /// A number of machines of the types that the template names; the number of the template if none is given.
    Alike(Option<u32>),
    /// These machines, which run now.
    Each(Vec<&'a GroupMachine>),
}

/// Reads charges from a template.
struct TemplateCharges<'a, 'b> {
    /// The availability zones of spot machines; any if none is named.
    zones: Vec<String>,
    /// Whether machines are in a capacity block, which is paid in advance.
    prepaid: bool,
    /// The machines of the Auto Scaling group of a role.
    size: &'b dyn Fn(&str) -> Size<'a>,
}

impl TemplateCharges<'_, '_> {
    fn of(&self, template: &Value) -> Charges {
        let resources = template["Resources"].as_object();
        let one = |unit| vec![(1, Charge::Units(unit, 1))];
        let charges = |resource: &Value| {
            let properties = &resource["Properties"];
            match resource["Type"].as_str().unwrap_or_default() {
                "AWS::EC2::NatGateway" => one(UnitPrice::NatGatewayHour),
                "AWS::EC2::EIP" => one(UnitPrice::PublicAddressHour),
                "AWS::EC2::Volume" => vec![(1, disk(&properties["Size"]))],
                "AWS::Route53::HostedZone" => one(UnitPrice::HostedZoneMonth),
                "AWS::ElasticLoadBalancingV2::LoadBalancer" => {
                    let mut charges = one(UnitPrice::LoadBalancerHour);
                    if properties["Scheme"] == "internet-facing" {
                        let subnets = properties["Subnets"].as_array().map_or(0, Vec::len);
                        charges.push((number(subnets), Charge::Units(UnitPrice::PublicAddressHour, 1)));
                    }
                    charges
                }
                AUTO_SCALING_GROUP_TYPE => self.of_group(properties, template),
                _ => Vec::new(),
            }
        };
        resources.into_iter().flat_map(serde_json::Map::values).flat_map(charges).collect()
    }

    fn of_group(&self, group: &Value, template: &Value) -> Charges {
        let mixed = &group["MixedInstancesPolicy"];
        let reference = [&group["LaunchTemplate"], &mixed["LaunchTemplate"]["LaunchTemplateSpecification"]];
        let name = reference.iter().find_map(|reference| reference["LaunchTemplateId"]["Ref"].as_str());
        let launch = &template["Resources"][name.unwrap_or_default()]["Properties"]["LaunchTemplateData"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let overrides = mixed["LaunchTemplate"]["Overrides"].as_array().into_iter().flatten();
        let mut types: Vec<String> = overrides.filter_map(|entry| text(&entry["InstanceType"])).collect();
        if types.is_empty() {
            types.extend(text(&launch["InstanceType"]));
        }
        let parts = &mixed["InstancesDistribution"];
        let spot = parts["OnDemandPercentageAboveBaseCapacity"].as_u64() == Some(0);
        let tags = group["Tags"].as_array().into_iter().flatten();
        let role = tags.filter(|tag| tag["Key"] == ROLE_TAG).find_map(|tag| tag["Value"].as_str());
        let machine = |types: Vec<String>, zones: &[String]| {
            if self.prepaid {
                Charge::Prepaid
            } else {
                Charge::Machine(MachineCharge { types, spot, zones: zones.to_vec() })
            }
        };
        let (count, mut charges) = match (self.size)(role.unwrap_or_default()) {
            Size::Alike(count) => {
                let count = count.unwrap_or_else(|| read_number(&group["DesiredCapacity"]));
                (count, vec![(count, machine(types, &self.zones))])
            }
            Size::Each(machines) => {
                let charge = |found: &&GroupMachine| {
                    let known = Some(found.instance_type.clone()).filter(|name| !name.is_empty());
                    let types = known.map_or_else(|| types.clone(), |name| vec![name]);
                    (1, machine(types, std::slice::from_ref(&found.zone)))
                };
                (number(machines.len()), machines.iter().map(charge).collect())
            }
        };
        let disks = launch["BlockDeviceMappings"].as_array().into_iter().flatten();
        charges.extend(disks.map(|mapping| (count, disk(&mapping["Ebs"]["VolumeSize"]))));
        let interfaces = launch["NetworkInterfaces"].as_array().into_iter().flatten();
        let public = interfaces.filter(|interface| interface["AssociatePublicIpAddress"] == true).count();
        charges.push((count * number(public), Charge::Units(UnitPrice::PublicAddressHour, 1)));
        charges
    }
}

fn disk(size: &Value) -> Charge {
    Charge::Units(UnitPrice::DiskGibibyteMonth, read_number(size))
}

fn read_number(value: &Value) -> u32 {
    match value {
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_u64().and_then(|value| u32::try_from(value).ok()).unwrap_or_default(),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use serde_json::Value;
    use time::macros::date;

    use super::{Size, TemplateCharges};
    use crate::blueprint::{BlockIds, Blueprint, Charge, Cost, Currency, Prices, pool_charge};
    use crate::config::values::Money;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    /// Another price for everything, so that nothing can stand for something else.
    fn prices(charges: &[(u32, Charge)]) -> Prices {
        let mut prices = Prices::none(date!(2026 - 11 - 01), Currency::Usd);
        let amount = |number: usize| format!("{number}.{number}").parse::<Money>().unwrap_or_default();
        for (index, (_, charge)) in charges.iter().enumerate() {
            match charge {
                Charge::Machine(machine) => {
                    for name in &machine.types {
                        prices.machines.entry(name.clone()).or_insert_with(|| amount(index + 1));
                        let zones = prices.spot.entry(name.clone()).or_default();
                        zones.entry("us-west-2a".to_owned()).or_insert_with(|| amount(index + 50));
                    }
                }
                Charge::Units(unit, _) => {
                    prices.units.entry(unit.key().to_owned()).or_insert_with(|| amount(index + 100));
                }
                Charge::Use | Charge::Prepaid => {}
            }
        }
        prices
    }

    #[test]
    fn what_templates_create_is_what_cluster_yaml_is_billed_for() -> TestResult {
        let clusters = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters");
        let mut compared = Vec::new();
        // The list of golden clusters is the directory: a new one is compared without another word here.
        for directory in fs::read_dir(clusters)? {
            let directory = directory?.path();
            let file = directory.join("cluster.yaml");
            if !file.is_file() {
                continue;
            }
            let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let cluster = crate::config::validate(&file, &fs::read_to_string(&file)?)?.value;
            let blueprint = Blueprint::new(cluster)?;
            let reservations = blueprint.cluster.pools.iter().filter(|pool| pool.may_have_block());
            let blocks: BlockIds = reservations
                .filter_map(|pool| pool.capacity_reservation.as_ref())
                .map(ToString::to_string)
                .collect();
            for blocks in BTreeSet::from([BlockIds::new(), blocks]) {
                compare(&name, &blueprint, &blocks, &directory.join("expected/stacks"))?;
            }
            compared.push(name);
        }
        assert!(compared.len() > 6, "{compared:?}");
        Ok(())
    }

    fn compare(name: &str, blueprint: &Blueprint, blocks: &BlockIds, stacks: &Path) -> TestResult {
        let billed: Vec<(u32, Charge)> =
            blueprint.billed_items(blocks).into_iter().map(|item| (item.count, item.charge)).collect();
        let size = |role: &str| {
            let mut pools = blueprint.cluster.pools.iter();
            Size::Alike(pools.find(|pool| role == format!("pool-{}", pool.name)).map(|pool| pool.count))
        };
        let prepaid_stacks: BTreeSet<String> = (blueprint.cluster.pools.iter())
            .filter(|pool| pool_charge(pool, blocks) == Charge::Prepaid)
            .map(|pool| format!("pool-{}.json", pool.name))
            .collect();
        let mut created = Vec::new();
        for stack in fs::read_dir(stacks)? {
            let stack = stack?;
            let template: Value = serde_json::from_str(&fs::read_to_string(stack.path())?)?;
            let prepaid = prepaid_stacks.contains(stack.file_name().to_string_lossy().as_ref());
            created.extend(TemplateCharges { zones: Vec::new(), prepaid, size: &size }.of(&template));
        }
        let prices = prices(&billed);
        let cost = |charges: &[(u32, Charge)]| {
            Cost::of(charges.iter().map(|(count, charge)| (*count, charge)), &prices)
        };
        assert_eq!(cost(&created), cost(&billed), "{name}: {created:#?} {billed:#?}");
        assert_eq!(cost(&billed).prepaid_machines > 0, !blocks.is_empty(), "{name}");
        assert!(cost(&billed).missing.is_empty() && cost(&billed).per_month() > Money::ZERO, "{name}");
        Ok(())
    }
}
