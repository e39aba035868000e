//! Which keys of one name are in use. Keys of a name are numbered, and a file, once written, never changes its key: `service-account` is the
//! first, `service-account-2` the second.

use std::fmt;

/// The file of a credentials directory that says which keys are in use.
pub const KEYS_IN_USE_FILE: &str = "keys-in-use.txt";

/// A key that a running cluster can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RotatedKey {
    /// Signs service-account tokens.
    ServiceAccount,
    /// Encrypts Secrets in etcd.
    SecretsEncryption,
}

impl RotatedKey {
    /// Every key that can be rotated.
    pub const ALL: [Self; 2] = [Self::ServiceAccount, Self::SecretsEncryption];

    /// The name by which users call the key.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ServiceAccount => "service-account",
            Self::SecretsEncryption => "secrets-encryption",
        }
    }

    /// The name of the identity with this number.
    #[must_use]
    pub fn numbered(self, number: u32) -> String {
        let name = self.name();
        let end = match self {
            Self::ServiceAccount => "",
            Self::SecretsEncryption => ".key",
        };
        // The first key is older than rotation, and has no number.
        if number == 1 { format!("{name}{end}") } else { format!("{name}-{number}{end}") }
    }
}

impl fmt::Display for RotatedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How far a rotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// One key is in use.
    Settled,
    /// After step 1: the next key is accepted everywhere before anything is signed or encrypted with it.
    Announced {
        /// The number of the next key.
        next: u32,
    },
    /// After step 2: the next key has become the current one, and the previous one is still accepted.
    Switched {
        /// The number of the previous key.
        previous: u32,
    },
}

/// The keys of one name that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySet {
    /// The number of the key that signs or encrypts.
    pub current: u32,
    /// How far a rotation is.
    pub stage: Stage,
}

impl Default for KeySet {
    fn default() -> Self {
        Self { current: 1, stage: Stage::Settled }
    }
}

impl KeySet {
    /// The numbers of all keys that are accepted; the current one is first.
    #[must_use]
    pub fn numbers(self) -> Vec<u32> {
        match self.stage {
            Stage::Settled => vec![self.current],
            Stage::Announced { next: other } | Stage::Switched { previous: other } => {
                vec![self.current, other]
            }
        }
    }

    /// What this set was before its last step, if that step switched keys.
    #[must_use]
    pub fn before_switch(self) -> Option<Self> {
        match self.stage {
            Stage::Switched { previous } => {
                Some(Self { current: previous, stage: Stage::Announced { next: self.current } })
            }
            Stage::Settled | Stage::Announced { .. } => None,
        }
    }

    /// Reads what `Display` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(", ").map(|part| part.split_once(' '));
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let (word, current) = parts.next()??;
        let current = number(current).filter(|_| word == "current")?;
        let stage = match parts.next() {
            None => Stage::Settled,
            Some(part) => {
                let (word, other) = part?;
                let other = number(other).filter(|other| *other != current)?;
                match word {
                    "next" => Stage::Announced { next: other },
                    "previous" => Stage::Switched { previous: other },
                    _ => return None,
                }
            }
        };
        parts.next().is_none().then_some(Self { current, stage })
    }
}

impl fmt::Display for KeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "current {}", self.current)?;
        match self.stage {
            Stage::Settled => Ok(()),
            Stage::Announced { next } => write!(formatter, ", next {next}"),
            Stage::Switched { previous } => write!(formatter, ", previous {previous}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeySet, RotatedKey, Stage};

    #[test]
    fn a_key_set_is_read_as_it_was_written_and_other_texts_are_refused() {
        for stage in [Stage::Settled, Stage::Announced { next: 3 }, Stage::Switched { previous: 1 }] {
            let set = KeySet { current: 2, stage };
            assert_eq!(KeySet::parse(&set.to_string()), Some(set));
            assert_eq!(set.numbers()[0], 2);
        }
        for nonsense in ["", "current", "current 0", "current 1, next 1", "next 1", "current 1, then 2"] {
            assert_eq!(KeySet::parse(nonsense), None, "{nonsense}");
        }
        assert_eq!(KeySet::parse("current 1, next 2, previous 3"), None);
    }

    #[test]
    fn the_first_key_has_no_number() {
        let names: Vec<String> =
            RotatedKey::ALL.iter().flat_map(|key| [1, 2].map(|number| key.numbered(number))).collect();
        assert_eq!(
            names,
            ["service-account", "service-account-2", "secrets-encryption.key", "secrets-encryption-2.key"]
        );
    }
}
