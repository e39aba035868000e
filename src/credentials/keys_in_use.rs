//! `keys-in-use.txt`: which of the numbered keys are in use. Without the file, the first ones are.

use super::{CredentialStore, CredentialsError, KEYS_IN_USE_FILE, KeySet, RotatedKey};

const HEADER: &str =
    "# Which keys are in use; written by `infra render credentials --rotate` and `--retire`.\n";

/// The keys in use, of every key that can be rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeysInUse {
    service_account: KeySet,
    secrets_encryption: KeySet,
}

impl KeysInUse {
    /// Reads the file of a directory.
    pub fn read(store: &CredentialStore) -> Result<Self, CredentialsError> {
        let Some(bytes) = store.read_secret(KEYS_IN_USE_FILE)? else { return Ok(Self::default()) };
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text).map_err(|line| CredentialsError::UnreadableKeysInUse {
            path: store.file_path(KEYS_IN_USE_FILE),
            line,
        })
    }

    /// Writes the file of a directory: from here on the next run uses these keys.
    pub(super) fn write(self, store: &CredentialStore) -> Result<(), CredentialsError> {
        let lines = RotatedKey::ALL.map(|key| format!("{key}: {}\n", self.of(key)));
        store.write_secret(KEYS_IN_USE_FILE, format!("{HEADER}{}", lines.concat()).as_bytes())
    }

    /// The keys of one name.
    #[must_use]
    pub fn of(self, key: RotatedKey) -> KeySet {
        match key {
            RotatedKey::ServiceAccount => self.service_account,
            RotatedKey::SecretsEncryption => self.secrets_encryption,
        }
    }

    /// The names of an identity's keys in use; only what can be rotated has more than one.
    pub(super) fn names_of(self, identity: &str) -> Vec<String> {
        match RotatedKey::ALL.into_iter().find(|key| key.numbered(1) == identity) {
            Some(key) => self.of(key).numbers().into_iter().map(|number| key.numbered(number)).collect(),
            None => vec![identity.to_owned()],
        }
    }

    pub(super) fn set(&mut self, key: RotatedKey, keys: KeySet) {
        match key {
            RotatedKey::ServiceAccount => self.service_account = keys,
            RotatedKey::SecretsEncryption => self.secrets_encryption = keys,
        }
    }

    /// The first unknown line is the error.
    fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let known = line.split_once(": ").and_then(|(name, set)| {
                let key = RotatedKey::ALL.into_iter().find(|key| key.name() == name)?;
                Some((key, KeySet::parse(set.trim_end())?))
            });
            let (key, set) = known.ok_or_else(|| line.to_owned())?;
            keys.set(key, set);
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::KeysInUse;
    use crate::credentials::{KeySet, RotatedKey, Stage};

    #[test]
    fn lines_are_read_in_any_order_and_an_unknown_one_is_named() {
        let text =
            "# words\n\nsecrets-encryption: current 2, previous 1\nservice-account: current 1, next 2\n";
        let keys = KeysInUse::parse(text).unwrap_or_default();
        let switched = KeySet { current: 2, stage: Stage::Switched { previous: 1 } };
        assert_eq!(keys.of(RotatedKey::SecretsEncryption), switched);
        let announced = KeySet { current: 1, stage: Stage::Announced { next: 2 } };
        assert_eq!(keys.of(RotatedKey::ServiceAccount), announced);
        assert_eq!(KeysInUse::parse("").ok(), Some(KeysInUse::default()));
        for line in ["ca: current 2", "service-account", "service-account: current"] {
            assert_eq!(KeysInUse::parse(line), Err(line.to_owned()));
        }
    }
}
