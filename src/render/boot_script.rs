//! The user data of machines that do not read Ignition configs: a script that fetches the machine's archive and hands over to it.

/// The script, in which the words between `@` are replaced. It has no `${` of its own, which CloudFormation would take for a value.
const SCRIPT: &str = include_str!("boot_script.sh");

/// The script for an archive with this key after the prefix, and this SHA-512.
pub(super) fn boot_script(key: &str, digest: &str, stack_environment: &str) -> String {
    SCRIPT
        .replace("@KEY@", key)
        .replace("@DIGEST@", digest)
        .replace("@STACK_ENVIRONMENT@\n", stack_environment)
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, boot_script};

    #[test]
    fn cloudformation_finds_its_own_values_only() {
        assert!(!SCRIPT.contains("${"), "CloudFormation would replace it");
        let script = boot_script("a/pool-b/12.tar", "12", "INFRA_REGION=${AWS::Region}\n");
        assert!(script.starts_with("#!/bin/bash\n"), "cloud-init would not run it");
        assert_eq!(script.matches("${").count(), 1);
        assert!(!script.contains('@'), "{script}");
    }
}
