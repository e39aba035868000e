//! Which keys and certificates a cluster needs: `credentials/identities.yaml`, filled in for one cluster.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use serde::Deserialize;

use super::ClusterNames;
use crate::config::values::CertificateName;
use crate::config::{Cluster, ServiceAccountKey};
use crate::document::parse_embedded_table;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| parse_embedded_table(include_str!("../../credentials/identities.yaml")));

/// Every key and certificate of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identities {
    /// The certificate authorities.
    pub authorities: Vec<Authority>,
    /// The certificates that they sign.
    pub certificates: Vec<LeafCertificate>,
    /// Keys without a certificate.
    pub signing_keys: Vec<SigningKey>,
    /// Random secrets.
    pub secrets: Vec<Secret>,
}

/// A certificate that signs others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The name of its files.
    pub name: String,
    /// The common name of the subject.
    pub common_name: String,
    /// How many days the certificate is valid.
    pub days: u16,
    /// Whether a team may provide its own instead.
    pub may_be_imported: bool,
}

/// A certificate that signs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafCertificate {
    /// The name of its files.
    pub name: String,
    /// The name of the authority that signs it.
    pub authority: String,
    /// The common name of the subject, which Kubernetes reads as the user.
    pub common_name: String,
    /// The organization of the subject, which Kubernetes reads as the group.
    pub organization: Option<String>,
    /// Whether it is for servers, for clients or for both.
    pub usages: Vec<Usage>,
    /// The DNS names and addresses that it is valid for.
    pub names: Vec<CertificateName>,
    /// How many days the certificate is valid.
    pub days: u16,
}

/// The extended key usage of a certificate.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Usage {
    /// Authenticates a server.
    Server,
    /// Authenticates a client.
    Client,
}

/// A key that signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// The name of its files.
    pub name: String,
    /// The algorithm of the key.
    pub kind: ServiceAccountKey,
}

/// Random bytes that are generated once.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The name of its file.
    pub name: String,
    /// The number of bytes.
    pub bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    authorities: Vec<AuthorityEntry>,
    certificates: Vec<CertificateEntry>,
    signing_keys: Vec<SigningKeyEntry>,
    secrets: Vec<Secret>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AuthorityEntry {
    name: String,
    common_name: String,
    days: u16,
    #[serde(default)]
    may_be_imported: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CertificateEntry {
    name: String,
    #[serde(default)]
    each: Option<Each>,
    authority: String,
    common_name: String,
    #[serde(default)]
    organization: Option<String>,
    usages: Vec<Usage>,
    #[serde(default)]
    names: Vec<NameEntry>,
    days: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SigningKeyEntry {
    name: String,
}

/// What an entry is repeated for.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Each {
    EtcdMember,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
enum NameEntry {
    Plain(CertificateName),
    ExternalDnsName,
    AdditionalNames,
    InternalApiName,
    FirstServiceAddress,
    MemberName,
}

impl TryFrom<String> for NameEntry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match text.as_str() {
            "$externalDNSName" => Self::ExternalDnsName,
            "$additionalNames" => Self::AdditionalNames,
            "$internalAPIName" => Self::InternalApiName,
            "$firstServiceAddress" => Self::FirstServiceAddress,
            "$memberName" => Self::MemberName,
            unknown if unknown.starts_with('$') => return Err(format!("{unknown} means nothing here")),
            plain => match plain.parse::<IpAddr>() {
                Ok(address) => Self::Plain(CertificateName::Address(address)),
                Err(_) => Self::Plain(CertificateName::Dns(plain.to_owned())),
            },
        })
    }
}

impl Identities {
    /// The identities of one cluster, in the order of the table.
    #[must_use]
    pub fn new(cluster: &Cluster, names: &ClusterNames) -> Self {
        let fill = |text: &str| text.replace("{cluster}", cluster.name.as_str());
        let authorities = TABLE.authorities.iter().map(|entry| Authority {
            name: entry.name.clone(),
            common_name: fill(&entry.common_name),
            days: entry.days,
            may_be_imported: entry.may_be_imported,
        });
        let certificates = TABLE.certificates.iter().flat_map(|entry| {
            let members = match entry.each {
                Some(Each::EtcdMember) => 0..cluster.etcd.count,
                None => 0..1,
            };
            members.map(move |member| entry.fill_in(member, cluster, names))
        });
        let kind = cluster.kubernetes.service_account_key;
        Self {
            authorities: authorities.collect(),
            certificates: certificates.collect(),
            signing_keys: TABLE
                .signing_keys
                .iter()
                .map(|key| SigningKey { name: key.name.clone(), kind })
                .collect(),
            secrets: TABLE.secrets.clone(),
        }
    }
}

