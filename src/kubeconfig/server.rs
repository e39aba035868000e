//! The URL of an API server.

use std::net::{IpAddr, SocketAddr};

use super::error::KubeconfigError;
use crate::kube::Address;

const HTTPS: u16 = 443;

/// Where an API server is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) address: Address,
    /// The name or address that its certificate is for.
    pub(super) host: String,
}

/// Reads `https://host[:port]`.
pub(super) fn parse_server(url: &str, cluster: &str) -> Result<Server, KubeconfigError> {
    let refuse = |why| Err(KubeconfigError::Server { cluster: cluster.to_owned(), url: url.to_owned(), why });
    let Some(rest) = url.strip_prefix("https://") else {
        return refuse("it does not begin with https://");
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains('@') {
        return refuse("it has a user in it");
    }
    if rest.contains(['/', '?', '#']) {
        return refuse("it has a path, which infra does not use");
    }
    let (host, port) = match rest.rsplit_once(':') {
        // The last colon of an address in brackets may be inside of them.
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (rest, Some(HTTPS)),
    };
    let Some(port) = port else { return refuse("its port is not a number") };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.is_empty() {
        return refuse("it names no host");
    }
    let address = match bare.parse::<IpAddr>() {
        Ok(address) => Address::Socket(SocketAddr::new(address, port)),
        Err(_) => Address::Host { name: bare.to_owned(), port },
    };
    Ok(Server { address, host: bare.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{Address, parse_server};

    #[test]
    fn urls_name_a_host_and_a_port() -> Result<(), Box<dyn std::error::Error>> {
        for (url, host, address) in [
            ("https://k8s.example.com", "k8s.example.com", "k8s.example.com:443"),
            ("https://k8s.example.com:6443/", "k8s.example.com", "k8s.example.com:6443"),
            ("https://10.0.0.1:6443", "10.0.0.1", "10.0.0.1:6443"),
            ("https://[::1]", "::1", "[::1]:443"),
            ("https://[::1]:6443", "::1", "[::1]:6443"),
        ] {
            let server = parse_server(url, "a")?;
            assert_eq!((server.host.as_str(), server.address.to_string().as_str()), (host, address));
        }
        let named = parse_server("https://a", "a")?;
        assert_eq!(named.address, Address::Host { name: "a".to_owned(), port: 443 });
        Ok(())
    }

    #[test]
    fn anything_else_is_refused() {
        for url in ["", "http://a", "https://", "https://a/b", "https://a:b", "https://u@a", "https://:6443"]
        {
            assert!(parse_server(url, "a").is_err(), "{url}");
        }
    }
}
