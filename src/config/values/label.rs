//! Kubernetes label keys and values, which are also those of taints.

use super::checked_text;
use crate::document::Fault;
use crate::well_known::AUTOSCALER_LABEL_PREFIX;

/// The most characters of an AWS tag key, which is also where the autoscaler reads the labels of an empty pool from.
const LONGEST_TAG_KEY: usize = 128;

checked_text!(
    /// A label's or taint's key: an optional DNS prefix and a name.
    LabelKey,
    check_label_key
);

checked_text!(
    /// A label's or taint's value; may be empty.
    LabelValue,
    check_label_value
);

impl LabelKey {
    /// The part before the slash, if there is one.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.as_str().split_once('/').map(|(prefix, _)| prefix)
    }

    /// Whether the prefix is `domain` or a name below it.
    #[must_use]
    pub fn is_under(&self, domain: &str) -> bool {
        let below = |prefix: &str| {
            prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.prefix().is_some_and(below)
    }
}

fn check_label_key(text: &str) -> Result<(), Fault> {
    let refuse = |reason: &str| Err(Fault::new(format!("'{text}' is not a label key: {reason}")));
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix {
        let good_part = |part: &str| {
            !part.is_empty()
                && part.len() <= 63
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        if prefix.len() > 253 || !prefix.split('.').all(good_part) {
            return refuse("the part before '/' must be a DNS name in lower case");
        }
    }
    if let Some(reason) = fault_of_word(name, "the name") {
        return refuse(&reason);
    }
    let longest = LONGEST_TAG_KEY - AUTOSCALER_LABEL_PREFIX.len();
    if text.len() > longest {
        return refuse(&format!(
            "it has {} characters; the autoscaler's AWS tag for it leaves room for {longest}",
            text.len()
        ));
    }
    Ok(())
}

fn check_label_value(text: &str) -> Result<(), Fault> {
    if text.is_empty() {
        return Ok(());
    }
    match fault_of_word(text, "it") {
        Some(reason) => Err(Fault::new(format!("'{text}' is not a label value: {reason}"))),
        None => Ok(()),
    }
}

/// The rule that label names and values share.
fn fault_of_word(text: &str, what: &str) -> Option<String> {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    if text.is_empty() || text.len() > 63 {
        return Some(format!("{what} must have 1 to 63 characters"));
    }
    if let Some(bad) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_.".contains(*c))) {
        return Some(format!("{what} has a {bad:?} in it; letters, digits, '-', '_' and '.' are allowed"));
    }
    if !text.starts_with(is_edge) || !text.ends_with(is_edge) {
        return Some(format!("{what} must begin and end with a letter or digit"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{LabelKey, LabelValue};

    #[test]
    fn a_domain_covers_itself_and_what_is_below() -> Result<(), crate::document::Fault> {
        assert!("kubernetes.io/os".parse::<LabelKey>()?.is_under("kubernetes.io"));
        assert!("node.kubernetes.io/x".parse::<LabelKey>()?.is_under("kubernetes.io"));
        assert!(!"mykubernetes.io/x".parse::<LabelKey>()?.is_under("kubernetes.io"));
        assert!("".parse::<LabelValue>().is_ok());
        Ok(())
    }
}
