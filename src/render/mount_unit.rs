//! The name of a mount unit.

/// The name that systemd requires for the mount unit of a path.
pub(super) fn mount_unit(path: &str) -> String {
    let escape = |part: &str| {
        part.char_indices()
            .map(|(index, c)| match c {
                '.' if index == 0 => "\\x2e".to_owned(),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | ':' => c.to_string(),
                other => format!("\\x{:02x}", u32::from(other)),
            })
            .collect::<String>()
    };
    let parts: Vec<String> = path.trim_matches('/').split('/').map(escape).collect();
    format!("{}.mount", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::mount_unit;

    #[test]
    fn mount_units_are_named_as_systemd_escapes_paths() {
        assert_eq!(mount_unit("/mnt/efs"), "mnt-efs.mount");
        assert_eq!(mount_unit("/srv/my-data/v1.0"), "srv-my\\x2ddata-v1.0.mount");
    }
}
