//! Paths in a container.

use crate::config::values::checked_text;
use crate::document::Fault;

checked_text!(
    /// An absolute path in a container, without a way out of the directory that it names.
    ContainerPath,
    check_container_path
);

/// Kubernetes expands `$(…)` in nothing that a path is used for, but splits mounts at a colon.
fn check_container_path(text: &str) -> Result<(), Fault> {
    let refuse = |reason: &str| {
        Err(Fault::new(format!("'{text}' is not a path in a container: {reason}"))
            .help("paths there are absolute, as /root/demo/output"))
    };
    if !text.starts_with('/') {
        return refuse("it does not begin with '/'");
    }
    if text.len() > 255 {
        return refuse("it has more than 255 characters");
    }
    if text.chars().any(|c| !(c.is_ascii_alphanumeric() || "-_./+@=".contains(c))) {
        return refuse("letters, digits and - _ . / + @ = are allowed");
    }
    if text.len() > 1 && text.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
        return refuse("it has an empty part, '.' or '..'");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ContainerPath;

    #[test]
    fn a_path_is_absolute_and_plain() {
        for good in ["/", "/root", "/root/paddle/demo/quick_start/output"] {
            assert!(good.parse::<ContainerPath>().is_ok(), "{good}");
        }
        for bad in ["", "root", "./a", "/a/../b", "/a//b", "/a/", "/a:b", "/a b"] {
            assert!(bad.parse::<ContainerPath>().is_err(), "{bad}");
        }
    }
}
