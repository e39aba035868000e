//! Every key and certificate of a cluster in memory, for what is rendered from them.

use std::collections::BTreeMap;

use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::certificate::Certificate;
use super::{CredentialStore, CredentialsError, KeySet, KeysInUse, RotatedKey, SecretText};
use crate::blueprint::Identities;

/// Keys and certificates as they are on disk; nothing here is judged by the clock.
#[derive(Debug)]
pub struct Credentials {
    certificates: BTreeMap<String, String>,
    keys: BTreeMap<String, SecretText>,
    secrets: BTreeMap<String, Zeroizing<Vec<u8>>>,
    keys_in_use: KeysInUse,
}

impl Credentials {
    /// Reads the identities that exist.
    pub fn read(store: &CredentialStore, identities: &Identities) -> Result<Self, CredentialsError> {
        let keys_in_use = KeysInUse::read(store)?;
        let mut credentials = Self {
            certificates: BTreeMap::new(),
            keys: BTreeMap::new(),
            secrets: BTreeMap::new(),
            keys_in_use,
        };
        let authorities = identities.authorities.iter().map(|authority| authority.name.clone());
        let leaves = identities.certificates.iter().map(|leaf| leaf.name.clone());
        let signing_keys = identities.signing_keys.iter();
        let signing_keys = signing_keys.flat_map(|key| keys_in_use.names_of(&key.name));
        for name in authorities.chain(leaves).chain(signing_keys) {
            if let Some(certificate) = store.read_certificate(&name)? {
                credentials.certificates.insert(name.clone(), certificate);
            }
            if let Some(key) = store.read_key(&name)? {
                credentials.keys.insert(name, key);
            }
        }
        for name in identities.secrets.iter().flat_map(|secret| keys_in_use.names_of(&secret.name)) {
            if let Some(bytes) = store.read_secret(&name)? {
                credentials.secrets.insert(name, bytes);
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
            keys_in_use: KeysInUse::default(),
        }
    }

    /// Which keys are in use.
    #[must_use]
    pub fn all_keys_in_use(&self) -> KeysInUse {
        self.keys_in_use
    }

    /// Which keys of a name are in use.
    #[must_use]
    pub fn keys_in_use(&self, key: RotatedKey) -> KeySet {
        self.keys_in_use.of(key)
    }

    /// A certificate or public key.
    #[must_use]
    pub fn certificate(&self, name: &str) -> Option<&str> {
        self.certificates.get(name).map(String::as_str)
    }

    /// When the first of the certificates that authorities sign expires; none if there is none, as among placeholders. Machines hold all
    /// of them.
    #[must_use]
    pub fn first_expiry(&self, identities: &Identities) -> Option<OffsetDateTime> {
        let leaves = identities.certificates.iter().map(|leaf| leaf.name.as_str());
        leaves.filter_map(|name| self.expiry(name)).min()
    }

    /// When each certificate expires, those of authorities first; none of placeholders.
    #[must_use]
    pub fn expiries(&self, identities: &Identities) -> Vec<(String, OffsetDateTime)> {
        let authorities = identities.authorities.iter().map(|authority| &authority.name);
        let names = authorities.chain(identities.certificates.iter().map(|leaf| &leaf.name));
        names.filter_map(|name| Some((name.clone(), self.expiry(name)?))).collect()
    }

    fn expiry(&self, name: &str) -> Option<OffsetDateTime> {
        let certificate = Certificate::read(self.certificates.get(name)?).ok()?;
        Some(certificate.not_after)
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
