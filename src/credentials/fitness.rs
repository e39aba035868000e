//! Whether an existing certificate is still the one that is needed.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use super::authority::{LoadedAuthority, parse_key};
use super::certificate::Certificate;
use super::error::expiry_day;
use super::{CredentialStore, CredentialsError};
use crate::blueprint::LeafCertificate;

/// What was found in place of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fitness {
    /// The file exists and is valid.
    Good,
    /// The certificate, the key or both are missing.
    Missing,
    /// The file exists and must be replaced, for this reason.
    Unfit(String),
}

/// Judges the certificate and key of one identity.
pub(super) fn judge_leaf(
    store: &CredentialStore,
    leaf: &LeafCertificate,
    authority: &LoadedAuthority,
    now: OffsetDateTime,
) -> Result<Fitness, CredentialsError> {
    let (Some(pem), Some(key)) = (store.read_certificate(&leaf.name)?, store.read_key(&leaf.name)?) else {
        return Ok(Fitness::Missing);
    };
    let found = || -> Result<(), String> {
        let certificate = Certificate::read(&pem)?;
        let key = parse_key(&key).map_err(|reason| format!("its key {reason}"))?;
        if !certificate.has_key(&key) {
            return Err("its key does not fit it".to_owned());
        }
        compare_certificate(&certificate, leaf, authority, now)
    };
    Ok(match found() {
        Ok(()) => Fitness::Good,
        Err(reason) => Fitness::Unfit(reason),
    })
}

fn compare_certificate(
    certificate: &Certificate,
    leaf: &LeafCertificate,
    authority: &LoadedAuthority,
    now: OffsetDateTime,
) -> Result<(), String> {
    if !certificate.is_signed_by(&authority.certificate) {
        return Err(format!("it was not signed by {}", leaf.authority));
    }
    if certificate.not_after <= now {
        return Err(format!("it expired on {}", expiry_day(certificate.not_after)));
    }
    if certificate.not_before > now {
        return Err(format!("it is valid only from {}", expiry_day(certificate.not_before)));
    }
    if certificate.common_name.as_ref() != Some(&leaf.common_name)
        || certificate.organization != leaf.organization
    {
        return Err(format!("its subject is '{}'", certificate.subject));
    }
    let (found, wanted): (BTreeSet<_>, BTreeSet<_>) =
        (certificate.usages.iter().collect(), leaf.usages.iter().collect());
    if found != wanted {
        return Err("it is for other uses".to_owned());
    }
    let (found, wanted): (BTreeSet<_>, BTreeSet<_>) =
        (certificate.names.iter().collect(), leaf.names.iter().collect());
    let list = |names: Vec<_>| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let missing: Vec<_> = wanted.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&wanted).collect();
    match (missing.is_empty(), surplus.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => Err(format!("it lacks the name {}", list(missing))),
        (true, false) => Err(format!("it has the name {} too many", list(surplus))),
        (false, false) => {
            Err(format!("it lacks the name {} and has {} too many", list(missing), list(surplus)))
        }
    }
}
