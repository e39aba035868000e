//! `infra render credentials --rotate` and `--retire`: what each step writes, what controllers get from it, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::{Outcome, Workspace, files_in};

const BOTH: [&str; 6] =
    ["render", "credentials", "--rotate", "service-account", "--rotate", "secrets-encryption"];
const KEYS_IN_USE: &str = "credentials/keys-in-use.txt";

type Files = BTreeMap<String, Vec<u8>>;

fn credentials(workspace: &Workspace) -> Files {
    files_in(&workspace.path("credentials")).into_iter().filter(|(name, _)| name != ".lock").collect()
}

/// The names of files that are new.
fn added<'a>(before: &Files, after: &'a Files) -> Vec<&'a str> {
    for (name, bytes) in before.iter().filter(|(name, _)| *name != "keys-in-use.txt") {
        assert_eq!(after.get(name), Some(bytes), "{name} was changed or deleted");
    }
    after.keys().filter(|name| !before.contains_key(*name)).map(String::as_str).collect()
}

/// What controllers boot with: the files of their config, by path.
fn controller_files(workspace: &Workspace) -> BTreeMap<String, String> {
    workspace.infra(["render", "stack"]).expect_code(0);
    let config: Value = serde_json::from_str(&workspace.read("userdata/controller.ign")).unwrap();
    let files = config["storage"]["files"].as_array().unwrap().iter();
    let text = |file: &Value| {
        let encoded = file["contents"]["source"].as_str()?.strip_prefix("data:;base64,")?;
        Some(String::from_utf8_lossy(&STANDARD.decode(encoded).unwrap()).into_owned())
    };
    files.filter_map(|file| Some((file["path"].as_str()?.to_owned(), text(file)?))).collect()
}

/// The keys that tokens are accepted of, and the one that signs: by the flags of the API server and of the controller manager.
fn token_keys(files: &BTreeMap<String, String>) -> (Vec<String>, String, String) {
    let values = |pod: &str, flag: &str| -> Vec<String> {
        let text = &files[&format!("/opt/infra/static-pods/{pod}.yaml")];
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(&format!("- --{flag}=")));
        lines.map(|path| path.trim_start_matches("/etc/kubernetes/pki/").to_owned()).collect()
    };
    let accepted = values("kube-apiserver", "service-account-key-file");
    let signing = values("kube-apiserver", "service-account-signing-key-file").concat();
    (accepted, signing, values("kube-controller-manager", "service-account-private-key-file").concat())
}

fn held_keys(files: &BTreeMap<String, String>) -> Vec<&str> {
    let names = files.keys().filter_map(|path| path.strip_prefix("/etc/kubernetes/pki/"));
    names.filter(|name| name.starts_with("service-account")).collect()
}

/// The names and the bytes of the keys in the configuration of encryption, in their order.
fn encryption_keys(files: &BTreeMap<String, String>) -> Vec<(String, Vec<u8>)> {
    let text = &files["/etc/kubernetes/encryption.yaml"];
    assert!(!text.contains(['@', '%']), "{text}");
    let value =
        |line: &str, key: &str| line.trim().strip_prefix(key).map(|value| value.trim_matches('"').to_owned());
    let names = text.lines().filter_map(|line| value(line, "- name: "));
    let secrets = text.lines().filter_map(|line| value(line, "secret: "));
    names.zip(secrets).map(|(name, secret)| (name, STANDARD.decode(secret).unwrap())).collect()
}

