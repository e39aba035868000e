//! The public name of the API server: the load balancer behind it, the hosted zone that holds it, and where its records point.

use std::collections::BTreeMap;

use crate::aws::{AddressRecord, Alias, AwsError, Clients, HostedZone};
use crate::config::Cluster;

/// Where the record of the name is, if there can be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostedZoneChoice {
    /// In this hosted zone.
    Zone(HostedZone),
    /// Nowhere, for this reason.
    None(String),
}

/// The hosted zone of the cluster's public name: the one that cluster.yaml gives, else the nearest that users of the name can see.
pub(crate) async fn choose_hosted_zone(
    clients: &Clients,
    cluster: &Cluster,
) -> Result<HostedZoneChoice, AwsError> {
    if !cluster.dns.manage {
        return Ok(HostedZoneChoice::None("dns.manage is false".to_owned()));
    }
    let name = cluster.external_dns_name.to_string();
    if let Some(id) = &cluster.dns.hosted_zone {
        return Ok(match clients.hosted_zone(&id.to_string()).await? {
            Some(zone) => HostedZoneChoice::Zone(zone),
            None => HostedZoneChoice::None(format!("there is no hosted zone {id}")),
        });
    }
    let zones = clients.hosted_zones_for(&name).await?;
    // A private hosted zone answers inside its VPCs only; users of a public API never see it.
    let visible = zones.iter().find(|zone| !zone.private || !cluster.api.public);
    Ok(match (visible, zones.first()) {
        (Some(zone), _) => HostedZoneChoice::Zone(zone.clone()),
        (None, Some(private)) => {
            HostedZoneChoice::None(format!("only the private hosted zone {} could hold {name}", private.name))
        }
        (None, None) => HostedZoneChoice::None(format!("no hosted zone of this account could hold {name}")),
    })
}

/// Whether the records of a name point at a load balancer, and nowhere else; the AWS console creates a record for IPv6 as well.
#[must_use]
pub(crate) fn all_point_at(records: &[AddressRecord], load_balancer: &str) -> bool {
    records.iter().any(|record| record.kind == "A")
        && records.iter().all(|record| points_at(record, load_balancer))
}

/// Whether a record is an alias of a load balancer.
#[must_use]
pub(crate) fn points_at(record: &AddressRecord, load_balancer: &str) -> bool {
    record.alias.as_ref().is_some_and(|alias| alias.name.eq_ignore_ascii_case(load_balancer))
}

/// The load balancer of the API, once there is one.
#[must_use]
pub(crate) fn load_balancer(outputs: &BTreeMap<String, String>) -> Option<Alias> {
    let name = outputs.get("ApiLoadBalancerName")?.to_ascii_lowercase();
    Some(Alias { name, zone: outputs.get("ApiLoadBalancerZoneId")?.clone() })
}
