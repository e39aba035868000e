//! How many vCPUs and elastic addresses the account may have, against what the cluster needs.

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use super::finding::{SubjectFindings, join_names};
use super::join_all::join_all;
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients};
use crate::blueprint::{BLOCK_ENDS_AT, Role, StackPart};
use crate::config::values::InstanceType;
use crate::config::{Cluster, Pool};
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::pool_size::missing_machines;

/// A quota of vCPUs: one for each series of types and purchase option.
#[derive(Debug, PartialEq, Eq)]
struct Quota {
    code: &'static str,
    series: &'static str,
    spot: bool,
}

static QUOTAS: [Quota; 6] = [
    Quota { code: "L-1216C47A", series: "standard", spot: false },
    Quota { code: "L-DB2E81BA", series: "G", spot: false },
    Quota { code: "L-417A185B", series: "P", spot: false },
    Quota { code: "L-34B43A08", series: "standard", spot: true },
    Quota { code: "L-3819A6DF", series: "G", spot: true },
    Quota { code: "L-7212CCBC", series: "P", spot: true },
];

const ADDRESSES: &str = "L-0263D0A3";

/// Machines that are still to be launched and count against one quota.
struct PlannedMachines<'a> {
    who: String,
    types: &'a [InstanceType],
    quota: &'static Quota,
    count: u32,
    most: u32,
}

/// vCPUs that a quota must have room for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Demand {
    who: Vec<String>,
    now: u32,
    most: u32,
}

pub(crate) async fn check_quotas(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("quotas");
    let cluster = &preflight.blueprint.cluster;
    let planned = planned_machines(cluster, preflight.live);
    let addresses = addresses_wanted(preflight);
    if planned.is_empty() && addresses == 0 {
        return Ok(findings.into_list());
    }
    let types: BTreeSet<String> =
        planned.iter().flat_map(|machines| machines.types).map(ToString::to_string).collect();
    let types: Vec<String> = types.into_iter().collect();
    let asked: Vec<&Quota> =
        QUOTAS.iter().filter(|quota| planned.iter().any(|machines| machines.quota == *quota)).collect();
    let (processors, in_use, values, (address_quota, addresses_in_use)) = tokio::join!(
        Box::pin(clients.processors_of(&types)),
        Box::pin(processors_in_use(clients)),
        join_all(asked.iter().map(|quota| clients.quota("ec2", quota.code))),
        Box::pin(address_facts(clients, addresses)),
    );
    let processors = findings.take(processors)?.unwrap_or_default();
    let in_use = findings.take(in_use)?.unwrap_or_default();
    for (quota, value) in asked.into_iter().zip(values) {
        if let Some(Some(value)) = findings.take(value)? {
            let used = in_use.get(quota.code).copied().unwrap_or_default();
            let demand = machine_demand(&planned, quota, &processors);
            check_processors(cluster, quota, &demand, used, value, &mut findings);
        }
    }
    let address_quota = findings.take(address_quota)?.flatten();
    if let (Some(value), Some(used)) = (address_quota, findings.take(addresses_in_use)?)
        && f64::from(used.saturating_add(addresses)) > value
    {
        findings.refuse(
            format!("the cluster needs {addresses} elastic addresses; {used} of {value} are in use"),
            "etcd members and NAT gateways have fixed addresses, and their stack would fail",
            format!(
                "release unused ones, or {}",
                demand_increase(cluster, ADDRESSES, used.saturating_add(addresses))
            ),
        );
    }
    Ok(findings.into_list())
}

fn check_processors(
    cluster: &Cluster,
    quota: &Quota,
    demand: &Demand,
    used: u32,
    value: f64,
    findings: &mut SubjectFindings,
) {
    let kind = if quota.spot { "spot" } else { "on-demand" };
    let what = |wanted: u32, when: &str| {
        format!(
            "{wanted} vCPUs of {kind} {} machines{when} are needed by {}; the quota is {value}, and {used} are in use",
            quota.series,
            join_names(&demand.who)
        )
    };
    let why = "AWS starts no machine beyond the quota";
    let fix = |wanted: u32| demand_increase(cluster, quota.code, wanted.saturating_add(used));
    if f64::from(demand.now) > value {
        findings.refuse(what(demand.now, ""), why, fix(demand.now));
    } else if f64::from(demand.now.saturating_add(used)) > value {
        findings.warn(what(demand.now, ""), why, fix(demand.now));
    } else if f64::from(demand.most.saturating_add(used)) > value {
        findings.warn(what(demand.most, " at maxCount"), why, fix(demand.most));
    }
}

