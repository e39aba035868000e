//! Every key and certificate of a cluster in memory, for what is rendered from them.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::{CredentialsError, SecretText, Store};
use crate::blueprint::Identities;

/// Keys and certificates as they are on disk; nothing here is judged by the clock.
#[derive(Debug)]
pub struct Credentials {
    certificates: BTreeMap<String, String>,
    keys: BTreeMap<String, SecretText>,
    secrets: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl Credentials {
    /// Reads the identities that exist.
    pub fn read(store: &Store, identities: &Identities) -> Result<Self, CredentialsError> {
        let mut credentials =
            Self { certificates: BTreeMap::new(), keys: BTreeMap::new(), secrets: BTreeMap::new() };
        let authorities = identities.authorities.iter().map(|authority| &authority.name);
        let leaves = identities.certificates.iter().map(|leaf| &leaf.name);
        let signing_keys = identities.signing_keys.iter().map(|key| &key.name);
        for name in authorities.chain(leaves).chain(signing_keys) {
            if let Some(certificate) = store.read_certificate(name)? {
                credentials.certificates.insert(name.clone(), certificate);
            }
            if let Some(key) = store.read_key(name)? {
                credentials.keys.insert(name.clone(), key);
            }
        }
        for secret in &identities.secrets {
            if let Some(bytes) = store.read_secret(&secret.name)? {
                credentials.secrets.insert(secret.name.clone(), bytes);
            }
        }
        Ok(credentials)
    }

    /// Stand-ins for all of them, for checking what would be rendered where there are no credentials yet.
    #[must_use]
    pub fn placeholders(identities: &Identities) -> Self {
        let authorities = identities.authorities.iter().map(|authority| authority.name.clone());
        let leaves = identities.certificates.iter().map(|leaf| leaf.name.clone());
        let names: Vec<String> = authorities
            .chain(leaves)
            .chain(identities.signing_keys.iter().map(|key| key.name.clone()))
            .collect();
        Self {
            certificates: names.iter().map(|name| (name.clone(), "placeholder".to_owned())).collect(),
            keys: names.into_iter().map(|name| (name, SecretText::new("placeholder".to_owned()))).collect(),
            secrets: identities
                .secrets
                .iter()
                .map(|secret| (secret.name.clone(), Zeroizing::new(vec![0; secret.bytes])))
                .collect(),
        }
    }

    /// A certificate or public key.
    #[must_use]
    pub fn certificate(&self, name: &str) -> Option<&str> {
        self.certificates.get(name).map(String::as_str)
    }

    /// A private key.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&SecretText> {
        self.keys.get(name)
    }

    /// The bytes of a secret.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&[u8]> {
        self.secrets.get(name).map(|bytes| bytes.as_slice())
    }
}
