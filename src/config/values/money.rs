//! Amounts of money, exact: AWS's prices are decimal text, and sums of them must not depend on binary fractions.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::document::Fault;

/// Digits after the decimal point; AWS's prices have up to ten.
const DIGITS: usize = 12;
const ONE: i128 = 10_i128.pow(12);
/// More than any bill, and far from an overflow when it is multiplied.
const MOST_WHOLE_DIGITS: usize = 12;

/// An amount of money, exact to twelve digits after the point. Which currency it is in is known elsewhere.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Money(i128);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The amount multiplied by `count`.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(i128::from(count)))
    }

    /// The amount divided by `parts`, rounded half up in the last digit.
    #[must_use]
    pub fn divided_by(self, parts: u64) -> Self {
        Self(round_half_up(self.0, i128::from(parts.max(1))))
    }

    /// The amount with at most `digits` digits after the decimal point, rounded half up.
    #[must_use]
    pub fn rounded(self, digits: u32) -> Self {
        let unit = 10_i128.pow(u32::try_from(DIGITS).unwrap_or_default().saturating_sub(digits));
        Self(round_half_up(self.0, unit).saturating_mul(unit))
    }

    /// The amount with at most `digits` digits after the decimal point, and never less than it is.
    #[must_use]
    pub fn rounded_up(self, digits: u32) -> Self {
        let rounded = self.rounded(digits);
        let unit = Self(10_i128.pow(u32::try_from(DIGITS).unwrap_or_default().saturating_sub(digits)));
        if rounded < self { rounded + unit } else { rounded }
    }

    /// Whether the amount is below nothing: a difference.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The amount without its sign.
    #[must_use]
    pub fn absolute(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// The whole part with its thousands apart, and all digits of the fraction, but at least `digits` of them.
    #[must_use]
    pub fn grouped(self, digits: usize) -> String {
        let text = self.absolute().to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        format!("{grouped}.{fraction:0<digits$}")
    }
}

/// Rounds half away from zero.
fn round_half_up(value: i128, unit: i128) -> i128 {
    let half = unit / 2;
    (if value < 0 { value.saturating_sub(half) } else { value.saturating_add(half) }) / unit
}

impl FromStr for Money {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || Fault::new(format!("'{text}' is not an amount like 0.0416 or 60"));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let fraction = fraction.trim_end_matches('0');
        let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = (1..=MOST_WHOLE_DIGITS).contains(&whole.len()) && fraction.len() <= DIGITS;
        if !fits || !are_digits(whole) || !are_digits(fraction) || text.ends_with('.') {
            return Err(fault());
        }
        let whole: i128 = whole.parse().map_err(|_| fault())?;
        let fraction: i128 = format!("{fraction:0<DIGITS$}").parse().map_err(|_| fault())?;
        Ok(Self(whole * ONE + fraction))
    }
}

/// The shortest text: no zeros at the end.
impl fmt::Display for Money {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) =
            (self.0.unsigned_abs() / ONE.unsigned_abs(), self.0.unsigned_abs() % ONE.unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{fraction:0>DIGITS$}");
        match fraction.trim_end_matches('0') {
            "" => write!(formatter, "{sign}{whole}"),
            fraction => write!(formatter, "{sign}{whole}.{fraction}"),
        }
    }
}

impl TryFrom<String> for Money {
    type Error = Fault;

    fn try_from(text: String) -> Result<Self, Fault> {
        text.parse()
    }
}

impl From<Money> for String {
    fn from(money: Money) -> Self {
        money.to_string()
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Decimal text, so that no reader makes a binary fraction of it.
impl JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"})
    }
}

#[cfg(test)]
mod tests {
    use super::Money;

    fn money(text: &str) -> Money {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn decimal_text_is_exact_both_ways() {
        for (text, shown) in [
            ("0.0416000000", "0.0416"),
            ("60", "60"),
            ("0.0000004000", "0.0000004"),
            ("0.10", "0.1"),
            ("007.5", "7.5"),
        ] {
            assert_eq!(money(text).to_string(), shown);
        }
        // A tenth and two tenths are three tenths.
        assert_eq!(money("0.1") + money("0.2"), money("0.3"));
        for nonsense in
            ["", ".5", "5.", "1e3", "-1", "+1", "1,5", "0.0000000000001", "1234567890123", "NaN", "٣"]
        {
            assert!(nonsense.parse::<Money>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn sums_and_parts_are_rounded_half_up_and_only_when_shown() {
        let disk = money("0.08").times(100);
        assert_eq!(disk.divided_by(730).times(730).rounded(6), money("8"));
        assert_eq!(money("0.005").rounded(2), money("0.01"));
        assert_eq!(money("0.0049").rounded(2), money("0"));
        for (amount, up) in
            [("0.26", "0.26"), ("0.260000000001", "0.27"), ("0.2649", "0.27"), ("0.266", "0.27")]
        {
            assert_eq!(money(amount).rounded_up(2), money(up), "{amount}");
        }
        assert_eq!((money("1") - money("3.125")).rounded_up(2).to_string(), "-2.12");
        assert_eq!((money("1") - money("3.125")).to_string(), "-2.125");
        assert_eq!((money("1") - money("3.125")).rounded(2).to_string(), "-2.13");
        assert_eq!(money("1234567.5").grouped(2), "1,234,567.50");
        assert_eq!(money("0.0416").grouped(2), "0.0416");
    }
}
