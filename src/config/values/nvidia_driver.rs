//! The NVIDIA driver of a pool, and the CUDA releases that it can run.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::document::{Fault, nearest_word, parse_embedded_table};

static TABLE: LazyLock<Table> =
    LazyLock::new(|| parse_embedded_table(include_str!("../nvidia_drivers.yaml")));

/// What Flatcar calls its extensions with drivers, before the branch.
const EXTENSION_PREFIX: &str = "nvidia-drivers-";
const OPEN_SUFFIX: &str = "-open";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    branches: Vec<u16>,
    cuda_releases: Vec<CudaRelease>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CudaRelease {
    major: u16,
    oldest_driver: u16,
}

/// A driver as Flatcar publishes them: a branch, with open or with proprietary kernel modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NvidiaDriver {
    /// The branch of the driver, the first number of its version.
    pub branch: u16,
    /// Whether its kernel modules are the open ones.
    pub open: bool,
}

impl NvidiaDriver {
    /// The drivers that are worth asking for, the oldest first. Flatcar may publish others.
    pub fn known() -> impl Iterator<Item = Self> {
        TABLE.branches.iter().flat_map(|branch| [false, true].map(|open| Self { branch: *branch, open }))
    }

    fn read(text: &str) -> Option<Self> {
        let digits = text.strip_suffix(OPEN_SUFFIX).unwrap_or(text);
        let is_branch =
            digits.len() == 3 && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let branch = is_branch.then(|| digits.parse().ok()).flatten()?;
        Some(Self { branch, open: digits.len() < text.len() })
    }

    /// The name of Flatcar's extension.
    #[must_use]
    pub fn extension(self) -> String {
        format!("{EXTENSION_PREFIX}{self}")
    }

    /// The newest CUDA release that it runs; none if it is older than all that are known.
    #[must_use]
    pub fn newest_cuda(self) -> Option<u16> {
        let fitting = TABLE.cuda_releases.iter().filter(|release| release.oldest_driver <= self.branch);
        fitting.map(|release| release.major).max()
    }
}

/// The oldest branch that runs a CUDA release, or, for a release that is newer than all that are known, the newest of theirs.
#[must_use]
pub fn oldest_branch_for_cuda(major: u16) -> Option<u16> {
    let earlier = TABLE.cuda_releases.iter().filter(|release| release.major <= major);
    earlier.max_by_key(|release| release.major).map(|release| release.oldest_driver)
}

impl FromStr for NvidiaDriver {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        if let Some(driver) = Self::read(text) {
            return Ok(driver);
        }
        let known: Vec<String> = Self::known().map(|driver| driver.to_string()).collect();
        let short = text.strip_prefix(EXTENSION_PREFIX).unwrap_or(text);
        let near = match Self::read(short) {
            Some(_) => Some(short),
            None => nearest_word(short, known.iter().map(String::as_str)),
        };
        let help = match near {
            Some(near) => format!("did you mean '{near}'?"),
            None => {
                "it is the branch of a driver, with -open for open kernel modules, as in 570-open".to_owned()
            }
        };
        Err(Fault::new(format!("'{text}' is not an NVIDIA driver")).help(help))
    }
}

impl fmt::Display for NvidiaDriver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.branch, if self.open { OPEN_SUFFIX } else { "" })
    }
}

impl serde::Serialize for NvidiaDriver {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NvidiaDriver {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(|fault: Fault| serde::de::Error::custom(fault.message))
    }
}

#[cfg(test)]
mod tests {
    use super::{NvidiaDriver, TABLE, oldest_branch_for_cuda};
    use crate::document::Fault;

    #[test]
    fn a_driver_is_a_branch_with_or_without_open_modules() -> Result<(), Fault> {
        let open: NvidiaDriver = "570-open".parse()?;
        assert_eq!((open.branch, open.open), (570, true));
        assert_eq!(open.extension(), "nvidia-drivers-570-open");
        assert_eq!("580".parse::<NvidiaDriver>()?.to_string(), "580");
        for bad in ["", "57", "5700", "057", "570-Open", "570-open-open", "-open", "570.195.03", "+57"] {
            assert!(bad.parse::<NvidiaDriver>().is_err(), "{bad}");
        }
        for driver in NvidiaDriver::known() {
            assert_eq!(driver.to_string().parse::<NvidiaDriver>()?, driver);
        }
        Ok(())
    }

    #[test]
    fn cuda_13_begins_with_branch_580() -> Result<(), Fault> {
        let newest = |text: &str| Ok::<_, Fault>(text.parse::<NvidiaDriver>()?.newest_cuda());
        assert_eq!(
            (newest("535")?, newest("570-open")?, newest("580-open")?),
            (Some(12), Some(12), Some(13))
        );
        assert_eq!(newest("390")?, None);
        let oldest = [10, 12, 13, 14].map(oldest_branch_for_cuda);
        assert_eq!(oldest, [None, Some(525), Some(580), Some(580)]);
        assert!(TABLE.cuda_releases.is_sorted_by_key(|release| std::cmp::Reverse(release.major)));
        Ok(())
    }
}
