//! Amounts as Kubernetes writes them, which are kept as they were written.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::document::Fault;

const GIBIBYTE: u64 = 1 << 30;
/// More than any machine has.
const LARGEST: u64 = 1 << 50;

/// Units of memory and what each is in bytes.
const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", GIBIBYTE),
    ("Ti", 1 << 40),
    ("k", 1000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("", 1),
];

/// An amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Size {
    text: String,
    #[serde(skip)]
    bytes: u64,
}

impl Size {
    /// How much it is.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number of mebibytes.
    #[must_use]
    pub(crate) fn of_mebibytes(mebibytes: u64) -> Self {
        Self { text: format!("{mebibytes}Mi"), bytes: mebibytes << 20 }
    }

    /// A larger size, by whole gibibytes.
    #[must_use]
    pub(crate) fn plus_gibibytes(&self, more: u64) -> Self {
        let gibibytes = self.bytes.div_ceil(GIBIBYTE) + more;
        Self { text: format!("{gibibytes}Gi"), bytes: gibibytes * GIBIBYTE }
    }
}

impl FromStr for Size {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refuse = |reason: &str| {
            Err(Fault::new(format!("'{text}' is not an amount of memory: {reason}"))
                .help("write 512Mi or 8Gi"))
        };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &text[digits.len()..];
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return refuse(&format!("there is no unit '{unit}'"));
        };
        let Some(bytes) = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor)) else {
            return refuse("it does not begin with a whole number");
        };
        if bytes > LARGEST {
            return refuse("it is more than a pebibyte");
        }
        if bytes < 1 << 20 {
            // Probably 8Gi was meant.
            return refuse("it is less than a mebibyte");
        }
        Ok(Self { text: text.to_owned(), bytes })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A number of processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Processors {
    text: String,
    #[serde(skip)]
    thousandths: u64,
}

impl Processors {
    /// Thousandths of a processor.
    #[must_use]
    pub(crate) fn thousandths(&self) -> u64 {
        self.thousandths
    }
}

impl FromStr for Processors {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let thousandths = match text.strip_suffix('m') {
            Some(thousandths) => thousandths.parse().ok(),
            None => text.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1000)),
        };
        match thousandths {
            Some(thousandths) if (1..=1_000_000).contains(&thousandths) => {
                Ok(Self { text: text.to_owned(), thousandths })
            }
            _ => Err(Fault::new(format!("'{text}' is not a number of processors"))
                .help("write a whole number in quotes as \"4\", or thousandths as 500m")),
        }
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Processors, Size};
    use crate::document::Fault;

    #[test]
    fn quantities_are_read_with_their_units() -> Result<(), Fault> {
        assert_eq!("8Gi".parse::<Size>()?.bytes(), 8 << 30);
        assert_eq!("2G".parse::<Size>()?.plus_gibibytes(1).to_string(), "3Gi");
        for bad in [
            "",
            "8",
            "8 Gi",
            "8gb",
            "24 gigs",
            "1.5Gi",
            "-1Gi",
            "99999999999Ti",
            "1025Ti",
            "18446744073709551615",
        ] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        assert_eq!("4".parse::<Processors>()?.thousandths(), 4000);
        assert_eq!("250m".parse::<Processors>()?.thousandths(), 250);
        for bad in ["", "0", "four", "1.5", "-1", "2cores"] {
            assert!(bad.parse::<Processors>().is_err(), "{bad}");
        }
        Ok(())
    }
}
