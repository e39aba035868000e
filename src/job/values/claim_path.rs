//! Paths on a claim.

use crate::config::values::checked_text;
use crate::document::Fault;

checked_text!(
    /// A path below the root of a claim, without a way out of it.
    ClaimPath,
    check_claim_path
);

impl ClaimPath {
    /// The directory it is in, empty at the root, and its last part.
    #[must_use]
    pub(crate) fn split_last(&self) -> (&str, &str) {
        self.as_str().rsplit_once('/').unwrap_or(("", self.as_str()))
    }
}

/// Paths are used in environment variables and scripts, so they contain nothing that a shell or `$(…)` would expand.
fn check_claim_path(text: &str) -> Result<(), Fault> {
    let refuse = |reason: &str| {
        Err(Fault::new(format!("'{text}' is not a path on the claim: {reason}"))
            .help("paths there are relative, as import/data.tar.gz"))
    };
    if text.is_empty() {
        return refuse("it is empty");
    }
    if text.starts_with('/') {
        return refuse("it begins with '/'");
    }
    if text.len() > 255 {
        return refuse("it has more than 255 characters");
    }
    if text.chars().any(|c| !(c.is_ascii_alphanumeric() || "-_./+@=".contains(c))) {
        return refuse("letters, digits and - _ . / + @ = are allowed");
    }
    if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("it has an empty part, '.' or '..'");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ClaimPath;
    use crate::document::Fault;

    #[test]
    fn a_path_stays_on_its_claim() -> Result<(), Fault> {
        assert_eq!("teams/a/job".parse::<ClaimPath>()?.split_last(), ("teams/a", "job"));
        assert_eq!("job".parse::<ClaimPath>()?.split_last(), ("", "job"));
        for bad in ["", "/job", "a//b", "../other", "a/..", "a b", "a$(b)", "a'b"] {
            assert!(bad.parse::<ClaimPath>().is_err(), "{bad}");
        }
        Ok(())
    }
}
