//! Names, ranges and hosts: who reaches the cluster, and what its machines reach.

use std::collections::BTreeMap;

use ipnet::Ipv4Net;

use super::super::cluster::{Api, Dns};
use super::super::file::{ApiFile, ClusterFile, DnsFile, Entries};
use super::super::values::{
    CertificateName, DnsName, KeyName, MirrorUrl, MirroredHost, PolicyArn, parse_ipv4_range,
};
use super::location::Location;
use super::optional::parse_optional;
use crate::document::{At, Fault, Problems};
use crate::well_known::INTERNAL_DOMAIN;

pub(super) fn parse_external_name(text: &At<String>, problems: &mut Problems) -> Option<DnsName> {
    let name: DnsName = problems.parse(text)?;
    if name.as_str() == INTERNAL_DOMAIN || name.as_str().ends_with(&format!(".{INTERNAL_DOMAIN}")) {
        let fault =
            Fault::new(format!("{name} is below {INTERNAL_DOMAIN}, the cluster's own private domain"))
                .help("use a name of a domain that you own");
        problems.add(text.position, fault);
        return None;
    }
    Some(name)
}

pub(super) fn parse_key_name(file: &ClusterFile, problems: &mut Problems) -> Option<Option<KeyName>> {
    if file.key_name.is_none() && !file.ssh_allowed_cidrs.value.is_empty() {
        let fault = Fault::new("sshAllowedCIDRs opens SSH, but without keyName nobody can log in")
            .help("add keyName, or use `aws ssm start-session` and remove sshAllowedCIDRs");
        problems.warn(file.ssh_allowed_cidrs.position, fault);
    }
    parse_optional(file.key_name.as_ref(), |text| problems.parse(text))
}

pub(super) fn parse_permissions_boundary(
    file: &ClusterFile,
    location: &Location,
    problems: &mut Problems,
) -> Option<Option<PolicyArn>> {
    parse_optional(file.permissions_boundary_arn.as_ref(), |text| {
        let policy: PolicyArn = problems.parse(text)?;
        if let Some(region) = &location.region {
            problems.take(text.position, policy.check_partition(region))?;
        }
        Some(policy)
    })
}

pub(super) fn build_api(api: &ApiFile, problems: &mut Problems) -> Option<Api> {
    let allowed_ranges = parse_ranges(&api.allowed_cidrs.value, problems);
    if api.allowed_cidrs.value.is_empty() {
        let fault = Fault::new("allowedCIDRs is empty: nobody could reach the API server")
            .help("name your office's or VPN's range, or remove the key to allow all");
        problems.add(api.allowed_cidrs.position, fault);
    }
    let additional_names: Vec<At<CertificateName>> = problems.parse_all(&api.additional_names);
    let complete = additional_names.len() == api.additional_names.len();
    let additional_names = complete.then(|| additional_names.into_iter().map(|name| name.value).collect());
    Some(Api { public: api.public, allowed_ranges: allowed_ranges?, additional_names: additional_names? })
}

/// The API requires a certificate from everyone; but who cannot connect cannot use its next vulnerability either.
pub(super) fn warn_of_open_api(file: &ApiFile, api: &Api, problems: &mut Problems) {
    if api.public && api.allowed_ranges.iter().any(|range| range.prefix_len() == 0) {
        let reason = if file.allowed_cidrs.position.is_some() { "" } else { ": api.allowedCIDRs is not set" };
        let fault = Fault::new(format!("the API server accepts connections from the whole internet{reason}"))
            .help("write the ranges that you connect from, as api: {allowedCIDRs: [203.0.113.0/24]}");
        problems.warn(file.allowed_cidrs.position, fault);
    }
}

pub(super) fn parse_ssh_ranges(file: &ClusterFile, problems: &mut Problems) -> Option<Vec<Ipv4Net>> {
    let ranges = parse_ranges(&file.ssh_allowed_cidrs.value, problems)?;
    if ranges.iter().any(|range| range.prefix_len() == 0) {
        let fault =
            Fault::new("SSH is open to the whole internet").help("name the ranges that you log in from");
        problems.warn(file.ssh_allowed_cidrs.position, fault);
    }
    Some(ranges)
}

pub(super) fn build_dns(dns: &DnsFile, problems: &mut Problems) -> Option<Dns> {
    if let (false, Some(zone)) = (dns.manage, &dns.hosted_zone_id) {
        let fault = Fault::new("hostedZoneId has no effect with manage: false").help("remove one of the two");
        problems.add(zone.position, fault);
    }
    let hosted_zone = parse_optional(dns.hosted_zone_id.as_ref(), |text| problems.parse(text))?;
    Some(Dns { manage: dns.manage, hosted_zone })
}

pub(super) fn build_mirrors(
    entries: &Entries,
    problems: &mut Problems,
) -> Option<BTreeMap<MirroredHost, MirrorUrl>> {
    let mut mirrors = BTreeMap::new();
    for (host, url) in entries {
        let (host, url) = (problems.parse(host), problems.parse(url));
        if let (Some(host), Some(url)) = (host, url) {
            mirrors.insert(host, url);
        }
    }
    (mirrors.len() == entries.len()).then_some(mirrors)
}

/// A list of ranges, each there once; `None` if one of them is bad.
fn parse_ranges(texts: &[At<String>], problems: &mut Problems) -> Option<Vec<Ipv4Net>> {
    let mut ranges = Vec::new();
    for text in texts {
        let Some(range) = problems.take(text.position, parse_ipv4_range(&text.value)) else { continue };
        if ranges.contains(&range) {
            problems.add(text.position, Fault::new(format!("{range} is named twice")));
        } else {
            ranges.push(range);
        }
    }
    (ranges.len() == texts.len()).then_some(ranges)
}
