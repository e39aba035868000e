//! The address at which the API server is reached, which may differ from the name in its certificate.

use std::fmt;
use std::net::SocketAddr;

use tokio::net::lookup_host;

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A name, as that of the load balancer; each of its addresses is tried.
    Host {
        /// The name.
        name: String,
        /// The port.
        port: u16,
    },
    /// One address.
    Socket(SocketAddr),
}

impl Address {
    /// Every address behind it, or why there is none.
    pub(super) async fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let (name, port) = match self {
            Self::Host { name, port } => (name.as_str(), *port),
            Self::Socket(address) => return Ok(vec![*address]),
        };
        let found: Vec<SocketAddr> = match lookup_host((name, port)).await {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Err(format!("its name cannot be resolved: {error}")),
        };
        if found.is_empty() { Err("its name has no address".to_owned()) } else { Ok(found) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { name, port } => write!(formatter, "{name}:{port}"),
            Self::Socket(address) => write!(formatter, "{address}"),
        }
    }
}

/// The addresses that a name resolves to from here; none if it does not resolve.
pub(crate) async fn resolve_host_name(name: &str) -> Vec<String> {
    let found = tokio::net::lookup_host((name, 443)).await;
    let mut addresses: Vec<String> =
        found.map(|found| found.map(|address| address.ip().to_string()).collect()).unwrap_or_default();
    addresses.sort();
    addresses.dedup();
    addresses
}
