//! AWS tags that a team puts on everything.

use super::checked_text;
use crate::document::Fault;
use crate::well_known::OWN_TAG_PREFIX;

checked_text!(
    /// A tag's key.
    TagKey,
    check_tag_key
);

checked_text!(
    /// A tag's value; may be empty.
    TagValue,
    |text: &str| check_characters(text, "value", 256)
);

/// Keys that AWS, Kubernetes or this program give a meaning to, with the reason why a team cannot use them.
const RESERVED: [(&str, &str); 5] = [
    ("aws:", "AWS keeps it for itself"),
    (OWN_TAG_PREFIX, "it marks what belongs to a cluster, and destroy relies on it"),
    ("kubernetes.io/", "on every resource it would make the cloud controller manager refuse the cluster"),
    ("k8s.io/", "the cluster autoscaler reads its settings from it"),
    ("Name", "machines and disks are named by their role"),
];

fn check_tag_key(text: &str) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(Fault::new("a tag's key is empty"));
    }
    for (reserved, reason) in RESERVED {
        let taken = if reserved.ends_with([':', '/']) {
            text.to_lowercase().starts_with(reserved)
        } else {
            text == reserved
        };
        if taken {
            return Err(Fault::new(format!("the tag '{text}' is reserved: {reason}")));
        }
    }
    check_characters(text, "key", 128)
}

fn check_characters(text: &str, what: &str, longest: usize) -> Result<(), Fault> {
    if text.chars().count() > longest {
        return Err(Fault::new(format!(
            "a tag's {what} has {} characters, AWS allows {longest}",
            text.chars().count()
        )));
    }
    let allowed = |c: &char| c.is_alphanumeric() || *c == ' ' || "_.:/=+-@".contains(*c);
    match text.chars().find(|c| !allowed(c)) {
        Some(bad) => Err(Fault::new(format!("the tag {what} '{text}' has a {bad:?} in it"))
            .help("AWS allows letters, digits, spaces and _ . : / = + - @")),
        None => Ok(()),
    }
}
