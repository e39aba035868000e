//! A version of Kubernetes.

use std::fmt;
use std::str::FromStr;

use crate::document::Fault;

/// A released version, ordered as versions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
    /// The third number.
    pub patch: u16,
}

impl FromStr for KubernetesVersion {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refused = || Fault::new(format!("'{text}' is not a Kubernetes version"));
        let digits = text
            .strip_prefix('v')
            .ok_or_else(|| refused().help(format!("versions begin with 'v': v{text}")))?;
        let numbers: Option<Vec<u16>> = digits.split('.').map(parse_number).collect();
        match numbers.as_deref() {
            Some([major, minor, patch]) => Ok(Self { major: *major, minor: *minor, patch: *patch }),
            _ => Err(refused().help("it has three numbers, as in v1.36.3")),
        }
    }
}

fn parse_number(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}
