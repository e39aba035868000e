//! The hosted zone that the API server's public name is written to.

use super::finding::SubjectFindings;
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, HostedZone};
use crate::config::Cluster;

pub(crate) async fn check_hosted_zone(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let cluster = &preflight.blueprint.cluster;
    let mut findings = SubjectFindings::about("hosted zone");
    if cluster.dns.manage {
        match &cluster.dns.hosted_zone {
            Some(id) => {
                if let Some(zone) = findings.take(clients.hosted_zone(id.as_str()).await)? {
                    check_named_hosted_zone(cluster, id.as_str(), zone.as_ref(), &mut findings);
                }
            }
            None => {
                let zones = clients.hosted_zones_for(cluster.external_dns_name.as_str()).await;
                if let Some(zones) = findings.take(zones)? {
                    check_hosted_zones_of_name(cluster, &zones, &mut findings);
                }
            }
        }
    }
    Ok(findings.into_list())
}

fn check_named_hosted_zone(
    cluster: &Cluster,
    id: &str,
    zone: Option<&HostedZone>,
    findings: &mut SubjectFindings,
) {
    let name = cluster.external_dns_name.as_str();
    let Some(zone) = zone else {
        findings.refuse(
            format!("there is no hosted zone {id}"),
            format!("the record {name} could not be written"),
            "correct dns.hostedZoneId, or leave it out and the hosted zone is looked up; `aws route53 list-hosted-zones` lists yours",
        );
        return;
    };
    if zone.private && cluster.api.public {
        findings.refuse(
            format!("the hosted zone {id} ({}) is private, but the API is public", zone.name),
            format!("{name} would resolve only inside the VPCs of that hosted zone, not on the internet"),
            "name a public hosted zone, leave out dns.hostedZoneId, or set api.public to false",
        );
    }
    if !zone.can_hold(name) {
        findings.refuse(
            format!("{name} is not below {}, the name of the hosted zone {id}", zone.name),
            "a hosted zone has records below its own name only",
            "name the hosted zone of externalDNSName's domain in dns.hostedZoneId, or leave it out and it is looked up",
        );
    }
}

/// `zones` has the longest name first.
fn check_hosted_zones_of_name(cluster: &Cluster, zones: &[HostedZone], findings: &mut SubjectFindings) {
    let name = cluster.external_dns_name.as_str();
    // A private API is reached from inside VPCs, where a private hosted zone is enough.
    if zones.iter().any(|zone| !zone.private || !cluster.api.public) {
        return;
    }
    let Some(private) = zones.first() else {
        findings.warn(
            format!("no hosted zone of this account is for {name}"),
            "the record cannot be written, and kubeconfig points at that name",
            "create the record by hand, `up` prints it; or set dns.manage to false and this is not checked",
        );
        return;
    };
    findings.warn(
        format!("the only hosted zone for {name} is private: {} ({})", private.id, private.name),
        "a private hosted zone does not answer the internet: a record there resolves inside its VPCs only, and hides any public one from them",
        format!(
            "create a public hosted zone {} too, or create the record by hand where the domain is served; `up` prints it",
            private.name
        ),
    );
}
