//! EC2 instance types.

use std::fmt;
use std::str::FromStr;

use crate::document::Fault;

/// A processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Intel and AMD.
    Amd64,
    /// Graviton.
    Arm64,
}

/// An instance type: a family and a size, as in `g5.xlarge`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceType {
    text: String,
    dot: usize,
}

impl InstanceType {
    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the dot.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.text[..self.dot]
    }

    /// The part after the dot.
    #[must_use]
    pub fn size(&self) -> &str {
        &self.text[self.dot + 1..]
    }

    /// The architecture, read from AWS's naming rule: a `g` behind the generation number means Graviton.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        let generation = self.family().trim_start_matches(|c: char| c.is_ascii_lowercase());
        let attributes = generation.trim_start_matches(|c: char| c.is_ascii_digit());
        let attributes = attributes.split('-').next().unwrap_or_default();
        if attributes.contains('g') || self.family() == "a1" {
            Architecture::Arm64
        } else {
            Architecture::Amd64
        }
    }

    /// Whether the family is of a series that carries GPUs (`g…`, `gr…`, `p…`).
    #[must_use]
    pub fn is_of_gpu_series(&self) -> bool {
        let digit_follows = |prefix: &str| {
            self.family()
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        digit_follows("g") || digit_follows("gr") || digit_follows("p")
    }

    /// Whether the processor's speed depends on CPU credits (`t…`).
    #[must_use]
    pub fn is_burstable(&self) -> bool {
        self.family().strip_prefix('t').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether disks show up as NVMe devices that can be found by volume id; the machines of before 2017 have no such names.
    #[must_use]
    pub fn has_nvme_disks(&self) -> bool {
        const XEN: [&str; 19] = [
            "c3", "c4", "d2", "f1", "g2", "g3", "h1", "i2", "i3", "m1", "m2", "m3", "m4", "p2", "p3", "r3",
            "r4", "t1", "t2",
        ];
        !(XEN.contains(&self.family()) && self.size() != "metal")
    }
}

impl FromStr for InstanceType {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let word = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let begins_well = |family: &str| {
            family.starts_with(|c: char| c.is_ascii_lowercase())
                && family.contains(|c: char| c.is_ascii_digit())
        };
        match text.split_once('.') {
            Some((family, size)) if word(family) && word(size) && begins_well(family) => {
                Ok(Self { text: text.to_owned(), dot: family.len() })
            }
            _ => Err(Fault::new(format!("'{text}' is not an instance type"))
                .help("it is a family and a size, as in m5.large or g5.xlarge")),
        }
    }
}

impl fmt::Display for InstanceType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Architecture, InstanceType};
    use crate::document::Fault;

    #[test]
    fn graviton_is_recognised_by_the_letter_after_the_generation() -> Result<(), Fault> {
        for arm in [
            "m6g.large",
            "c7gn.xlarge",
            "t4g.medium",
            "im4gn.large",
            "g5g.xlarge",
            "a1.large",
            "is4gen.medium",
        ] {
            assert_eq!(arm.parse::<InstanceType>()?.architecture(), Architecture::Arm64, "{arm}");
        }
        for intel in
            ["m5.large", "g5.xlarge", "gr6.4xlarge", "p6-b200.48xlarge", "c6in.large", "u-6tb1.metal"]
        {
            assert_eq!(intel.parse::<InstanceType>()?.architecture(), Architecture::Amd64, "{intel}");
        }
        Ok(())
    }

    #[test]
    fn gpu_series_are_distinguished_from_others() -> Result<(), Fault> {
        for gpu in ["g4dn.xlarge", "gr6.4xlarge", "p5.48xlarge", "p6-b200.48xlarge"] {
            assert!(gpu.parse::<InstanceType>()?.is_of_gpu_series(), "{gpu}");
        }
        for other in ["m5.large", "t3.medium", "i4g.large"] {
            assert!(!other.parse::<InstanceType>()?.is_of_gpu_series(), "{other}");
        }
        Ok(())
    }
}
