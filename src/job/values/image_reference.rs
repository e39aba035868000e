//! References of container images.

use crate::config::values::checked_text;
use crate::document::Fault;

checked_text!(
    /// An image: an optional registry, a repository, an optional tag and an optional digest.
    ImageReference,
    check_image
);

/// A private registry of AWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EcrRegistry<'a> {
    /// The account it belongs to.
    pub account: &'a str,
    /// The region it is in.
    pub region: &'a str,
    /// Whether it is in one of China's partitions.
    pub in_china: bool,
}

impl ImageReference {
    /// Whether what it names today may be something else tomorrow.
    #[must_use]
    pub(crate) fn is_floating(&self) -> bool {
        let (name, digest) =
            self.as_str().split_once('@').map_or((self.as_str(), ""), |(name, digest)| (name, digest));
        let last = name.rsplit('/').next().unwrap_or(name);
        digest.is_empty()
            && last
                .split_once(':')
                .is_none_or(|(_, tag)| tag.split(['-', '_', '.']).any(|part| part == "latest"))
    }

    /// The registry, if it is a private one of AWS.
    #[must_use]
    pub(crate) fn ecr(&self) -> Option<EcrRegistry<'_>> {
        let host = self.as_str().split('/').next()?;
        let (account, rest) = host.split_once(".dkr.ecr.")?;
        let (region, in_china) = match rest.strip_suffix(".amazonaws.com.cn") {
            Some(region) => (region, true),
            None => (rest.strip_suffix(".amazonaws.com")?, false),
        };
        Some(EcrRegistry { account, region, in_china })
    }
}

fn check_image(text: &str) -> Result<(), Fault> {
    let refuse = |reason: String| {
        Err(Fault::new(format!("'{text}' is not an image: {reason}"))
            .help("write it as registry.example.com/team/paddle:0.11-gpu"))
    };
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    if let Some(digest) = digest {
        let hexadecimal = digest.strip_prefix("sha256:").unwrap_or_default();
        if hexadecimal.len() != 64
            || !hexadecimal.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        {
            return refuse("its digest must be sha256: and 64 hexadecimal digits".to_owned());
        }
    }
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    if let Some(tag) = tag {
        let good = (1..=128).contains(&tag.len())
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !tag.starts_with(['-', '.']);
        if !good {
            return refuse(format!("'{tag}' cannot be a tag"));
        }
    }
    if path.is_empty() {
        return refuse("it names no repository".to_owned());
    }
    if path.contains("://") {
        return refuse("it is a URL; leave the part up to '//' out".to_owned());
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 1 && (parts[0].contains(['.', ':']) || parts[0] == "localhost") {
        let host = parts.remove(0);
        if !host.chars().all(|c| c.is_ascii_alphanumeric() || "-.:".contains(c)) {
            return refuse(format!("'{host}' cannot be a registry"));
        }
    }
    for part in parts {
        if let Some(bad) = part.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.')) {
            return refuse(format!("its repository has a {bad:?} in it"));
        }
        let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !part.starts_with(is_edge) || !part.ends_with(is_edge) {
            return refuse("each part of its repository begins and ends with a letter or digit".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{EcrRegistry, ImageReference};
    use crate::document::Fault;

    #[test]
    fn good_references_are_taken_and_bad_ones_are_not() {
        let digest = format!("debian@sha256:{}", "a".repeat(64));
        for good in [
            "debian",
            "debian:12-slim",
            "tensorflow/tensorflow:2.16.1-gpu",
            "localhost:5000/a/b:c",
            "r.example.com/a",
            &digest,
        ] {
            assert!(good.parse::<ImageReference>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "Debian",
            "a b",
            "a:",
            "a:b:c",
            "https://r/a",
            "a/",
            "/a",
            "a@sha256:1",
            "r.example.com:x/_a",
            "a:-b",
        ] {
            assert!(bad.parse::<ImageReference>().is_err(), "{bad}");
        }
    }

    #[test]
    fn moving_tags_and_registries_of_aws_are_recognised() -> Result<(), Fault> {
        for (text, floating) in [
            ("a", true),
            ("a:latest", true),
            ("r:5000/a", true),
            ("r:5000/a:1", false),
            ("a:1", false),
            ("a:gpu-latest", true),
            ("a:latest-gpu", true),
            ("a:nightly_latest", true),
            ("latest/a:1", false),
            ("a:latestbuild-1", false),
        ] {
            assert_eq!(text.parse::<ImageReference>()?.is_floating(), floating, "{text}");
        }
        let image: ImageReference = "111122223333.dkr.ecr.us-west-2.amazonaws.com/paddle:1".parse()?;
        assert_eq!(
            image.ecr(),
            Some(EcrRegistry { account: "111122223333", region: "us-west-2", in_china: false })
        );
        assert_eq!("debian:12".parse::<ImageReference>()?.ecr(), None);
        Ok(())
    }
}