#[test]
fn each_step_changes_what_controllers_sign_with_and_accept_and_no_file_of_a_key() {
    let workspace = Workspace::with_credentials();
    let first = credentials(&workspace);
    let key = |name: &str| fs::read(workspace.credential(name)).unwrap();
    let one = ("key1".to_owned(), key("secrets-encryption.key"));
    let files = controller_files(&workspace);
    assert_eq!(encryption_keys(&files), vec![one.clone()]);
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (old, new) = ("service-account-key.pem".to_owned(), "service-account-2-key.pem".to_owned());
    assert_eq!(token_keys(&files), (strings(&["service-account.pem"]), old.clone(), old.clone()));

    // Step 1: all accept the new keys, none uses them yet.
    let run = workspace.infra(BOTH).expect_code(0);
    run.expect_stderr("created    service-account-2\n")
        .expect_stderr("created    secrets-encryption-2.key\n")
        .expect_stderr(
            "rotation of service-account, step 1 of 2: run `infra up`, then `infra render credentials --rotate service-account` again",
        );
    let second = credentials(&workspace);
    assert_eq!(
        added(&first, &second),
        ["keys-in-use.txt", "secrets-encryption-2.key", "service-account-2-key.pem", "service-account-2.pem"]
    );
    for name in ["secrets-encryption-2.key", "service-account-2-key.pem", "keys-in-use.txt"] {
        assert_eq!(workspace.mode(&format!("credentials/{name}")), 0o600, "{name}");
    }
    assert_ne!(second["service-account-2-key.pem"], second["service-account-key.pem"]);
    assert!(
        workspace
            .read(KEYS_IN_USE)
            .ends_with("service-account: current 1, next 2\nsecrets-encryption: current 1, next 2\n")
    );
    let two = ("key2".to_owned(), key("secrets-encryption-2.key"));
    assert_ne!(one.1, two.1);
    let files = controller_files(&workspace);
    assert_eq!(encryption_keys(&files), [one.clone(), two.clone()]);
    let accepted = strings(&["service-account.pem", "service-account-2.pem"]);
    assert_eq!(token_keys(&files), (accepted, old.clone(), old));
    // A machine gets no private key before it signs with it.
    assert_eq!(
        held_keys(&files),
        ["service-account-2.pem", "service-account-key.pem", "service-account.pem"]
    );
    assert_eq!(
        files["/etc/kubernetes/pki/service-account-2.pem"],
        workspace.read("credentials/service-account-2.pem")
    );

    // What is in the middle of a rotation is kept, and said.
    let run = workspace.infra(["render", "credentials"]).expect_code(0);
    run.expect_stderr("rotation of secrets-encryption, step 1 of 2");
    assert_eq!(credentials(&workspace), second);

    // Step 2: the new keys are used, the old ones still accepted.
    let run = workspace.infra(BOTH).expect_code(0);
    run.expect_stderr("rotation of secrets-encryption, step 2 of 2: run `infra up`")
        .expect_stderr("`infra render credentials --retire secrets-encryption`");
    let third = credentials(&workspace);
    assert_eq!(added(&second, &third), [""; 0]);
    let files = controller_files(&workspace);
    assert_eq!(encryption_keys(&files), [two.clone(), one]);
    let accepted = strings(&["service-account-2.pem", "service-account.pem"]);
    assert_eq!(token_keys(&files), (accepted, new.clone(), new.clone()));
    assert_eq!(
        held_keys(&files),
        ["service-account-2-key.pem", "service-account-2.pem", "service-account.pem"]
    );

    // The end: only the new keys, and every file is still there, for snapshots from before.
    let run = workspace
        .infra([
            "render",
            "credentials",
            "--retire",
            "service-account",
            "--retire",
            "secrets-encryption",
            "--yes",
        ])
        .expect_code(0);
    assert!(!run.stderr.contains("rotation of"), "{}", run.stderr);
    assert_eq!(added(&third, &credentials(&workspace)), [""; 0]);
    let files = controller_files(&workspace);
    assert_eq!(encryption_keys(&files), [two]);
    assert_eq!(token_keys(&files), (strings(&["service-account-2.pem"]), new.clone(), new));
    assert_eq!(held_keys(&files), ["service-account-2-key.pem", "service-account-2.pem"]);

    // And again.
    workspace.infra(BOTH).expect_code(0).expect_stderr("created    service-account-3\n");
    assert!(workspace.read(KEYS_IN_USE).contains("service-account: current 2, next 3\n"));
}

#[test]
fn steps_that_would_be_wrong_are_refused_and_change_nothing() {
    let workspace = Workspace::with_credentials();
    let refused = |arguments: &[&str], code: i32, parts: &[&str]| {
        let before = credentials(&workspace);
        let run = Outcome::of(workspace.command(["render", "credentials"]).args(arguments)).expect_code(code);
        for part in parts {
            assert!(run.stderr.contains(part), "{arguments:?}: {}", run.stderr);
        }
        assert_eq!(credentials(&workspace), before, "{arguments:?}");
    };
    let both = "service-account and secrets-encryption can be rotated";
    refused(&["--rotate", "admin"], 2, &["there is no key of that name", both]);
    for authority in ["ca", "etcd-ca", "front-proxy-ca"] {
        refused(&["--rotate", authority], 2, &["authorities cannot be rotated", "rotate-keys.md", both]);
    }
    refused(&["--rotate", "service-account", "--retire", "service-account"], 2, &["cannot be used with"]);
    refused(&["--rotate", "service-account", "--replace-ca", "--generate-ca"], 2, &["cannot be used with"]);
    refused(
        &["--retire", "secrets-encryption"],
        1,
        &["secrets-encryption has no previous key", "--rotate secrets-encryption` begins a rotation"],
    );

    // Named twice is one step.
    workspace
        .infra(["render", "credentials", "--rotate", "service-account", "--rotate", "service-account"])
        .expect_code(0);
    assert!(workspace.read(KEYS_IN_USE).contains("service-account: current 1, next 2\n"));
    refused(
        &["--retire", "service-account", "--yes"],
        1,
        &["service-account has no previous key", "only step 1 of its rotation is done"],
    );
    workspace.infra(["render", "credentials", "--rotate", "service-account"]).expect_code(0);
    refused(
        &["--rotate", "service-account", "--rotate", "secrets-encryption"],
        1,
        &["the last rotation of service-account has not ended", "--retire service-account`, then `infra up`"],
    );
    // Tokens would be refused: that is asked.
    refused(
        &["--retire", "service-account"],
        1,
        &["tokens that the previous key signed are refused", "--yes"],
    );
}