fn demand_increase(cluster: &Cluster, code: &str, wanted: u32) -> String {
    format!(
        "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} --desired-value {wanted} \
         --region {}",
        cluster.region
    )
}

/// How many vCPUs run already, by the code of their quota.
async fn processors_in_use(clients: &Clients) -> Result<BTreeMap<&'static str, u32>, AwsError> {
    let running = clients.running_machines().await?;
    let types: BTreeSet<String> = running.keys().map(|kind| kind.instance_type.clone()).collect();
    let processors = clients.processors_of(&types.into_iter().collect::<Vec<_>>()).await?;
    let mut in_use = BTreeMap::new();
    for (kind, count) in &running {
        let each = processors.get(&kind.instance_type).copied().unwrap_or_default();
        if let Some(quota) = quota_of(&kind.instance_type, kind.spot) {
            *in_use.entry(quota.code).or_insert(0) += count.saturating_mul(each);
        }
    }
    Ok(in_use)
}

/// The quota and the use of elastic addresses; nothing is read if none are needed.
async fn address_facts(
    clients: &Clients,
    wanted: u32,
) -> (Result<Option<f64>, AwsError>, Result<u32, AwsError>) {
    if wanted == 0 {
        return (Ok(None), Ok(0));
    }
    tokio::join!(Box::pin(clients.quota("ec2", ADDRESSES)), Box::pin(clients.elastic_addresses()))
}

fn addresses_wanted(preflight: &Preflight<'_>) -> u32 {
    let network = &preflight.blueprint.network;
    let holder = if network.public_machines { StackPart::ControlPlane } else { StackPart::Network };
    if preflight.live.is_or_will_be_complete(&holder) {
        0
    } else if network.public_machines {
        preflight.blueprint.cluster.etcd.count
    } else {
        u32::try_from(network.nat_availability_zones.len()).unwrap_or(u32::MAX)
    }
}

/// The machines that are still to be launched, by role. Those of a capacity reservation count from when it was created, and those of a
/// capacity block never.
fn planned_machines<'a>(cluster: &'a Cluster, live: &LiveCluster) -> Vec<PlannedMachines<'a>> {
    let Cluster { etcd, controllers, pools, .. } = cluster;
    let pools = pools.iter().filter(|pool| pool.capacity_reservation.is_none()).filter_map(|pool| {
        let quota = quota_of(pool.instance_types.first()?.as_str(), pool.spot)?;
        let there = machines_of_pool(pool, quota, live);
        let missing = match there {
            Some(_) => missing_machines(pool, live, None),
            None => pool.count.max(pool.min_count),
        };
        let most = pool.max_count.saturating_sub(there.unwrap_or_default());
        let who = format!("pool {}", pool.name);
        let wants = there.is_none() || missing > 0;
        wants.then_some(PlannedMachines { who, types: &pool.instance_types, quota, count: missing, most })
    });
    let is_complete = live.is_or_will_be_complete(&StackPart::ControlPlane);
    let members = if is_complete { 0 } else { etcd.count };
    let running = live.group_of_role(&Role::Controller).filter(|_| is_complete);
    let running = running.map_or(0, |group| group.desired);
    let control_plane = [
        ("etcd members", &etcd.instance_type, members),
        ("controllers", &controllers.instance_type, controllers.count.saturating_sub(running)),
    ];
    let control_plane =
        control_plane.into_iter().filter(|(_, _, count)| *count > 0).filter_map(|(who, kind, count)| {
            let quota = quota_of(kind.as_str(), false)?;
            Some(PlannedMachines { who: who.to_owned(), types: from_ref(kind), quota, count, most: count })
        });
    control_plane.chain(pools).collect()
}

