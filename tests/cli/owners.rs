//! Who owns the credentials, and what a careless umask opens to others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::support::{Outcome, Workspace};

const SOMEONE_ELSE: u32 = 65534;

/// Only root can give files away; to everyone else the operating system refuses what is tested here.
fn is_root(workspace: &Workspace) -> bool {
    workspace.write("probe", "");
    chown(workspace.path("probe"), Some(SOMEONE_ELSE), None).is_ok()
}

fn names_in(workspace: &Workspace) -> Vec<String> {
    let names = fs::read_dir(workspace.path("credentials")).unwrap();
    names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn credentials_in_another_users_directory_are_refused() {
    let workspace = Workspace::with_cluster();
    if !is_root(&workspace) {
        return;
    }
    fs::create_dir(workspace.path("credentials")).unwrap();
    chown(workspace.path("credentials"), Some(SOMEONE_ELSE), None).unwrap();
    for command in [&["render", "--generate-ca"][..], &["render", "stack"], &["kubeconfig"]] {
        let run = Outcome::of(workspace.infra_command().args(command)).expect_code(1);
        let refusal = "error: credentials belongs to another user (uid 65534), not to you (uid 0)\n\
                       help: the owner can replace keys: run infra as that user, or check every file in it and make them your own with `chown`\n";
        assert!(run.stderr.contains(refusal), "{}", run.stderr);
    }
    assert_eq!(names_in(&workspace), [""; 0]);
}

#[test]
fn an_authority_that_someone_else_planted_is_refused() {
    let workspace = Workspace::with_credentials();
    if !is_root(&workspace) {
        return;
    }
    for name in ["ca.pem", "ca-key.pem", "secrets-encryption.key"] {
        chown(workspace.credential(name), Some(SOMEONE_ELSE), None).unwrap();
        for command in [&["render", "credentials"][..], &["render", "stack"]] {
            let run = Outcome::of(workspace.infra_command().args(command)).expect_code(1);
            let refusal = format!(
                "error: credentials/{name} belongs to another user (uid 65534), not to you (uid 0)\n"
            );
            assert!(run.stderr.contains(&refusal), "{}", run.stderr);
        }
        assert!(!workspace.path("userdata").exists());
        chown(workspace.credential(name), Some(0), None).unwrap();
    }
    workspace.infra(["render", "stack"]).expect_code(0);
}

#[test]
fn the_operating_system_keeps_a_user_out_of_another_users_credentials() {
    let workspace = Workspace::with_credentials();
    if !is_root(&workspace) {
        return;
    }
    let copy = workspace.path("infra");
    Outcome::of(Command::new("cp").arg(env!("CARGO_BIN_EXE_infra")).arg(&copy)).expect_code(0);
    fs::set_permissions(workspace.root(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(workspace.path("credentials"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).args(["render", "stack"]);
    let run = Outcome::of(command.current_dir(workspace.root())).expect_code(1);
    run.expect_stderr("cannot open credentials/.lock: Permission denied");
}

#[test]
fn a_careless_umask_opens_nothing_to_others() {
    let workspace = Workspace::with_cluster();
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" render --generate-ca", env!("CARGO_BIN_EXE_infra")]);
    Outcome::of(command.current_dir(workspace.root())).expect_code(0);
    for (name, mode) in [
        ("stacks", 0o755),
        ("manifests", 0o755),
        ("userdata", 0o700),
        ("credentials", 0o700),
        ("credentials/.lock", 0o600),
        ("credentials/ca.pem", 0o644),
        ("credentials/ca-key.pem", 0o600),
        ("kubeconfig", 0o600),
        ("stacks/network.json", 0o644),
        ("userdata/controller.ign", 0o600),
    ] {
        assert_eq!(workspace.mode(name), mode, "{name}");
    }
}

#[test]
fn certificates_that_others_can_write_are_closed() {
    let workspace = Workspace::with_credentials();
    fs::set_permissions(workspace.credential("ca.pem"), fs::Permissions::from_mode(0o666)).unwrap();
    workspace.infra(["render", "stack"]).expect_code(0);
    assert_eq!(workspace.mode("credentials/ca.pem"), 0o644);
}
