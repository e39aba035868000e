//! No key ever shows up in output, errors or logs.

use std::fs;

use crate::support::{Outcome, Workspace, files_in};

/// Every line of every private key and secret, as it would look if it leaked.
fn secrets(workspace: &Workspace) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, bytes) in files_in(&workspace.path("credentials")) {
        if name.ends_with("-key.pem") {
            let text = String::from_utf8(bytes).unwrap();
            secrets.extend(
                text.lines().filter(|line| !line.starts_with("-----")).map(|line| line.trim().to_owned()),
            );
        } else if name.ends_with(".key") {
            secrets.push(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
            secrets.push(format!("{bytes:?}"));
        }
    }
    assert!(secrets.iter().filter(|line| line.len() >= 40).count() >= 30);
    secrets
}

fn expect_silence(workspace: &Workspace, run: &Outcome, about: &str) {
    let all = format!("{}{}", run.stdout, run.stderr);
    for secret in secrets(workspace) {
        assert!(!all.contains(&secret), "{about} printed a secret:\n{all}");
    }
    assert!(!all.contains("PRIVATE KEY"), "{about}:\n{all}");
}

#[test]
fn no_command_prints_a_key_even_if_verbose_or_failing() {
    let workspace = Workspace::with_cluster();
    let verbose = |arguments: &[&str]| {
        Outcome::of(
            workspace.command(["-vv"]).args(arguments).env("INFRA_LOG", "trace").env("RUST_BACKTRACE", "1"),
        )
    };
    let made = verbose(&["render", "credentials", "--generate-ca"]).expect_code(0);
    assert!(
        made.stderr.contains("DEBUG") || made.stderr.contains("TRACE"),
        "it was not talkative:\n{}",
        made.stderr
    );
    expect_silence(&workspace, &made, "making");
    for arguments in [
        &["render", "credentials"][..],
        &["render", "credentials", "--renew", "--output", "json"],
        &["render", "stack"],
        &["render", "stack", "--output", "json"],
        &["certificates"],
        &["certificates", "--output", "json"],
        &["validate"],
        &["kubeconfig", "--merge", "merged"],
        &[
            "render",
            "credentials",
            "--ca-cert-path",
            "credentials/ca-key.pem",
            "--ca-key-path",
            "credentials/ca-key.pem",
        ],
        &[
            "render",
            "credentials",
            "--ca-cert-path",
            "credentials/ca.pem",
            "--ca-key-path",
            "credentials/admin-key.pem",
        ],
        &["-C", "credentials/ca-key.pem", "validate"],
    ] {
        expect_silence(&workspace, &verbose(arguments), &format!("{arguments:?}"));
    }
    // A key where cluster.yaml or a certificate should be, and a damaged key.
    fs::copy(workspace.credential("ca-key.pem"), workspace.path("cluster.yaml")).unwrap();
    expect_silence(&workspace, &verbose(&["validate"]), "a key as cluster.yaml");
    workspace.write("cluster.yaml", crate::support::MINIMAL);
    fs::copy(workspace.credential("ca-key.pem"), workspace.credential("ca.pem")).unwrap();
    expect_silence(&workspace, &verbose(&["render", "credentials"]).expect_code(1), "a key as certificate");
    expect_silence(&workspace, &verbose(&["certificates"]), "a key among certificates");
    let key = workspace.read("credentials/admin-key.pem");
    fs::write(workspace.credential("service-account-key.pem"), key.replace("-----END", "xx-----END"))
        .unwrap();
    expect_silence(&workspace, &verbose(&["render", "credentials"]), "a damaged key");
}
