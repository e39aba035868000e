//! What an existing VPC must have, because infra does not change it.

use ipnet::Ipv4Net;

use super::finding::SubjectFindings;
use super::{Finding, Preflight};
use crate::aws::{AwsError, Clients, ExistingSubnet, RouteTable, Vpc, VpcNames};
use crate::config::address_plan::has_overlap;
use crate::config::{AdoptedSubnet, Cluster, NetworkLayout};

pub(crate) async fn check_existing_vpc(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("network");
    let cluster = &preflight.blueprint.cluster;
    let NetworkLayout::Adopted { vpc: id, subnets } = &cluster.network.layout else {
        return Ok(findings.into_list());
    };
    let id = id.as_str();
    let ids: Vec<String> = subnets.iter().map(|subnet| subnet.id.to_string()).collect();
    let (vpc, names, found, tables) = tokio::join!(
        Box::pin(clients.vpc(id)),
        Box::pin(clients.vpc_names(id)),
        Box::pin(clients.subnets(&ids)),
        Box::pin(clients.route_tables(id)),
    );
    match findings.take(vpc)? {
        None => {}
        Some(None) => {
            findings.refuse(
                format!("there is no VPC {id} in {}", cluster.region),
                "the cluster is created in it",
                "correct network.existing.vpcId; `aws ec2 describe-vpcs` lists yours",
            );
            return Ok(findings.into_list());
        }
        Some(Some(vpc)) => {
            check_ranges(cluster, id, &vpc, &mut findings);
            if let Some(servers) = findings.take(clients.name_servers(&vpc.dhcp_options).await)? {
                check_resolver(id, &vpc, &servers, &mut findings);
            }
        }
    }
    if let Some(names) = findings.take(names)? {
        check_names(id, names, &mut findings);
    }
    let found = findings.take(found)?;
    if let Some(found) = &found {
        for subnet in subnets {
            check_subnet(id, subnet, found, &mut findings);
        }
    }
    if let Some(tables) = findings.take(tables)? {
        // These are the route tables of this VPC: they say nothing about a subnet of another one.
        let is_inside = |subnet: &&AdoptedSubnet| {
            let inside = |other: &ExistingSubnet| other.id == subnet.id.as_str() && other.vpc == id;
            found.as_ref().is_none_or(|found| found.iter().any(inside))
        };
        for subnet in subnets.iter().filter(is_inside) {
            check_route(cluster, subnet, &tables, &mut findings);
        }
    }
    Ok(findings.into_list())
}

fn check_ranges(cluster: &Cluster, id: &str, vpc: &Vpc, findings: &mut SubjectFindings) {
    let range = cluster.network.vpc_range.to_string();
    let Some((own, more)) = vpc.ranges.split_first() else { return };
    if *own != range {
        findings.refuse(
            format!("the range of VPC {id} is {own}, but vpcCIDR is {range}"),
            "what may not overlap with the VPC is computed from vpcCIDR",
            format!("set network.vpcCIDR: {own}"),
        );
    }
    let inside =
        [("podCIDR", cluster.kubernetes.pod_range), ("serviceCIDR", cluster.kubernetes.service_range)];
    for more in more.iter().filter_map(|range| range.parse::<Ipv4Net>().ok()) {
        for (setting, range) in inside.into_iter().filter(|(_, range)| has_overlap(*range, more)) {
            findings.refuse(
                format!("VPC {id} also has the range {more}, which overlaps {setting} {range}"),
                "pods could not reach machines of that range",
                format!("set kubernetes.{setting} to a range outside of the VPC's"),
            );
        }
    }
}

/// Amazon's resolver is named in one of three ways: its name, one address for all VPCs, or the third address of each VPC.
fn check_resolver(id: &str, vpc: &Vpc, servers: &[String], findings: &mut SubjectFindings) {
    let third = vpc.ranges.first().and_then(|range| range.parse::<Ipv4Net>().ok()?.hosts().nth(1));
    let is_amazons = |server: &String| {
        server == "AmazonProvidedDNS"
            || server == "169.254.169.253"
            || third.is_some_and(|address| *server == address.to_string())
    };
    if !servers.iter().any(is_amazons) {
        findings.refuse(
            format!("the DHCP options of VPC {id} do not hand out Amazon's resolver"),
            "machines find etcd, the API and the file system by names in a private hosted zone, which only that resolver knows",
            "use DHCP options with domain-name-servers=AmazonProvidedDNS, or add Amazon's resolver to them",
        );
    }
}

fn check_names(id: &str, names: VpcNames, findings: &mut SubjectFindings) {
    for (on, attribute, flag) in [
        (names.resolver, "enableDnsSupport", "--enable-dns-support"),
        (names.host_names, "enableDnsHostnames", "--enable-dns-hostnames"),
    ] {
        if !on {
            findings.refuse(
                format!("{attribute} is off in VPC {id}"),
                "private hosted zones need it, and machines find etcd, the API and the file system by names in one",
                format!("aws ec2 modify-vpc-attribute --vpc-id {id} {flag}"),
            );
        }
    }
}

