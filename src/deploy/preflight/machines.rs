//! What machines need to start: availability zones that offer their types, a key pair.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{SubjectFindings, join_names};
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, ListedAvailabilityZone};
use crate::config::Cluster;
use crate::config::values::{AvailabilityZone, InstanceType};

/// Machines of any of some types, in each of some availability zones.
struct Wanted<'a> {
    who: String,
    types: &'a [InstanceType],
    zones: BTreeSet<&'a str>,
    /// How to move them to other availability zones.
    setting: &'static str,
}

pub(crate) async fn check_machine_offers(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let cluster = &preflight.blueprint.cluster;
    let wanted = wanted_machines(cluster);
    let types: BTreeSet<String> =
        wanted.iter().flat_map(|wanted| wanted.types).map(ToString::to_string).collect();
    let types: Vec<String> = types.into_iter().collect();
    let (key_pair, zones, offers) = tokio::join!(
        Box::pin(key_pair_exists(cluster, clients)),
        Box::pin(clients.availability_zones()),
        Box::pin(clients.type_offerings(&types)),
    );

    let mut findings = SubjectFindings::about("key pair");
    if findings.take(key_pair)? == Some(false) {
        let name = cluster.key_name.as_ref().map(ToString::to_string).unwrap_or_default();
        findings.refuse(
            format!("there is no key pair '{name}' in {}", cluster.region),
            "every launch template names it, and no machine would start",
            format!("correct keyName, leave it out and use SSM sessions, or import it: aws ec2 import-key-pair --key-name '{name}' …"),
        );
    }
    let mut list = findings.into_list();

    let mut findings = SubjectFindings::about("availability zones");
    let bad_zones = match findings.take(zones)? {
        Some(zones) => check_availability_zones(cluster, &zones, &mut findings),
        None => BTreeSet::new(),
    };
    list.extend(findings.into_list());

    let mut findings = SubjectFindings::about("instance types");
    if let Some(offers) = findings.take(offers)? {
        for wanted in &wanted {
            check_offers(wanted, &offers, &bad_zones, &mut findings);
        }
    }
    list.extend(findings.into_list());
    Ok(list)
}

async fn key_pair_exists(cluster: &Cluster, clients: &Clients) -> Result<bool, AwsError> {
    match &cluster.key_name {
        Some(name) => clients.key_pair_exists(name.as_str()).await,
        None => Ok(true),
    }
}

fn wanted_machines(cluster: &Cluster) -> Vec<Wanted<'_>> {
    const OF_CLUSTER: &str = "set availabilityZones to those";
    let etcd = Wanted {
        who: "etcd members".to_owned(),
        types: std::slice::from_ref(&cluster.etcd.instance_type),
        zones: (0..cluster.etcd.count)
            .map(|member| cluster.etcd_availability_zone(member).as_str())
            .collect(),
        setting: OF_CLUSTER,
    };
    let controllers = Wanted {
        who: "controllers".to_owned(),
        types: std::slice::from_ref(&cluster.controllers.instance_type),
        zones: cluster.availability_zones.iter().map(AvailabilityZone::as_str).collect(),
        setting: OF_CLUSTER,
    };
    let pools = cluster.pools.iter().filter(|pool| pool.max_count > 0).map(|pool| Wanted {
        who: format!("pool {}", pool.name),
        types: &pool.instance_types,
        zones: pool.availability_zones.iter().map(AvailabilityZone::as_str).collect(),
        setting: "set the pool's availabilityZones to those",
    });
    [etcd, controllers].into_iter().chain(pools).collect()
}

/// Returns the availability zones that cannot be used.
fn check_availability_zones<'a>(
    cluster: &'a Cluster,
    zones: &[ListedAvailabilityZone],
    findings: &mut SubjectFindings,
) -> BTreeSet<&'a str> {
    let is_good =
        |zone: &&ListedAvailabilityZone| zone.state == "available" && zone.kind == "availability-zone";
    let good: BTreeSet<&str> = zones.iter().filter(is_good).map(|zone| zone.name.as_str()).collect();
    let mut bad = BTreeSet::new();
    for name in
        cluster.availability_zones.iter().map(AvailabilityZone::as_str).filter(|name| !good.contains(name))
    {
        bad.insert(name);
        let what = match zones.iter().find(|zone| zone.name == name) {
            Some(zone) => format!("the availability zone {name} is {} and of type {}", zone.state, zone.kind),
            None => format!("the account has no availability zone {name}"),
        };
        findings.refuse(
            what,
            "no subnet can be created there; the letters of availability zones differ between accounts",
            format!("availability zones of this account: {}", join_names(&good)),
        );
    }
    bad
}

