//! The URL that Prometheus writes what it measures to.

use std::fmt;
use std::str::FromStr;

use super::DnsName;
use crate::document::Fault;

/// A URL that Prometheus writes to, with https and without a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteWriteUrl(String);

impl RemoteWriteUrl {
    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RemoteWriteUrl {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refuse = |reason: &str| Fault::new(format!("Prometheus cannot write to '{text}': {reason}"));
        let Some(rest) = text.strip_prefix("https://") else {
            return Err(refuse("the URL must begin with https://")
                .help("write the URL of a receiver, such as https://metrics.example.com/api/v1/write"));
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some((_, host)) = authority.rsplit_once('@') {
            // The text holds a password, which no message repeats.
            return Err(Fault::new(format!(
                "the URL at {host} has a login in it, which would be in every asset"
            ))
            .help(
                "name a receiver that controllers reach without one, such as a proxy in the VPC that adds it",
            ));
        }
        let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
        let good_host = host.parse::<DnsName>().is_ok() || host.parse::<std::net::Ipv4Addr>().is_ok();
        if !good_host || port.parse::<u16>().is_err() {
            return Err(refuse("the part after https:// is not a host, or a host and a port"));
        }
        if let Some(bad) = path.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_.~/%?=&:,+".contains(*c)))
        {
            return Err(refuse(&format!("its path has a {bad:?} in it")));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RemoteWriteUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
