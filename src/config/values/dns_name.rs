//! Names in DNS and in certificates.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::checked_text;
use crate::document::Fault;

checked_text!(
    /// A fully qualified host name in lower case, without the final dot.
    DnsName,
    check_dns_name
);

/// What a certificate can be issued for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateName {
    /// A host name.
    Dns(String),
    /// An address.
    Address(IpAddr),
}

impl FromStr for CertificateName {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        text.parse::<DnsName>().map(|name| Self::Dns(name.to_string()))
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

fn check_dns_name(text: &str) -> Result<(), Fault> {
    let refuse = |reason: &str| Err(Fault::new(format!("'{text}' is not a DNS name: {reason}")));
    if text.is_empty() {
        return refuse("it is empty");
    }
    if text.parse::<IpAddr>().is_ok() {
        return refuse("it is an address");
    }
    if text.len() > 253 {
        return refuse("it has more than 253 characters");
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(Fault::new(format!("'{text}' is not a DNS name: it is a URL"))
            .help(format!("leave out '{scheme}://' and anything after the name")));
    }
    if text.ends_with('.') {
        return Err(Fault::new(format!("'{text}' is not a DNS name: it ends with a dot"))
            .help(format!("write {}", text.trim_end_matches('.'))));
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(Fault::new(format!("'{text}' has capital letters"))
            .help(format!("write {}; certificates are compared letter by letter", text.to_lowercase())));
    }
    if !text.contains('.') {
        return refuse("it has no domain, as in k8s.example.com");
    }
    for label in text.split('.') {
        if label.is_empty() {
            return refuse("it has two dots in a row or begins with one");
        }
        if label.len() > 63 {
            return refuse(&format!("the part '{label}' has more than 63 characters"));
        }
        if let Some(bad) = label.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
            return refuse(&format!("it has a {bad:?} in it"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return refuse(&format!("the part '{label}' begins or ends with '-'"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::DnsName;

    #[test]
    fn takes_ordinary_names_and_refuses_the_rest() {
        for good in ["k8s.example.com", "a.b", "xn--bcher-kva.example", "1.example.com"] {
            assert!(good.parse::<DnsName>().is_ok(), "{good}");
        }
        for bad in
            ["", "localhost", "a..b", ".a.b", "a.b.", "A.b", "a_b.c", "-a.b", "10.0.0.1", "https://a.b"]
        {
            assert!(bad.parse::<DnsName>().is_err(), "{bad}");
        }
    }
}
