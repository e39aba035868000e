//! Allowed connections: the one table that security groups are rendered from and tested against.

use ipnet::Ipv4Net;

use crate::config::Cluster;

/// The port on which etcd members answer with their metrics, and nothing else.
pub const ETCD_METRICS_PORT: u16 = 2381;

/// A security group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityGroup {
    /// etcd members.
    Etcd,
    /// Controllers.
    Controllers,
    /// Nodes of all pools.
    Nodes,
    /// The API's load balancer inside the VPC.
    InternalLoadBalancer,
    /// The API's load balancer on the internet.
    PublicLoadBalancer,
    /// Mount targets of the file system.
    FileSystem,
    /// The EFA interfaces of a pool; each pool with EFA has a security group of its own.
    Efa,
}

impl SecurityGroup {
    /// The logical id of the security group.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::Etcd => "EtcdGroup",
            Self::Controllers => "ControllersGroup",
            Self::Nodes => "NodesGroup",
            Self::InternalLoadBalancer => "InternalLoadBalancerGroup",
            Self::PublicLoadBalancer => "PublicLoadBalancerGroup",
            Self::FileSystem => "FileSystemGroup",
            Self::Efa => "EfaGroup",
        }
    }

    /// The name of the security group in tags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Controllers => "controllers",
            Self::Nodes => "nodes",
            Self::InternalLoadBalancer => "api-internal",
            Self::PublicLoadBalancer => "api-public",
            Self::FileSystem => "efs",
            Self::Efa => "efa",
        }
    }

    /// The description of the security group in AWS.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Etcd => "etcd members",
            Self::Controllers => "controllers",
            Self::Nodes => "nodes of all pools",
            Self::InternalLoadBalancer => "load balancer of the API inside the VPC",
            Self::PublicLoadBalancer => "load balancer of the API on the internet",
            Self::FileSystem => "mount targets of the file system",
            Self::Efa => "EFA interfaces of one pool",
        }
    }

    /// Whether the security group belongs to the stack of a pool, not to the network's.
    #[must_use]
    pub fn is_of_pool(self) -> bool {
        self == Self::Efa
    }
}

/// Where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Members of a security group.
    SecurityGroup(SecurityGroup),
    /// A range of addresses.
    Range(Ipv4Net),
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Every protocol.
    All,
}

impl Protocol {
    /// The protocol as a security group's rule names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::All => "-1",
        }
    }

    /// The protocol as a part of a logical id.
    fn resource_part(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::All => "All",
        }
    }
}

/// A connection that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Who may connect.
    pub from: Source,
    /// The security group that they may connect to.
    pub to: SecurityGroup,
    /// The protocol.
    pub protocol: Protocol,
    /// The port; none with all protocols.
    pub port: Option<u16>,
    /// Why the connection is needed; the description of the rule in AWS.
    pub why: &'static str,
}

/// The security groups of a cluster.
pub(super) fn security_groups(cluster: &Cluster, mount_targets: bool) -> Vec<SecurityGroup> {
    let mut security_groups = vec![
        SecurityGroup::Etcd,
        SecurityGroup::Controllers,
        SecurityGroup::Nodes,
        SecurityGroup::InternalLoadBalancer,
    ];
    if cluster.api.public {
        security_groups.push(SecurityGroup::PublicLoadBalancer);
    }
    if mount_targets {
        security_groups.push(SecurityGroup::FileSystem);
    }
    if cluster.pools.iter().any(|pool| pool.efa.is_some()) {
        security_groups.push(SecurityGroup::Efa);
    }
    security_groups
}

