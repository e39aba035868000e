//! An S3 URI: a bucket and a prefix.

use std::fmt;
use std::str::FromStr;

use crate::document::Fault;

/// A bucket and a prefix in it: `s3://bucket/prefix`, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Uri {
    bucket: String,
    prefix: String,
}

impl S3Uri {
    /// A placeholder for a stack that is only measured, when no bucket is known yet.
    #[must_use]
    pub fn placeholder() -> Self {
        Self { bucket: "unknown".to_owned(), prefix: String::new() }
    }

    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key prefix; empty for the bucket itself.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The prefix of every key: empty, or the prefix and a slash.
    #[must_use]
    pub fn key_prefix(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) }
    }
}

impl FromStr for S3Uri {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refuse = |reason: String| Err(Fault::new(format!("'{text}' is not an S3 URI: {reason}")));
        let Some(rest) = text.strip_prefix("s3://") else {
            return Err(
                Fault::new(format!("'{text}' is not an S3 URI")).help("it looks like s3://bucket/prefix")
            );
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if !(3..=63).contains(&bucket.len()) {
            return refuse(format!(
                "a bucket's name has 3 to 63 characters, '{bucket}' has {}",
                bucket.len()
            ));
        }
        if let Some(bad) = bucket.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '.')) {
            return refuse(format!(
                "the bucket's name has a {bad:?} in it; lower-case letters, digits, '-' and '.' are allowed"
            ));
        }
        if !bucket.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !bucket.ends_with(|c: char| c.is_ascii_alphanumeric())
        {
            return refuse("a bucket's name begins and ends with a letter or digit".to_owned());
        }
        if bucket.contains("..") || bucket.parse::<std::net::Ipv4Addr>().is_ok() {
            return refuse("a bucket's name has no two dots in a row and is not an address".to_owned());
        }
        if let Some(bad) = prefix.chars().find(|c| !(c.is_ascii_alphanumeric() || "!_.*'()/-".contains(*c))) {
            return refuse(format!("the prefix has a {bad:?} in it"));
        }
        if !prefix.is_empty() && prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("the prefix has an empty part, '.' or '..'".to_owned());
        }
        // Leaves room in S3's 1024 bytes for `/<cluster>/<role>/<sha>.ign`.
        if prefix.len() > 512 {
            return refuse("the prefix has more than 512 characters".to_owned());
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for S3Uri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(formatter, "s3://{}{slash}{}", self.bucket, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::S3Uri;

    #[test]
    fn a_slash_at_the_end_of_an_s3_uri_is_ignored() -> Result<(), crate::document::Fault> {
        assert_eq!("s3://bucket/a/b/".parse::<S3Uri>()?.to_string(), "s3://bucket/a/b");
        assert_eq!("s3://bucket/".parse::<S3Uri>()?.to_string(), "s3://bucket");
        Ok(())
    }
}
