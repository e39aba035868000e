//! The end of a pool: a minute in UTC.

use std::fmt;
use std::str::FromStr;

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::document::Fault;

/// When a pool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(OffsetDateTime);

impl Expiry {
    /// The moment.
    #[must_use]
    pub fn time(&self) -> OffsetDateTime {
        self.0
    }

    /// When AWS ends the pool for the first time after `now`: its action recurs on that minute of every year.
    #[must_use]
    pub fn first_after(&self, now: OffsetDateTime) -> Self {
        let years = now.year()..self.0.year();
        let earlier = years.filter_map(|year| self.0.replace_year(year).ok());
        earlier.map(Self).find(|end| end.0 > now).unwrap_or(*self)
    }
}

impl FromStr for Expiry {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = |message: &str| Fault::new(format!("'{text}' {message}"));
        let example = "write it as in 2026-12-01T18:00:00Z";
        let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) else {
            return Err(fault("is not a time in UTC").help(example));
        };
        if !text.ends_with(['Z', 'z']) {
            let utc = Self(time.to_offset(UtcOffset::UTC));
            return Err(fault("is not in UTC").help(format!("in UTC it is {utc}")));
        }
        if time.second() != 0 || time.nanosecond() != 0 {
            return Err(fault("is not a whole minute").help("Auto Scaling acts at whole minutes"));
        }
        Ok(Self(time))
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0;
        let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            time.hour(),
            time.minute(),
            time.second()
        )
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::Expiry;
    use crate::config::values::Cron;
    use crate::document::Fault;

    #[test]
    fn an_end_is_a_minute_of_the_year_in_utc() -> Result<(), Fault> {
        let end: Expiry = "2026-12-01T18:05:00Z".parse()?;
        assert_eq!(end.to_string(), "2026-12-01T18:05:00Z");
        let yearly = Cron::yearly(end.time());
        assert_eq!(yearly.as_str(), "5 18 1 12 *");
        assert_eq!(yearly, yearly.as_str().parse()?);
        for bad in [
            "2026-12-01",
            "2026-12-01T18:00Z",
            "2026-12-01T18:00:00",
            "2026-12-01T18:00:30Z",
            "2026-02-30T00:00:00Z",
        ] {
            assert!(bad.parse::<Expiry>().is_err(), "{bad}");
        }
        let elsewhere = "2026-12-01T18:00:00+01:00".parse::<Expiry>().err().and_then(|fault| fault.help);
        assert_eq!(elsewhere.as_deref(), Some("in UTC it is 2026-12-01T17:00:00Z"));
        Ok(())
    }

    #[test]
    fn an_end_that_is_more_than_a_year_away_comes_sooner() -> Result<(), Fault> {
        let now = datetime!(2026-11-19 02:00 UTC);
        for (written, first) in [
            ("2027-11-19T02:00:00Z", "2027-11-19T02:00:00Z"),
            ("2027-11-19T02:01:00Z", "2026-11-19T02:01:00Z"),
            ("2099-12-01T18:00:00Z", "2026-12-01T18:00:00Z"),
            ("2099-03-01T18:00:00Z", "2027-03-01T18:00:00Z"),
            // Only leap years have that day.
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("2032-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("2020-12-01T18:00:00Z", "2020-12-01T18:00:00Z"),
        ] {
            assert_eq!(written.parse::<Expiry>()?.first_after(now), first.parse()?, "{written}");
        }
        Ok(())
    }
}