/// Every connection that is allowed; all others are not.
pub(super) fn security_rules(cluster: &Cluster, security_groups: &[SecurityGroup]) -> Vec<Rule> {
    use Protocol::{Tcp, Udp};
    use SecurityGroup::{
        Controllers, Efa, Etcd, FileSystem, InternalLoadBalancer, Nodes, PublicLoadBalancer,
    };
    let table: [(SecurityGroup, SecurityGroup, Protocol, u16, &'static str); 17] = [
        (PublicLoadBalancer, Controllers, Tcp, 6443, "API from outside"),
        (InternalLoadBalancer, Controllers, Tcp, 6443, "API from inside"),
        (Controllers, Controllers, Tcp, 6443, "the Service kubernetes points at controllers directly"),
        (Nodes, Controllers, Tcp, 6443, "the Service kubernetes points at controllers directly"),
        (Nodes, InternalLoadBalancer, Tcp, 443, "kubelets and add-ons reach the API"),
        (Controllers, InternalLoadBalancer, Tcp, 443, "add-ons on controllers reach the API"),
        (Controllers, Etcd, Tcp, 2379, "API servers are the only clients of etcd"),
        (Etcd, Etcd, Tcp, 2380, "members talk to each other"),
        (Controllers, Controllers, Tcp, 10250, "logs, exec and metrics of controllers"),
        (Controllers, Nodes, Tcp, 10250, "logs, exec and metrics of nodes"),
        (Nodes, Controllers, Tcp, 10250, "metrics that are scraped from a node"),
        (Nodes, Nodes, Tcp, 10250, "metrics that are scraped from a node"),
        (Controllers, Controllers, Udp, 8472, "pod network"),
        (Controllers, Nodes, Udp, 8472, "pod network"),
        (Nodes, Controllers, Udp, 8472, "pod network"),
        (Nodes, Nodes, Udp, 8472, "pod network"),
        (Nodes, FileSystem, Tcp, 2049, "nodes mount the file system"),
    ];
    // Numbers only, without TLS: no pod gets a key that opens etcd.
    let metrics = (Controllers, Etcd, Tcp, ETCD_METRICS_PORT, "Prometheus reads etcd's metrics");
    let metrics = cluster.addons.monitoring.as_ref().map(|_| metrics);
    let there = |group: &SecurityGroup| security_groups.contains(group);
    let among_groups =
        table.into_iter().chain(metrics).filter(|(from, to, ..)| there(from) && there(to)).map(
            |(from, to, protocol, port, why)| Rule {
                from: Source::SecurityGroup(from),
                to,
                protocol,
                port: Some(port),
                why,
            },
        );
    // Traffic of EFA has no port, and an adapter works only if its security group allows all of it in both directions. The interfaces have no
    // address: what else listens on their machines stays closed.
    let among_adapters = there(&Efa).then_some(Rule {
        from: Source::SecurityGroup(Efa),
        to: Efa,
        protocol: Protocol::All,
        port: None,
        why: "machines of a pool with EFA talk to each other",
    });
    let entrance = if cluster.api.public { PublicLoadBalancer } else { InternalLoadBalancer };
    let api = cluster.api.allowed_ranges.iter().map(|range| Rule {
        from: Source::Range(*range),
        to: entrance,
        protocol: Tcp,
        port: Some(443),
        why: "API, from api.allowedCIDRs",
    });
    let ssh = cluster.ssh_allowed_ranges.iter().flat_map(|range| {
        [Etcd, Controllers, Nodes].map(|to| Rule {
            from: Source::Range(*range),
            to,
            protocol: Tcp,
            port: Some(22),
            why: "SSH, from sshAllowedCIDRs",
        })
    });
    among_groups.chain(among_adapters).chain(api).chain(ssh).collect()
}

impl Rule {
    /// The logical id of the rule: destination, source, protocol and port.
    #[must_use]
    pub fn resource(&self) -> String {
        format!("{}From{}{}", self.destination(), self.source(), self.traffic())
    }

    /// The logical id of the rule by which the same traffic leaves its source.
    #[must_use]
    pub fn outbound_resource(&self) -> String {
        format!("{}To{}{}", self.source(), self.destination(), self.traffic())
    }

    fn source(&self) -> String {
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        match &self.from {
            Source::SecurityGroup(group) => group.resource().trim_end_matches("Group").to_owned(),
            Source::Range(range) => format!("Range{}", letters(&range.to_string().replace(['.', '/'], "x"))),
        }
    }

    fn destination(&self) -> &'static str {
        self.to.resource().trim_end_matches("Group")
    }

    fn traffic(&self) -> String {
        let port = self.port.map(|port| port.to_string()).unwrap_or_default();
        format!("{}{port}", self.protocol.resource_part())
    }
}
