//! The time zone of a schedule.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::document::{Fault, nearest_word, parse_embedded_table};

static TABLE: LazyLock<Table> = LazyLock::new(|| parse_embedded_table(include_str!("../time_zones.yaml")));

const UTC: &str = "UTC";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    /// The names that Auto Scaling takes, by continent.
    zones: Vec<Vec<String>>,
    /// Older names, and what they mean.
    formerly: BTreeMap<String, String>,
}

impl Table {
    fn names(&self) -> impl Iterator<Item = &str> {
        [UTC].into_iter().chain(self.zones.iter().flatten().map(String::as_str))
    }
}

/// A time zone by its name in the IANA database, such as `Europe/Berlin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(String);

impl TimeZone {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is what Auto Scaling takes a schedule for if nothing is said.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0 == UTC
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self(UTC.to_owned())
    }
}

impl FromStr for TimeZone {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        if TABLE.names().any(|name| name == text) {
            return Ok(Self(text.to_owned()));
        }
        let fault = Fault::new(format!("'{text}' is not a time zone that Auto Scaling knows"));
        if let Some(meant) = TABLE.formerly.get(text) {
            return Err(fault.help(format!("it is an older name: write {meant}")));
        }
        // A place without its continent is nearer to what was meant than any other spelling.
        let place = text.replace(' ', "_").to_lowercase();
        let by_place = TABLE
            .names()
            .find(|name| name.rsplit('/').next().is_some_and(|last| last.to_lowercase() == place));
        Err(match by_place.or_else(|| nearest_word(text, TABLE.names())) {
            Some(near) => fault.help(format!("did you mean '{near}'?")),
            None => fault.help("write UTC, or a name of the IANA database, as in Europe/Berlin"),
        })
    }
}

impl std::fmt::Display for TimeZone {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLE, TimeZone};

    #[test]
    fn every_older_name_means_one_that_is_taken() {
        for (old, meant) in &TABLE.formerly {
            assert!(meant.parse::<TimeZone>().is_ok(), "{old}: {meant}");
            assert!(old.parse::<TimeZone>().is_err(), "{old}");
        }
    }

    #[test]
    fn older_names_and_typos_are_corrected() {
        let help =
            |text: &str| text.parse::<TimeZone>().err().and_then(|fault| fault.help).unwrap_or_default();
        assert_eq!(help("US/Pacific"), "it is an older name: write America/Los_Angeles");
        assert_eq!(help("berlin"), "did you mean 'Europe/Berlin'?");
        assert_eq!(help("New York"), "did you mean 'America/New_York'?");
        assert_eq!(help("Europe/Berln"), "did you mean 'Europe/Berlin'?");
        assert_eq!(help("utc"), "did you mean 'UTC'?");
        assert_eq!(help("Mars/Olympus"), "write UTC, or a name of the IANA database, as in Europe/Berlin");
        assert!("Europe/Stockholm".parse::<TimeZone>().is_ok());
    }
}
