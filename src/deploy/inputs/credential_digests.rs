//! Short digests of the keys that a cluster cannot change, by which two operators see whether they hold the same ones.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

use crate::credentials::Credentials;
use crate::hexadecimal::hexadecimal;

/// The keys that cannot be replaced while a cluster lives.
const NAMES: [&str; 4] = ["ca", "etcd-ca", "service-account", "secrets-encryption"];

/// One digest per key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CredentialDigests(Vec<(String, String)>);

impl CredentialDigests {
    /// The digests of the keys on disk.
    #[must_use]
    pub(crate) fn of(credentials: &Credentials) -> Self {
        let bytes = |name: &str| {
            credentials
                .certificate(name)
                .map(str::as_bytes)
                .or_else(|| credentials.secret(&format!("{name}.key")))
                .unwrap_or_default()
        };
        Self(NAMES.iter().map(|name| ((*name).to_owned(), short_digest(bytes(name)))).collect())
    }

    /// Parses the tag of a stack.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, digest)| (name.to_owned(), digest.to_owned())).collect())
    }

    /// The names of the keys that differ.
    #[must_use]
    pub(crate) fn differences(&self, other: &Self) -> Vec<&str> {
        self.0.iter().filter(|pair| !other.0.contains(pair)).map(|(name, _)| name.as_str()).collect()
    }
}

/// The text for the tag of a stack.
impl fmt::Display for CredentialDigests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(name, digest)| format!("{name}={digest}")).collect();
        formatter.write_str(&pairs.join(" "))
    }
}

/// Long enough to distinguish keys; a key of 256 random bits cannot be found from it.
fn short_digest(bytes: &[u8]) -> String {
    hexadecimal(&digest(&SHA256, bytes).as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::CredentialDigests;

    #[test]
    fn a_tag_parses_to_its_digests_and_differences_have_names() {
        let ours = CredentialDigests::parse("ca=11 etcd-ca=22");
        assert_eq!(CredentialDigests::parse(&ours.to_string()), ours);
        let theirs = CredentialDigests::parse("ca=11 etcd-ca=33");
        assert_eq!(ours.differences(&theirs), ["etcd-ca"]);
        assert_eq!(ours.differences(&ours), [""; 0]);
    }
}
