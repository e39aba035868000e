//! Reads certificates: what they say, and whether a key or an issuer belongs to them.

use std::net::IpAddr;

use rcgen::{KeyPair, PublicKeyData};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use crate::blueprint::Usage;
use crate::config::values::CertificateName;

/// What one certificate says.
#[derive(Clone, Debug)]
pub(super) struct Certificate {
    der: Vec<u8>,
    pub(super) subject: String,
    pub(super) issuer: String,
    pub(super) common_name: Option<String>,
    pub(super) organization: Option<String>,
    pub(super) names: Vec<CertificateName>,
    pub(super) usages: Vec<Usage>,
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
    pub(super) authority: AuthorityMarks,
    public_key: Vec<u8>,
}

/// What makes a certificate one that may sign others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AuthorityMarks {
    /// `basicConstraints` says so.
    pub(super) is_authority: bool,
    /// The path length constraint, if there is one.
    pub(super) path_length: Option<u32>,
    /// Key usage allows signing certificates, or is not limited.
    pub(super) may_sign: bool,
}

impl Certificate {
    /// Reads every certificate of a PEM file, in order.
    pub(super) fn read_all(pem: &str) -> Result<Vec<Self>, String> {
        let mut certificates = Vec::new();
        for block in Pem::iter_from_buffer(pem.as_bytes()) {
            let block = block.map_err(|_| "it is not a PEM file".to_owned())?;
            match block.label.as_str() {
                "CERTIFICATE" => certificates.push(Self::from_der(&block.contents)?),
                label if label.contains("PRIVATE KEY") => return Err("it holds a private key".to_owned()),
                _ => {}
            }
        }
        if certificates.is_empty() {
            Err("there is no certificate in it".to_owned())
        } else {
            Ok(certificates)
        }
    }

    /// Reads the first certificate of a PEM file.
    pub(super) fn read(pem: &str) -> Result<Self, String> {
        Self::read_all(pem).map(|mut all| all.remove(0))
    }

    fn from_der(der: &[u8]) -> Result<Self, String> {
        let (rest, parsed) =
            X509Certificate::from_der(der).map_err(|_| "its certificate cannot be parsed".to_owned())?;
        if !rest.is_empty() {
            return Err("its certificate has bytes behind its end".to_owned());
        }
        let moment = |time: x509_parser::time::ASN1Time| time.to_datetime();
        let text = |attribute: Option<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
            attribute.and_then(|attribute| attribute.as_str().ok()).map(str::to_owned)
        };
        Ok(Self {
            der: der.to_vec(),
            subject: parsed.subject().to_string(),
            issuer: parsed.issuer().to_string(),
            common_name: text(parsed.subject().iter_common_name().next()),
            organization: text(parsed.subject().iter_organization().next()),
            names: alternative_names(&parsed),
            usages: key_usages(&parsed),
            not_before: moment(parsed.validity().not_before),
            not_after: moment(parsed.validity().not_after),
            authority: authority_marks(&parsed),
            public_key: parsed.public_key().raw.to_vec(),
        })
    }

    /// Whether `key` is the private half of this certificate's key.
    pub(super) fn has_key(&self, key: &KeyPair) -> bool {
        key.subject_public_key_info() == self.public_key
    }

    /// Whether both are the same certificate, byte for byte.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.der == other.der
    }

    /// Whether `issuer` signed this certificate.
    pub(super) fn is_signed_by(&self, issuer: &Self) -> bool {
        let (Ok((_, own)), Ok((_, other))) =
            (X509Certificate::from_der(&self.der), X509Certificate::from_der(&issuer.der))
        else {
            return false;
        };
        own.issuer().as_raw() == other.subject().as_raw()
            && own.verify_signature(Some(other.public_key())).is_ok()
    }

    /// The size of an RSA key; `None` for a key of another kind.
    pub(super) fn rsa_bits(&self) -> Option<usize> {
        let (_, parsed) = X509Certificate::from_der(&self.der).ok()?;
        match parsed.public_key().parsed().ok()? {
            x509_parser::public_key::PublicKey::RSA(key) => Some(key.key_size()),
            _ => None,
        }
    }

    /// The certificate's bytes.
    pub(super) fn der(&self) -> &[u8] {
        &self.der
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<CertificateName> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(CertificateName::Dns((*name).to_owned())),
            GeneralName::IPAddress(bytes) => match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).ok().map(|b| CertificateName::Address(IpAddr::from(b))),
                _ => <[u8; 16]>::try_from(*bytes).ok().map(|b| CertificateName::Address(IpAddr::from(b))),
            },
            _ => None,
        })
        .collect()
}

fn key_usages(certificate: &X509Certificate<'_>) -> Vec<Usage> {
    let Ok(Some(extension)) = certificate.extended_key_usage() else { return Vec::new() };
    let (server, client) = (extension.value.server_auth, extension.value.client_auth);
    let all = [(server, Usage::Server), (client, Usage::Client)];
    all.into_iter().filter(|(present, _)| *present).map(|(_, usage)| usage).collect()
}

fn authority_marks(certificate: &X509Certificate<'_>) -> AuthorityMarks {
    let mut marks = AuthorityMarks { is_authority: false, path_length: None, may_sign: true };
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::BasicConstraints(constraints) => {
                marks.is_authority = constraints.ca;
                marks.path_length = constraints.path_len_constraint;
            }
            ParsedExtension::KeyUsage(usage) => marks.may_sign = usage.key_cert_sign(),
            _ => {}
        }
    }
    marks
}
