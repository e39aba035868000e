//! Names people give: clusters, pools, key pairs.

use super::checked_text;
use crate::document::Fault;

/// Stack, role and host names are built from a cluster's and a pool's name and must stay within AWS's limits.
const LONGEST_NAME: usize = 31;

checked_text!(
    /// The name of a cluster: the first part of every stack name, tag and private DNS name.
    ClusterName,
    |text: &str| check_name("cluster name", text)
);

checked_text!(
    /// The name of a pool of worker machines.
    PoolName,
    |text: &str| check_name("pool name", text)
);

#[cfg(test)]
impl PoolName {
    /// A name that a test knows to be good.
    pub(crate) fn of_test(name: &str) -> Self {
        Self(name.to_owned())
    }
}

checked_text!(
    /// The name of an EC2 key pair.
    KeyName,
    check_key_name
);

fn check_name(what: &str, text: &str) -> Result<(), Fault> {
    let rule =
        "lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit";
    let refuse =
        |reason: String| Err(Fault::new(reason).help(format!("a {what} has 1 to {LONGEST_NAME} {rule}")));
    if text.is_empty() {
        return refuse(format!("the {what} is empty"));
    }
    if text.len() > LONGEST_NAME {
        return refuse(format!("the {what} '{text}' has {} characters", text.chars().count()));
    }
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return refuse(format!("the {what} '{text}' has a {bad:?} in it"));
    }
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return refuse(format!("the {what} '{text}' does not begin with a letter"));
    }
    if text.ends_with('-') {
        return refuse(format!("the {what} '{text}' ends with '-'"));
    }
    Ok(())
}

fn check_key_name(text: &str) -> Result<(), Fault> {
    if text.is_empty() || text.len() > 255 || !text.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        return Err(Fault::new(format!("'{text}' cannot be the name of an EC2 key pair"))
            .help("a key pair's name has 1 to 255 printable ASCII characters; `aws ec2 describe-key-pairs` lists yours"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ClusterName;

    #[test]
    fn the_longest_name_is_accepted_and_a_longer_one_is_not() {
        assert!("a".repeat(31).parse::<ClusterName>().is_ok());
        assert!("a".repeat(32).parse::<ClusterName>().is_err());
    }
}
