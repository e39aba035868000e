//! Sizes as people say them.

use crate::plural::count_of;

const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// A size as people say it.
#[must_use]
pub(crate) fn bytes_in_words(bytes: u64) -> String {
    for (unit, name) in UNITS {
        if bytes >= unit {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                part => format!("{}.{part} {name}", tenths / 10),
            };
        }
    }
    count_of(bytes, "byte")
}

#[cfg(test)]
mod tests {
    use super::bytes_in_words;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1 << 10, "1 KiB"),
            (1536, "1.5 KiB"),
            (600_029, "585.9 KiB"),
            (12_000_000, "11.4 MiB"),
            (2 << 30, "2 GiB"),
        ] {
            assert_eq!(bytes_in_words(bytes), words);
        }
    }
}