impl CertificateEntry {
    fn fill_in(&self, member: u32, cluster: &Cluster, names: &ClusterNames) -> LeafCertificate {
        let fill = |text: &str| {
            text.replace("{cluster}", cluster.name.as_str()).replace("{member}", &member.to_string())
        };
        let mut filled: Vec<CertificateName> = Vec::new();
        for name in self.names.iter().flat_map(|entry| entry.fill_in(member, cluster, names)) {
            // A team may add a name that the certificate has anyway.
            if !filled.contains(&name) {
                filled.push(name);
            }
        }
        LeafCertificate {
            name: fill(&self.name),
            authority: self.authority.clone(),
            common_name: fill(&self.common_name),
            organization: self.organization.as_deref().map(fill),
            usages: self.usages.clone(),
            names: filled,
            days: self.days,
        }
    }
}

impl NameEntry {
    fn fill_in(&self, member: u32, cluster: &Cluster, names: &ClusterNames) -> Vec<CertificateName> {
        match self {
            Self::Plain(name) => vec![name.clone()],
            Self::ExternalDnsName => vec![CertificateName::Dns(cluster.external_dns_name.to_string())],
            Self::AdditionalNames => cluster.api.additional_names.clone(),
            Self::InternalApiName => vec![CertificateName::Dns(names.internal_api.clone())],
            Self::FirstServiceAddress => {
                let network = u32::from(cluster.kubernetes.service_range.network());
                vec![CertificateName::Address(Ipv4Addr::from(network + 1).into())]
            }
            Self::MemberName => vec![CertificateName::Dns(names.etcd_member(member))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cluster::cluster;
    use super::{ClusterNames, Identities, Usage};
    use crate::document::Problems;

    fn identities(more: &str) -> Result<Identities, Problems> {
        let cluster = cluster(more)?;
        Ok(Identities::new(&cluster, &ClusterNames::new(&cluster)))
    }

    #[test]
    fn every_certificate_has_a_known_authority_a_usage_and_no_placeholder_left() -> Result<(), Problems> {
        let identities = identities("")?;
        for leaf in &identities.certificates {
            assert!(
                identities.authorities.iter().any(|authority| authority.name == leaf.authority),
                "{leaf:?}"
            );
            assert!(!leaf.usages.is_empty(), "{leaf:?}");
            let texts =
                format!("{}{}{}", leaf.name, leaf.common_name, leaf.organization.as_deref().unwrap_or(""));
            assert!(!texts.contains(['$', '{', '}']), "{texts}");
            assert!(
                leaf.usages.contains(&Usage::Server) != leaf.names.is_empty(),
                "a server has names: {leaf:?}"
            );
        }
        Ok(())
    }

    #[test]
    fn there_is_one_certificate_per_member() -> Result<(), Problems> {
        let members = |identities: &Identities| {
            let leaves = identities.certificates.iter().map(|leaf| leaf.name.clone());
            leaves.filter(|name| name.starts_with("etcd-") && name != "etcd-client").collect::<Vec<_>>()
        };
        assert_eq!(members(&identities("")?), ["etcd-0", "etcd-1", "etcd-2"]);
        assert_eq!(members(&identities(", etcd: {count: 1}")?), ["etcd-0"]);
        Ok(())
    }

    #[test]
    fn the_api_server_has_every_name_it_is_called_by() -> Result<(), Problems> {
        let identities = identities(
            ", api: {additionalNames: [vpn.example.com, 192.0.2.7, localhost.example, 127.0.0.1]}",
        )?;
        let api = identities.certificates.iter().find(|leaf| leaf.name == "apiserver");
        let names: Vec<String> =
            api.into_iter().flat_map(|leaf| &leaf.names).map(ToString::to_string).collect();
        let expected = [
            "k8s.example.com",
            "vpn.example.com",
            "192.0.2.7",
            "localhost.example",
            "127.0.0.1",
            "api.paddle.infra.internal",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "10.3.0.1",
            "localhost",
        ];
        assert_eq!(names, expected);
        Ok(())
    }
}
