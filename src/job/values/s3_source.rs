//! Data in S3: an object or what is below a prefix.

use std::fmt;
use std::str::FromStr;

use super::archive_name::is_archive;
use crate::config::values::S3Uri;
use crate::document::Fault;

const SCHEME: &str = "s3://";
/// S3's own limit.
const LONGEST_KEY: usize = 1024;

/// A bucket, and the key of an object or of a directory in it; an empty key is the whole bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct S3Source {
    bucket: String,
    key: String,
}

impl S3Source {
    /// Whether a URL is about S3.
    #[must_use]
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The bucket.
    #[must_use]
    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key of the object, if it may be one.
    #[must_use]
    pub(crate) fn object_key(&self) -> Option<&str> {
        (!self.key.is_empty() && !self.key.ends_with('/')).then_some(self.key.as_str())
    }

    /// Whether it is an archive, which is unpacked.
    #[must_use]
    pub(crate) fn is_archive(&self) -> bool {
        self.object_key().is_some_and(is_archive)
    }

    /// What the keys of the objects in the directory begin with.
    #[must_use]
    pub(crate) fn key_prefix(&self) -> String {
        if self.object_key().is_some() { format!("{}/", self.key) } else { self.key.clone() }
    }
}

impl FromStr for S3Source {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refuse = |reason: String| {
            Err(Fault::new(format!("'{text}' cannot be fetched: {reason}"))
                .help("write s3://bucket/data.tar.gz for an object, s3://bucket/data/ for what is below it"))
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // The rules of a bucket's name are the same everywhere.
        format!("{SCHEME}{bucket}").parse::<S3Uri>()?;
        if key.len() > LONGEST_KEY {
            return refuse(format!("a key has at most {LONGEST_KEY} bytes"));
        }
        if key.contains(['*', '?', '[']) {
            return refuse("patterns are not understood".to_owned());
        }
        // The kubelet puts other variables in place of `$(…)`.
        if let Some(bad) = key.chars().find(|c| !c.is_ascii_graphic() || "\"'<>\\^`{|}$#".contains(*c)) {
            return refuse(format!("the key has a {bad:?} in it"));
        }
        let directory = key.strip_suffix('/').unwrap_or(key);
        if !key.is_empty() && directory.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("the key has an empty part, '.' or '..'".to_owned());
        }
        Ok(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

impl fmt::Display for S3Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::S3Source;
    use crate::document::Fault;

    #[test]
    fn a_slash_at_the_end_says_that_it_is_no_object() -> Result<(), Fault> {
        let parse = |text: &str| text.parse::<S3Source>();
        let either = parse("s3://bucket/sets/dt=2024-01-01")?;
        assert_eq!(
            (either.bucket(), either.object_key(), either.key_prefix().as_str()),
            ("bucket", Some("sets/dt=2024-01-01"), "sets/dt=2024-01-01/")
        );
        assert_eq!(either.to_string(), "s3://bucket/sets/dt=2024-01-01");
        let directory = parse("s3://bucket/sets/")?;
        assert_eq!((directory.object_key(), directory.key_prefix().as_str()), (None, "sets/"));
        for whole in ["s3://bucket", "s3://bucket/"] {
            assert_eq!((parse(whole)?.object_key(), parse(whole)?.key_prefix().as_str()), (None, ""));
        }
        for bad in
            ["s3://", "s3://b/x", "s3://Bucket/x", "s3://bucket//x", "s3://bucket/../x", "s3://bucket/$(x)"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
