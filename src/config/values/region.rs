//! Where AWS runs machines: partitions, regions and availability zones.

use std::fmt;
use std::str::FromStr;

use super::checked_text;
use crate::document::Fault;

/// A separate set of regions with its own accounts, names and domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// The ordinary one.
    Aws,
    /// Mainland China.
    China,
    /// The United States government's.
    UsGovernment,
}

impl Partition {
    /// The second field of every ARN in this partition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::China => "aws-cn",
            Self::UsGovernment => "aws-us-gov",
        }
    }

    /// What the names of its services end with.
    #[must_use]
    pub fn dns_suffix(self) -> &'static str {
        match self {
            Self::Aws | Self::UsGovernment => "amazonaws.com",
            Self::China => "amazonaws.com.cn",
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

checked_text!(
    /// The code of an AWS region.
    Region,
    check_region
);

impl Region {
    /// The partition the region belongs to.
    #[must_use]
    pub fn partition(&self) -> Partition {
        if self.as_str().starts_with("cn-") {
            Partition::China
        } else if self.as_str().starts_with("us-gov-") {
            Partition::UsGovernment
        } else {
            Partition::Aws
        }
    }
}

/// One availability zone, by its name in the account (`us-west-2a`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct AvailabilityZone(String);

impl AvailabilityZone {
    /// The name of the availability zone.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the availability zone is in `region`.
    #[must_use]
    pub fn is_in(&self, region: &Region) -> bool {
        self.0[..self.0.len() - 1] == *region.as_str()
    }
}

impl FromStr for AvailabilityZone {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let region = text.strip_suffix(|c: char| c.is_ascii_lowercase());
        if region.is_some_and(is_region_code) {
            return Ok(Self(text.to_owned()));
        }
        let fault = Fault::new(format!("'{text}' is not an availability zone"));
        Err(if is_region_code(text) {
            fault.help(format!("that is a region; its availability zones are {text}a, {text}b and so on"))
        } else if region.is_some_and(|region| region.matches('-').count() > 2) {
            fault.help("local and wavelength zones are not supported: they lack what a control plane needs")
        } else {
            fault.help("an availability zone is a region and a letter, as in us-west-2a; `aws ec2 describe-availability-zones` lists yours")
        })
    }
}

impl fmt::Display for AvailabilityZone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn check_region(text: &str) -> Result<(), Fault> {
    if is_region_code(text) {
        return Ok(());
    }
    let fault = Fault::new(format!("'{text}' is not a region"));
    let without_letter = text.strip_suffix(|c: char| c.is_ascii_lowercase());
    Err(match without_letter.filter(|region| is_region_code(region)) {
        Some(region) => fault.help(format!("that is an availability zone; its region is {region}")),
        None => fault.help("a region's code looks like us-west-2; `aws ec2 describe-regions` lists them"),
    })
}

/// Whether the text has the form of a region's code: words of letters, then a number, as in `us-gov-west-1`.
fn is_region_code(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split('-').collect();
    let Some(number) = parts.pop() else { return false };
    let is_number = (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let are_words = (2..=3).contains(&parts.len())
        && parts.iter().all(|part| part.len() >= 2 && part.bytes().all(|b| b.is_ascii_lowercase()));
    is_number && are_words && parts[0].len() == 2
}

#[cfg(test)]
mod tests {
    use super::{AvailabilityZone, Partition, Region};

    #[test]
    fn regions_of_every_partition() {
        let partition = |text: &str| text.parse::<Region>().map(|region| region.partition());
        assert_eq!(partition("us-west-2"), Ok(Partition::Aws));
        assert_eq!(partition("ap-northeast-1"), Ok(Partition::Aws));
        assert_eq!(partition("cn-north-1"), Ok(Partition::China));
        assert_eq!(partition("us-gov-west-1"), Ok(Partition::UsGovernment));
    }

    #[test]
    fn an_availability_zone_belongs_to_its_region_only() -> Result<(), crate::document::Fault> {
        let zone: AvailabilityZone = "us-west-2a".parse()?;
        assert!(zone.is_in(&"us-west-2".parse()?));
        assert!(!zone.is_in(&"us-west-1".parse()?));
        assert!("us-west-2-lax-1a".parse::<AvailabilityZone>().is_err());
        Ok(())
    }
}
