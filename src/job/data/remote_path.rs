//! A path on the claim, as a user types it.

use std::fmt;
use std::str::FromStr;

/// Where our own records are, in whatever directory.
const RECORDS: &str = ".infra";

/// A path relative to the root of a claim, without a way out of it. A slash at its end means what is in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemotePath {
    parts: Vec<String>,
    /// Whether what is in the directory is meant, not the directory with its name.
    pub is_content: bool,
}

impl RemotePath {
    /// The last part; none of the root.
    #[must_use]
    pub(crate) fn name(&self) -> Option<&str> {
        self.parts.last().map(String::as_str)
    }

    /// The path of something in it.
    #[must_use]
    pub(crate) fn join(&self, below: &str) -> String {
        let parts = self.parts.iter().map(String::as_str).chain((!below.is_empty()).then_some(below));
        parts.collect::<Vec<_>>().join("/")
    }

    /// The path as the program in the pod reads it; empty for the root.
    #[must_use]
    pub(crate) fn as_request(&self) -> String {
        self.parts.join("/")
    }

    /// Whether it is, or is in, a directory with records of ours.
    #[must_use]
    pub(crate) fn is_of_records(&self) -> bool {
        self.parts.iter().any(|part| part == RECORDS)
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.parts.is_empty() { "." } else { "" })?;
        formatter.write_str(&self.parts.join("/"))
    }
}

impl FromStr for RemotePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("it is empty; `.` means the root of the claim".to_owned());
        }
        if text.starts_with('/') {
            return Err(
                "it begins with '/'; paths on the claim are relative to its root, as import/data.tar.gz"
                    .to_owned(),
            );
        }
        if text.chars().any(char::is_control) {
            return Err("it contains a control character".to_owned());
        }
        let parts: Vec<String> =
            text.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        if parts.iter().any(|part| part == "..") {
            return Err("it contains '..', which could lead out of the claim".to_owned());
        }
        if parts.iter().any(|part| part.len() > 255) {
            return Err("a part of it has more than 255 bytes".to_owned());
        }
        let is_content = parts.is_empty() || text.ends_with('/') || text.ends_with("/.");
        Ok(Self { parts, is_content })
    }
}

#[cfg(test)]
mod tests {
    use super::RemotePath;

    #[test]
    fn a_path_stays_on_the_claim_and_may_mean_its_content() -> Result<(), String> {
        for (text, shown, is_content) in [
            ("import", "import", false),
            ("import/", "import", true),
            ("a//b/./c", "a/b/c", false),
            ("a/.", "a", true),
            (".", ".", true),
            ("./", ".", true),
        ] {
            let path: RemotePath = text.parse()?;
            assert_eq!((path.to_string().as_str(), path.is_content), (shown, is_content), "{text}");
        }
        let path: RemotePath = "a/b".parse()?;
        assert_eq!(
            (path.join("c/d").as_str(), path.join("").as_str(), path.name()),
            ("a/b/c/d", "a/b", Some("b"))
        );
        assert!("x/.infra/y".parse::<RemotePath>()?.is_of_records() && !path.is_of_records());
        for bad in ["", "/etc", "..", "a/../../b", "a\u{1b}[2J"] {
            assert!(bad.parse::<RemotePath>().is_err(), "{bad:?}");
        }
        Ok(())
    }
}
