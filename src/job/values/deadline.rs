//! Time limits as people write them.

use crate::document::Fault;

/// Seconds of a text as `90m`, `24h` or `7d`.
pub(crate) fn parse_deadline(text: &str) -> Result<u64, Fault> {
    let refuse = |reason: &str| {
        Err(Fault::new(format!("'{text}' is not a time limit: {reason}")).help("write 90m, 24h or 7d"))
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        "" => return refuse("it has no unit"),
        _ => return refuse("its unit is not s, m, h or d"),
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(0) => refuse("it is zero"),
        Some(seconds) if seconds <= 365 * 86400 => Ok(seconds),
        Some(_) => refuse("it is longer than a year"),
        None => refuse("it does not begin with a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_deadline;

    #[test]
    fn a_deadline_is_a_number_and_a_unit() {
        for (text, seconds) in [("45s", 45), ("90m", 5400), ("24h", 86400), ("7d", 604_800)] {
            assert_eq!(parse_deadline(text), Ok(seconds), "{text}");
        }
        for bad in ["", "24", "h", "1w", "0h", "-1h", "1.5h", "9999999d", "1h30m"] {
            assert!(parse_deadline(bad).is_err(), "{bad}");
        }
    }
}
