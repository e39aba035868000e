//! Where nodes mount the shared file system.

use super::checked_text;
use crate::document::Fault;

checked_text!(
    /// An absolute directory that nothing else on a node uses.
    MountPath,
    check_mount_path
);

/// Directories that belong to the operating system or to Kubernetes; a mount would hide what is in them.
const RESERVED_DIRECTORIES: [&str; 20] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt/bin",
    "/opt/cni",
    "/opt/infra",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/log",
];

fn check_mount_path(text: &str) -> Result<(), Fault> {
    let refuse = |reason: String| {
        Err(Fault::new(format!("'{text}' cannot be the mount path: {reason}"))
            .help("the usual place is /mnt/efs"))
    };
    if !text.starts_with('/') {
        return refuse("it is not an absolute path".to_owned());
    }
    if let Some(bad) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_/.".contains(*c))) {
        return refuse(format!("it has a {bad:?} in it"));
    }
    if text.len() > 1 && text[1..].split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("it has an empty part, '.' or '..'".to_owned());
    }
    let covers = |taken: &str| text == "/" || taken == text || taken.starts_with(&format!("{text}/"));
    let below = |taken: &str| text.starts_with(&format!("{taken}/"));
    match RESERVED_DIRECTORIES.into_iter().find(|taken| covers(taken) || below(taken)) {
        Some(taken) => refuse(format!("{taken} belongs to the system")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::MountPath;

    #[test]
    fn mount_paths_of_the_system_are_refused() {
        for good in ["/mnt/efs", "/data", "/srv/shared/efs", "/opt/shared"] {
            assert!(good.parse::<MountPath>().is_ok(), "{good}");
        }
        for bad in
            ["/", "/var", "/opt", "/usr/share/efs", "/etc", "mnt/efs", "/mnt//efs", "/mnt/../etc", "/mnt/e f"]
        {
            assert!(bad.parse::<MountPath>().is_err(), "{bad}");
        }
    }
}
