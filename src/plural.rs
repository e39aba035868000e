//! Counts with their nouns, for every text that a user reads.

use std::fmt::Display;

/// A count and its noun: `1 file`, `2 files`.
#[must_use]
pub(crate) fn count_of<Number: Copy + Display + PartialEq + From<u8>>(count: Number, noun: &str) -> String {
    format!("{count} {}", noun_for(count, noun))
}

/// The noun that stands beside a count: `file` beside 1, `files` beside 2.
#[must_use]
pub(crate) fn noun_for<Number: Copy + PartialEq + From<u8>>(count: Number, noun: &str) -> String {
    let ending = if count == Number::from(1) { "" } else { "s" };
    format!("{noun}{ending}")
}

/// Counts of what was done, without those that are zero: "3 written, 11 unchanged".
#[must_use]
pub(crate) fn list_counts(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{count_of, list_counts};

    #[test]
    fn a_noun_is_singular_only_after_one() {
        assert_eq!([0_usize, 1, 2].map(|count| count_of(count, "file")), ["0 files", "1 file", "2 files"]);
    }

    #[test]
    fn counts_of_zero_are_left_out() {
        assert_eq!(
            list_counts(&[(3, "written"), (0, "deleted"), (11, "unchanged")]),
            "3 written, 11 unchanged"
        );
        assert_eq!(list_counts(&[(0, "written"), (0, "deleted")]), "");
    }
}