#[test]
fn a_key_in_use_that_is_lost_is_never_replaced_by_another() {
    let workspace = Workspace::with_credentials();
    workspace.infra(BOTH).expect_code(0);
    for name in ["service-account-2-key.pem", "secrets-encryption-2.key"] {
        let (path, aside) = (workspace.credential(name), workspace.path("aside"));
        fs::rename(&path, &aside).unwrap();
        let run = workspace.infra(["render", "credentials"]).expect_code(1);
        run.expect_stderr(&format!("{name} does not exist, but keys-in-use.txt says that it is in use"))
            .expect_stderr("restore it from a backup");
        assert!(!path.exists());
        fs::rename(&aside, &path).unwrap();
    }
    // A copy without the file that says which keys are in use does not write over keys either.
    let before = credentials(&workspace);
    fs::remove_file(workspace.path(KEYS_IN_USE)).unwrap();
    workspace.infra(BOTH).expect_code(0).expect_stderr("created    service-account-3\n");
    added(&before, &credentials(&workspace));
    workspace.write(KEYS_IN_USE, "service-account: current 1, then 2\n");
    let run = workspace.infra(["render"]).expect_code(1);
    run.expect_stderr("keys-in-use.txt has an unknown line: 'service-account: current 1, then 2'");
}

#[test]
fn a_template_of_the_teams_own_cannot_leave_a_key_out() {
    let workspace = Workspace::with_credentials();
    fs::create_dir_all(workspace.path("templates/files/etc/kubernetes")).unwrap();
    let path = "templates/files/etc/kubernetes/encryption.yaml.tera";
    workspace.write(path, "keys: [\"{{ secrets_encryption_keys[0].secret }}\"]\n");
    workspace.infra(["render", "stack"]).expect_code(0);
    workspace.infra(BOTH).expect_code(0);
    let run = workspace.infra(["render", "stack"]).expect_code(2);
    run.expect_stderr("encryption.yaml has an unexpected shape: it does not have every key");
}

#[test]
fn certificates_can_be_renewed_in_the_same_run() {
    let workspace = Workspace::with_credentials();
    let before = credentials(&workspace);
    workspace.infra(["render", "credentials", "--renew", "--rotate", "service-account"]).expect_code(0);
    let after = credentials(&workspace);
    assert_ne!(after["admin.pem"], before["admin.pem"]);
    assert_eq!(after["service-account-key.pem"], before["service-account-key.pem"]);
    assert!(workspace.read(KEYS_IN_USE).contains("service-account: current 1, next 2\n"));
}

/// The number of moments that are tried, spread over one and a half runs.
const SWEEP: u32 = 30;

/// Whatever moment a run is killed at, the keys that are in use exist, and none is changed.
#[test]
fn a_killed_rotation_has_taken_its_step_or_none() {
    let workspace = Workspace::with_credentials();
    let started = Instant::now();
    workspace.infra(["render", "credentials"]).expect_code(0);
    let mut whole = started.elapsed();
    let (mut taken, mut killed, mut round) = (0, 0, 0_u32);
    while round < SWEEP * 2 || killed <= 5 || taken <= 2 {
        assert!(round < SWEEP * 20, "{killed} of {round} runs were killed, {taken} steps taken");
        // How long a run takes depends on what else the machine does: a sweep that took no step was too short, one that killed no run too
        // long.
        if round > 0 && round.is_multiple_of(SWEEP) && taken <= 2 {
            whole *= 2;
        } else if round > 0 && round.is_multiple_of(SWEEP) && killed <= 5 {
            whole /= 2;
        }
        let before = credentials(&workspace);
        let in_use = fs::read_to_string(workspace.path(KEYS_IN_USE)).unwrap_or_default();
        let step = if in_use.contains("previous") { "--retire" } else { "--rotate" };
        let arguments = [step, "service-account", step, "secrets-encryption", "--yes"];
        let mut child = workspace
            .command(["render", "credentials"])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round % SWEEP) / 20.0));
        round += 1;
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let now = fs::read_to_string(workspace.path(KEYS_IN_USE)).unwrap_or_default();
        taken += u32::from(now != in_use);
        added(&before, &credentials(&workspace));
        let lines: Vec<&str> =
            now.lines().filter_map(|line| line.split_once(": ")).map(|(_, set)| set).collect();
        assert!(lines.is_empty() || lines.len() == 2, "{now}");
        let words = |set: &str| {
            set.split(", ").filter_map(|part| part.split(' ').next()).collect::<Vec<_>>().join(" ")
        };
        assert!(lines.windows(2).all(|pair| words(pair[0]) == words(pair[1])), "both or none: {now}");
        workspace.infra(["render", "credentials"]).expect_code(0);
    }
}
