//! Short digests of the keys that a cluster runs on, by which two operators see whether they hold the same ones, and `up` whether a rotation
//! may continue.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

use crate::credentials::{Credentials, RotatedKey};
use crate::hexadecimal::hexadecimal;

/// The authorities, which cannot be replaced while a cluster lives.
const AUTHORITIES: [&str; 2] = ["ca", "etcd-ca"];

/// The digests of the keys that are in use, by name. The first one of a name is that of the key that signs or encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CredentialDigests(Vec<(String, Vec<String>)>);

/// How the keys on disk compare with those of the live controllers. Controllers are replaced one by one, so that old and new ones work in
/// parallel, and each must accept what the other signs or encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// The same keys are in use.
    Same,
    /// Old and new controllers accept each other's.
    Safe {
        /// Whether another key signs or encrypts.
        switches: bool,
        /// Whether a key is no longer accepted.
        drops: bool,
    },
    /// The live controllers do not know the key that would sign or encrypt.
    TooEarly,
    /// The key that signs or encrypts now would not be accepted.
    Unknown,
}

impl CredentialDigests {
    /// The digests of the keys on disk.
    #[must_use]
    pub(crate) fn of(credentials: &Credentials) -> Self {
        let authorities = AUTHORITIES.iter().map(|name| {
            let certificate = credentials.certificate(name).unwrap_or_default();
            ((*name).to_owned(), vec![short_digest(certificate.as_bytes())])
        });
        let rotated = RotatedKey::ALL.iter().map(|key| {
            let digest_of = |number| {
                let name = key.numbered(number);
                let bytes = credentials.certificate(&name).map(str::as_bytes);
                short_digest(bytes.or_else(|| credentials.secret(&name)).unwrap_or_default())
            };
            let numbers = credentials.keys_in_use(*key).numbers().into_iter();
            (key.name().to_owned(), numbers.map(digest_of).collect())
        });
        Self(authorities.chain(rotated).collect())
    }

    /// Parses the tag of a stack.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        let digests = |text: &str| text.split('+').map(str::to_owned).collect();
        Self(pairs.map(|(name, text)| (name.to_owned(), digests(text))).collect())
    }

    /// The names of the keys that are not those of the live controllers.
    #[must_use]
    pub(crate) fn differences(&self, live: &Self) -> Vec<&str> {
        let names = self.0.iter().map(|(name, _)| name.as_str());
        names.filter(|name| self.transition(name, live) == Transition::Unknown).collect()
    }

    /// What happens to the keys of one name.
    #[must_use]
    pub(crate) fn transition(&self, name: &str, live: &Self) -> Transition {
        let (ours, theirs) = (self.digests(name), live.digests(name));
        if ours == theirs {
            return Transition::Same;
        }
        let (Some(new), Some(old)) = (ours.first(), theirs.first()) else { return Transition::Unknown };
        if !ours.contains(old) {
            Transition::Unknown
        } else if !theirs.contains(new) {
            Transition::TooEarly
        } else {
            Transition::Safe {
                switches: new != old,
                drops: theirs.iter().any(|digest| !ours.contains(digest)),
            }
        }
    }

    fn digests(&self, name: &str) -> &[String] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[], |(_, digests)| digests)
    }
}

/// The text for the tag of a stack.
impl fmt::Display for CredentialDigests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, digests)| format!("{name}={}", digests.join("+"))).collect();
        formatter.write_str(&pairs.join(" "))
    }
}

/// Long enough to distinguish keys; a key of 256 random bits cannot be found from it.
fn short_digest(bytes: &[u8]) -> String {
    hexadecimal(&digest(&SHA256, bytes).as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::{CredentialDigests, Transition};

    #[test]
    fn a_tag_parses_to_its_digests_and_differences_have_names() {
        let ours = CredentialDigests::parse("ca=11 etcd-ca=22 service-account=33+44");
        assert_eq!(CredentialDigests::parse(&ours.to_string()), ours);
        let theirs = CredentialDigests::parse("ca=11 etcd-ca=33 service-account=44+33");
        assert_eq!(ours.differences(&theirs), ["etcd-ca"]);
        assert_eq!(ours.differences(&ours), [""; 0]);
    }

    #[test]
    fn old_and_new_controllers_must_accept_each_others_keys() {
        let safe = |switches, drops| Transition::Safe { switches, drops };
        for (live, wanted, expected) in [
            ("1", "1", Transition::Same),
            ("1", "1+2", safe(false, false)),
            ("1+2", "2+1", safe(true, false)),
            ("2+1", "2", safe(false, true)),
            // The previous key is put back, to read an old snapshot.
            ("2", "2+1", safe(false, false)),
            // A step is left out.
            ("1", "2+1", Transition::TooEarly),
            ("1", "2", Transition::Unknown),
            ("1+2", "2", Transition::Unknown),
            // Copies of credentials from before the rotation.
            ("2+1", "1", Transition::Unknown),
            ("2", "1", Transition::Unknown),
            ("2", "1+2", Transition::TooEarly),
        ] {
            let digests = |text: &str| CredentialDigests::parse(&format!("service-account={text}"));
            let found = digests(wanted).transition("service-account", &digests(live));
            assert_eq!(found, expected, "{live} -> {wanted}");
        }
    }

    /// AWS allows 256 characters in the value of a tag.
    #[test]
    fn two_rotations_at_once_fit_into_a_tag() {
        let digest = "0123456789abcdef";
        let text = format!(
            "ca={digest} etcd-ca={digest} service-account={digest}+{digest} secrets-encryption={digest}+{digest}"
        );
        assert!(CredentialDigests::parse(&text).to_string().len() <= 256);
    }
}
