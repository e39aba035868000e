//! When an entry of a schedule happens: the five fields of cron, as Auto Scaling reads them.

use std::fmt;
use std::str::FromStr;

use time::{OffsetDateTime, UtcOffset};

use crate::document::{Fault, nearest_word};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS_OF_WEEK: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The longest text that Auto Scaling takes.
const LONGEST: usize = 255;

/// A field of cron: what it counts, from where to where, and names for its numbers.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "a minute", least: 0, most: 59, names: &[] },
    Field { name: "an hour", least: 0, most: 23, names: &[] },
    Field { name: "a day of the month", least: 1, most: 31, names: &[] },
    Field { name: "a month", least: 1, most: 12, names: &MONTHS },
    // Sunday is 0 and 7.
    Field { name: "a day of the week", least: 0, most: 7, names: &DAYS_OF_WEEK },
];

/// Recurring moments, such as `0 20 * * MON-FRI`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// The numbers of each field, a bit each.
    numbers: [u64; 5],
}

impl Cron {
    /// The text, with one space between fields and names in capitals.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The minute of a moment, in UTC, in every year.
    #[must_use]
    pub fn yearly(moment: OffsetDateTime) -> Self {
        let moment = moment.to_offset(UtcOffset::UTC);
        let (minute, hour, day) = (moment.minute(), moment.hour(), moment.day());
        let month = u8::from(moment.month());
        let bit = |number: u8| 1 << number;
        Self {
            text: format!("{minute} {hour} {day} {month} *"),
            numbers: [bit(minute), bit(hour), bit(day), bit(month), every_value(&FIELDS[4])],
        }
    }

    /// The hour and the minute, if there is one of each.
    #[must_use]
    pub fn time_of_day(&self) -> Option<(u32, u32)> {
        let [minutes, hours, ..] = self.numbers;
        let single = |bits: u64| bits.is_power_of_two().then(|| bits.trailing_zeros());
        Some((single(hours)?, single(minutes)?))
    }

    /// The numbers of its minutes and hours.
    #[must_use]
    pub fn times_of_day(&self) -> (u64, u64) {
        (self.numbers[0], self.numbers[1])
    }

    /// Whether there is a moment, in some year, that both have.
    #[must_use]
    pub fn has_common_minute(&self, other: &Self) -> bool {
        let have_common = |field: usize| self.numbers[field] & other.numbers[field] != 0;
        let days = || (0..7).flat_map(|weekday| (1..=31).map(move |day| (day, weekday)));
        have_common(0)
            && have_common(1)
            && have_common(3)
            && days().any(|(day, weekday)| self.has_day(day, weekday) && other.has_day(day, weekday))
    }

    /// Where both fields of days are given, either is enough, as cron has it.
    fn has_day(&self, day: u8, weekday: u8) -> bool {
        let (in_month, in_week) = (self.numbers[2] >> day & 1 == 1, self.numbers[4] >> weekday & 1 == 1);
        let is_any = |field: usize| self.numbers[field] == every_value(&FIELDS[field]);
        if is_any(2) || is_any(4) { in_month && in_week } else { in_month || in_week }
    }
}

impl FromStr for Cron {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_ascii_uppercase).collect();
        let example =
            "write minute, hour, day of the month, month, day of the week, as in \"0 20 * * MON-FRI\"";
        if text.starts_with('@') {
            return Err(Fault::new(format!("Auto Scaling does not know '{text}'")).help(example));
        }
        let [minute, hour, day, month, weekday] = words.as_slice() else {
            let found = format!("{} field{}", words.len(), if words.len() == 1 { "" } else { "s" });
            return Err(Fault::new(format!("'{text}' has {found}; Auto Scaling reads five")).help(example));
        };
        if text.len() > LONGEST {
            return Err(Fault::new(format!("Auto Scaling takes at most {LONGEST} characters"))
                .help("use several entries"));
        }
        let mut numbers = [0; 5];
        for ((numbers, field), word) in
            numbers.iter_mut().zip(&FIELDS).zip([minute, hour, day, month, weekday])
        {
            *numbers = field.read(word)?;
        }
        // Sunday has two numbers.
        if numbers[4] >> 7 & 1 == 1 {
            numbers[4] |= 1;
        } else if numbers[4] & 1 == 1 {
            numbers[4] |= 1 << 7;
        }
        let cron = Self { text: words.join(" "), numbers };
        cron.check_days()?;
        Ok(cron)
    }
}

impl Cron {
    /// Refuses days that no month of the fields has: Auto Scaling would wait for them for ever.
    fn check_days(&self) -> Result<(), Fault> {
        const LENGTHS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let (days, months) = (self.numbers[2], self.numbers[3]);
        let any_weekday = self.numbers[4] == every_value(&FIELDS[4]);
        let fits =
            |month: u8, length: u8| months >> month & 1 == 1 && (1..=length).any(|day| days >> day & 1 == 1);
        if !any_weekday || (1..).zip(LENGTHS).any(|(month, length)| fits(month, length)) {
            return Ok(());
        }
        Err(Fault::new(format!("'{self}' never happens: no month that it names has such a day")))
    }
}