fn check_offers(
    wanted: &Wanted<'_>,
    offers: &BTreeMap<String, BTreeSet<String>>,
    bad_zones: &BTreeSet<&str>,
    findings: &mut SubjectFindings,
) {
    let offered =
        |kind: &InstanceType, zone: &str| offers.get(kind.as_str()).is_some_and(|zones| zones.contains(zone));
    let zones: Vec<&str> = wanted.zones.difference(bad_zones).copied().collect();
    let (served, barren): (Vec<&str>, Vec<&str>) =
        zones.into_iter().partition(|zone| wanted.types.iter().any(|kind| offered(kind, zone)));
    if !barren.is_empty() {
        let kinds = join_names(wanted.types.iter().map(InstanceType::as_str));
        let elsewhere: BTreeSet<&String> =
            wanted.types.iter().filter_map(|kind| offers.get(kind.as_str())).flatten().collect();
        let fix = if elsewhere.is_empty() {
            "no availability zone of this region offers it: use another type or region".to_owned()
        } else {
            format!("it is offered in {}: {}, or use another type", join_names(elsewhere), wanted.setting)
        };
        findings.refuse(
            format!("{} of {kinds} cannot start in {}", wanted.who, join_names(barren)),
            "AWS does not offer the type there: their stack would fail and be rolled back",
            fix,
        );
    }
    for kind in wanted.types {
        let missing: Vec<&str> = served.iter().copied().filter(|zone| !offered(kind, zone)).collect();
        if !missing.is_empty() {
            findings.warn(
                format!("{} cannot have {kind} in {}", wanted.who, join_names(missing)),
                "AWS does not offer it there; machines will be of the pool's other types",
                format!("nothing if this is intended; otherwise {}", wanted.setting),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::Severity;
    use super::{SubjectFindings, Wanted, check_offers};
    use crate::config::values::InstanceType;
    use crate::document::Fault;

    fn severities(types: &[&str], zones: &[&str]) -> Result<Vec<Severity>, Fault> {
        let types: Vec<InstanceType> = types.iter().map(|kind| kind.parse()).collect::<Result<_, _>>()?;
        let zones_of = |zones: &[&str]| zones.iter().map(|zone| (*zone).to_owned()).collect::<BTreeSet<_>>();
        let offers = BTreeMap::from([
            ("g5.xlarge".to_owned(), zones_of(&["us-west-2a", "us-west-2b"])),
            ("g5.2xlarge".to_owned(), zones_of(&["us-west-2a"])),
        ]);
        let wanted = Wanted {
            who: "pool gpu".to_owned(),
            types: &types,
            zones: zones.iter().copied().collect(),
            setting: "",
        };
        let mut findings = SubjectFindings::about("instance types");
        check_offers(&wanted, &offers, &BTreeSet::from(["us-west-2z"]), &mut findings);
        Ok(findings.into_list().iter().map(|finding| finding.severity).collect())
    }

    #[test]
    fn an_availability_zone_needs_one_of_the_types_and_the_missing_ones_are_named() -> Result<(), Fault> {
        assert!(severities(&["g5.xlarge"], &["us-west-2a", "us-west-2b", "us-west-2z"])?.is_empty());
        assert_eq!(severities(&["g5.2xlarge"], &["us-west-2a", "us-west-2b"])?, [Severity::Refused]);
        assert_eq!(severities(&["g5.xlarge", "g5.2xlarge"], &["us-west-2b"])?, [Severity::Warning]);
        assert_eq!(severities(&["g6.xlarge"], &["us-west-2a"])?, [Severity::Refused]);
        Ok(())
    }
}