fn check_subnet(
    vpc: &str,
    adopted: &AdoptedSubnet,
    found: &[ExistingSubnet],
    findings: &mut SubjectFindings,
) {
    let id = adopted.id.as_str();
    let Some(subnet) = found.iter().find(|subnet| subnet.id == id) else {
        findings.refuse(
            format!("there is no subnet {id}"),
            "machines or load balancers are created in it",
            format!("correct network.existing.subnets; `aws ec2 describe-subnets --filters Name=vpc-id,Values={vpc}` lists them"),
        );
        return;
    };
    if subnet.vpc != vpc {
        findings.refuse(
            format!("the subnet {id} belongs to {}, not to {vpc}", subnet.vpc),
            "a cluster is in one VPC",
            format!("name a subnet of {vpc}"),
        );
    }
    if subnet.zone != adopted.zone.as_str() {
        findings.refuse(
            format!("the subnet {id} is in {}, not in {}", subnet.zone, adopted.zone),
            "etcd volumes and mount targets are created in the availability zone that cluster.yaml names, and could not be reached",
            format!("set its availabilityZone: {}", subnet.zone),
        );
    }
}

fn check_route(
    cluster: &Cluster,
    adopted: &AdoptedSubnet,
    tables: &[RouteTable],
    findings: &mut SubjectFindings,
) {
    let id = adopted.id.as_str();
    let target = default_target(id, tables);
    let to_internet = target.is_some_and(|target| target.starts_with("igw-"));
    let shown = target.unwrap_or("nothing");
    if adopted.public && !to_internet {
        findings.refuse(
            format!(
                "the default route of the public subnet {id} points at {shown}, not at an internet gateway"
            ),
            "machines there could neither be reached at their public address nor reach anything",
            "set public: false if this is intended, or add a route 0.0.0.0/0 to an internet gateway",
        );
    } else if !adopted.public && to_internet {
        findings.refuse(
            format!("the default route of the private subnet {id} points at an internet gateway"),
            "machines in private subnets have no public address, and an internet gateway forwards nothing without one",
            "set public: true if this is intended, or point the route at a NAT gateway",
        );
    } else if !adopted.public && target.is_none() {
        let what = format!("the private subnet {id} has no default route");
        let why = "machines fetch Kubernetes, images and their own configuration before they can join";
        if cluster.mirrors.is_empty() {
            findings.refuse(what, why, "add a route 0.0.0.0/0 to a NAT or transit gateway, or set mirrors");
        } else {
            findings.warn(
                what,
                why,
                "make sure that the mirrors and endpoints for S3, EC2, KMS, STS and CloudFormation can be reached",
            );
        }
    }
}

/// Where a subnet's traffic goes by default; without a table of its own, it has the VPC's main one.
fn default_target<'a>(subnet: &str, tables: &'a [RouteTable]) -> Option<&'a str> {
    let own = tables.iter().find(|table| table.subnets.iter().any(|attached| attached == subnet));
    own.or_else(|| tables.iter().find(|table| table.main))?.default_target.as_deref()
}

#[cfg(test)]
mod tests {
    use super::{RouteTable, Vpc, check_resolver, default_target};
    use crate::deploy::preflight::finding::SubjectFindings;

    #[test]
    fn a_subnet_without_a_table_has_the_main_one() {
        let table = |main, subnets: &[&str], target: &str| RouteTable {
            id: "rtb-1".to_owned(),
            main,
            subnets: subnets.iter().map(|subnet| (*subnet).to_owned()).collect(),
            default_target: Some(target.to_owned()),
        };
        let tables = [table(true, &[], "nat-1"), table(false, &["subnet-1"], "igw-1")];
        assert_eq!(default_target("subnet-1", &tables), Some("igw-1"));
        assert_eq!(default_target("subnet-2", &tables), Some("nat-1"));
        assert_eq!(default_target("subnet-2", &tables[1..]), None);
    }

    #[test]
    fn amazons_resolver_has_three_names() {
        let vpc = Vpc { ranges: vec!["10.40.0.0/16".to_owned()], dhcp_options: "dopt-1".to_owned() };
        let refused = |server: &str| {
            let mut findings = SubjectFindings::about("network");
            check_resolver("vpc-1", &vpc, &[server.to_owned()], &mut findings);
            !findings.into_list().is_empty()
        };
        assert!(!refused("AmazonProvidedDNS"));
        assert!(!refused("169.254.169.253"));
        assert!(!refused("10.40.0.2"));
        assert!(refused("10.40.0.3"));
    }
}