impl Field {
    /// The numbers that a field names: `*`, a number, a range, with a step, or a list of those.
    fn read(&self, word: &str) -> Result<u64, Fault> {
        let mut numbers = 0;
        for part in word.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.read_step(step)?)),
                None => (part, None),
            };
            let (first, last) = match (range, range.split_once('-')) {
                ("*", _) => (self.least, self.last()),
                (_, Some((first, last))) => (self.number(first)?, self.number(last)?),
                // From there to the end, in steps.
                (single, None) if step.is_some() => (self.number(single)?, self.last()),
                (single, None) => (self.number(single)?, self.number(single)?),
            };
            if first > last {
                return Err(Fault::new(format!("'{range}' ends before it begins"))
                    .help(format!("write two ranges, as in {range_of}", range_of = self.two_ranges(range))));
            }
            for number in (first..=last).step_by(step.unwrap_or(1).into()) {
                numbers |= 1 << number;
            }
        }
        // A star covers Sunday once.
        Ok(if word == "*" { every_value(self) } else { numbers })
    }

    /// The last number that a star stands for.
    fn last(&self) -> u8 {
        if self.most == 7 { 6 } else { self.most }
    }

    fn number(&self, text: &str) -> Result<u8, Fault> {
        if let Some(index) = self.names.iter().position(|name| *name == text) {
            return Ok(self.least + u8::try_from(index).unwrap_or_default());
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u8>() {
            Ok(number) if is_number && (self.least..=self.most).contains(&number) => Ok(number),
            _ => Err(Fault::new(format!("'{text}' is not {}", self.name)).help(self.help(text))),
        }
    }

    fn help(&self, text: &str) -> String {
        if text == "?" {
            return "Auto Scaling knows no '?': write '*'".to_owned();
        }
        if let Some(near) = nearest_word(text, self.names.iter().copied()) {
            return format!("did you mean '{near}'?");
        }
        let names = match self.names {
            [] => String::new(),
            [first, .., last] => format!(", or {first} to {last}"),
            [only] => format!(", or {only}"),
        };
        format!("it is {} to {}{names}; '*' is any", self.least, self.most)
    }

    fn read_step(&self, text: &str) -> Result<u8, Fault> {
        let step = text.parse().ok().filter(|step| (1..=self.most).contains(step));
        step.ok_or_else(|| {
            Fault::new(format!("'{text}' is not a step of {}", self.name)).help(format!(
                "it is 1 to {}, as in */{}",
                self.most,
                if self.most > 15 { 15 } else { 2 }
            ))
        })
    }

    fn two_ranges(&self, range: &str) -> String {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = |first: &str, last: &str| {
            if first == last { first.to_owned() } else { format!("{first}-{last}") }
        };
        let (start, end) = match self.names {
            [start, .., end] => ((*start).to_owned(), (*end).to_owned()),
            _ => (self.least.to_string(), self.most.to_string()),
        };
        format!("{},{}", range(first, &end), range(&start, last))
    }
}

/// Every number of a field.
fn every_value(field: &Field) -> u64 {
    (field.least..=field.most).fold(0, |bits, number| bits | 1 << number)
}

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Cron;
    use crate::document::Fault;

    fn cron(text: &str) -> Result<Cron, Fault> {
        text.parse()
    }

    #[test]
    fn fields_are_numbers_names_ranges_lists_and_steps() -> Result<(), Fault> {
        for same in [
            ["0 20 * * MON-FRI", "0  20 * * 1-5"],
            ["0 8 * * sun", "0 8 * * 7"],
            ["*/15 0-3 1,15 jan,jul *", "0,15,30,45 0,1,2,3 1,15 1,7 *"],
            ["5/20 * * * *", "5,25,45 * * * *"],
            ["0 0 * * 0-6", "0 0 * * *"],
        ] {
            assert_eq!(cron(same[0])?.numbers, cron(same[1])?.numbers, "{same:?}");
        }
        assert_eq!(cron("0 20 * * mon-fri")?.as_str(), "0 20 * * MON-FRI");
        assert_eq!(cron("30 8 * * *")?.time_of_day(), Some((8, 30)));
        assert_eq!(cron("30 8,20 * * *")?.time_of_day(), None);
        Ok(())
    }

    #[test]
    fn what_auto_scaling_refuses_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "0 24 * * *",
            "0 0 0 * *",
            "0 0 32 * *",
            "0 0 * 13 *",
            "0 0 * * 8",
            "0 0 ? * *",
            "0 0 * * MONDAY",
            "0 0 L * *",
            "*/0 * * * *",
            "0 5-1 * * *",
            "@daily",
            "0 0 1W * *",
            "1,, * * * *",
            "- * * * *",
            "+5 * * * *",
            "0 0 31 2,4 *",
            "0 0 * * MON#1",
        ] {
            assert!(cron(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rules_with_a_common_minute_are_found() -> Result<(), Fault> {
        for (one, other, meet) in [
            ("0 20 * * *", "0 20 * * FRI", true),
            ("0 20 * * MON-THU", "0 20 * * FRI", false),
            ("0 20 * * *", "30 20 * * *", false),
            ("0 20 1 * MON", "0 20 * * MON", true),
            ("0 20 1 * *", "0 20 2 * *", false),
            ("0 20 1 * *", "0 20 * * WED", true),
            ("*/15 * * * *", "45 23 31 12 *", true),
            ("0 20 * JAN *", "0 20 * FEB *", false),
        ] {
            assert_eq!(cron(one)?.has_common_minute(&cron(other)?), meet, "{one} and {other}");
            assert_eq!(cron(other)?.has_common_minute(&cron(one)?), meet, "{other} and {one}");
        }
        Ok(())
    }
}