/// How many machines of a pool already count against this quota; none if the pool does not exist or counts against another.
fn machines_of_pool(pool: &Pool, quota: &Quota, live: &LiveCluster) -> Option<u32> {
    let part = StackPart::Pool(pool.name.clone());
    let group = live.pool_group(&pool.name).filter(|_| live.is_or_will_be_complete(&part))?;
    // A block that the pool has left.
    if live.parameter(&part, BLOCK_ENDS_AT).is_some_and(|at| !at.is_empty()) {
        return None;
    }
    let resources = &live.stacks.get(&part)?.template()["Resources"];
    let kind = resources["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["InstanceType"].as_str();
    let distribution = &resources["Nodes"]["Properties"]["MixedInstancesPolicy"]["InstancesDistribution"];
    let spot = distribution["OnDemandPercentageAboveBaseCapacity"] == 0;
    // A template that infra did not write does not show the type; its machines count as the same.
    let same = kind.is_none_or(|kind| quota_of(kind, spot) == Some(quota));
    same.then_some(group.desired)
}

/// What some machines need of a quota: at least, with the smallest of their types, and at most, with the largest.
fn machine_demand(
    planned: &[PlannedMachines<'_>],
    quota: &Quota,
    processors: &BTreeMap<String, u32>,
) -> Demand {
    let mut demand = Demand::default();
    for machines in planned.iter().filter(|machines| machines.quota == quota && machines.most > 0) {
        let sizes = || machines.types.iter().filter_map(|kind| processors.get(kind.as_str()).copied());
        demand.who.push(machines.who.clone());
        demand.now += machines.count.saturating_mul(sizes().min().unwrap_or_default());
        demand.most += machines.most.saturating_mul(sizes().max().unwrap_or_default());
    }
    demand
}

/// The quota that machines of a type count against; none for the series that clusters do not use.
fn quota_of(instance_type: &str, spot: bool) -> Option<&'static Quota> {
    let letters = instance_type.split(|c: char| !c.is_ascii_lowercase()).next()?;
    let series = match letters {
        "a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z" => "standard",
        "g" | "gr" | "vt" => "G",
        "p" => "P",
        _ => return None,
    };
    QUOTAS.iter().find(|quota| quota.series == series && quota.spot == spot)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{Demand, QUOTAS, machine_demand, planned_machines, quota_of};
    use crate::config;
    use crate::deploy::state::live::LiveCluster;
    use crate::document::Problems;

    #[test]
    fn types_count_against_the_quota_of_their_series() {
        let code = |kind: &str, spot| quota_of(kind, spot).map(|quota| quota.code);
        assert_eq!(code("t3.medium", false), Some("L-1216C47A"));
        assert_eq!(code("im4gn.large", true), Some("L-34B43A08"));
        assert_eq!(code("g4dn.xlarge", false), Some("L-DB2E81BA"));
        assert_eq!(code("gr6.4xlarge", true), Some("L-3819A6DF"));
        assert_eq!(code("p3dn.24xlarge", false), Some("L-417A185B"));
        assert_eq!(code("p4d.24xlarge", true), Some("L-7212CCBC"));
        for other in ["inf2.xlarge", "trn1.2xlarge", "hpc6a.48xlarge", "mac2.metal", "u-6tb1.metal"] {
            assert_eq!(code(other, false), None, "{other}");
        }
    }

    #[test]
    fn machines_are_counted_at_their_initial_and_at_their_largest_number() -> Result<(), Problems> {
        let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, \
            availabilityZones: [us-west-2a], kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd', \
            etcd: {count: 3}, controllers: {count: 2}, pools: [{name: cpu, instanceType: m5.large}, \
            {name: gpu, instanceType: g5.xlarge, instanceTypes: [g5.2xlarge], count: 2, maxCount: 8, spot: true}]}";
        let cluster = config::validate(Path::new("cluster.yaml"), text)?.value;
        let sizes = [("t3.medium", 2), ("m5.large", 2), ("g5.xlarge", 4), ("g5.2xlarge", 8)];
        let processors: BTreeMap<String, u32> =
            sizes.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        let planned = planned_machines(&cluster, &LiveCluster::default());
        let standard = machine_demand(&planned, &QUOTAS[0], &processors);
        assert_eq!((standard.now, standard.most), (12, 12));
        let gpus = Demand { who: vec!["pool gpu".to_owned()], now: 8, most: 64 };
        assert_eq!(machine_demand(&planned, &QUOTAS[4], &processors), gpus);
        Ok(())
    }
}
