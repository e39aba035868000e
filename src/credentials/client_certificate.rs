//! Certificates of people: signed by the cluster's authority, handed out, and kept nowhere.

use time::OffsetDateTime;

use super::authority::load_authority;
use super::error::CredentialsError;
use super::issuing::fill_random;
use super::leaf::create_leaf;
use super::{CredentialStore, SecretText};
use crate::blueprint::{LeafCertificate, Usage};

const AUTHORITY: &str = "ca";

/// A person's certificate and key.
#[derive(Debug)]
pub struct ClientCertificate {
    /// The user that Kubernetes sees: the name, and a number that no other certificate has.
    pub common_name: String,
    /// The certificate as PEM.
    pub certificate: String,
    /// The key as PEM.
    pub key: SecretText,
    /// The certificate of the authority that clusters show, as PEM.
    pub authority: String,
    /// When it expires.
    pub not_after: OffsetDateTime,
}

/// Issues a certificate for a person of a group. Each has a name of its own, so that rights which were given to one never fall to another.
pub fn issue_client_certificate(
    store: &CredentialStore,
    name: &str,
    group: &str,
    days: u16,
    now: OffsetDateTime,
) -> Result<ClientCertificate, CredentialsError> {
    let missing = || CredentialsError::NoAuthorityKey {
        key: store.key_path(AUTHORITY),
        leaf: format!("the certificate of {name}"),
    };
    let mut serial = [0; 8];
    fill_random(&mut serial)?;
    let common_name = format!("{name}:{:016x}", u64::from_be_bytes(serial));
    let leaf = LeafCertificate {
        name: name.to_owned(),
        authority: AUTHORITY.to_owned(),
        common_name: common_name.clone(),
        organization: Some(group.to_owned()),
        usages: vec![Usage::Client],
        names: Vec::new(),
        days,
    };
    let authority = load_authority(store, AUTHORITY, now)?.ok_or_else(missing)?;
    let (certificate, key) = create_leaf(&leaf, &authority, now).ok_or_else(missing)??;
    let not_after =
        super::certificate::Certificate::read(&certificate).map_or(now, |certificate| certificate.not_after);
    let authority = store.read_certificate(AUTHORITY)?.ok_or_else(missing)?;
    Ok(ClientCertificate { common_name, certificate, key, authority, not_after })
}
