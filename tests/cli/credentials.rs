//! `infra render credentials` and `infra certificates`: what is kept, what is created again, what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use infra::blueprint::Blueprint;
use infra::credentials::{AuthoritySource, CredentialStore, Request, ensure_credentials};
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::support::{MINIMAL, Outcome, Workspace, files_in, openssl};

const GENERATE: [&str; 3] = ["render", "credentials", "--generate-ca"];
pub const ENSURE: [&str; 2] = ["render", "credentials"];

/// Credentials as they would be if they had been created `days` ago.
fn made_days_ago(days: i64) -> Workspace {
    let workspace = Workspace::with_cluster();
    issue(&workspace, AuthoritySource::Generated, days, false);
    workspace
}

fn issue(workspace: &Workspace, authorities: AuthoritySource, days: i64, renew: bool) {
    let cluster = infra::config::load(&workspace.path("cluster.yaml")).unwrap().value;
    let blueprint = Blueprint::new(cluster).unwrap();
    let store = CredentialStore::open(&workspace.path("credentials"), || {}).unwrap();
    let now = OffsetDateTime::now_utc() - Duration::days(days);
    let request =
        Request { identities: &blueprint.identities, now, authorities, replace_authorities: false, renew };
    ensure_credentials(&store, &request).unwrap();
}

/// What was done to each identity, as JSON says it.
fn actions(run: &Outcome) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    report["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["name"]), text(&row["action"])))
        .collect()
}

fn changed(run: &Outcome) -> Vec<String> {
    actions(run).into_iter().filter(|(_, action)| action != "kept").map(|(name, _)| name).collect()
}

#[test]
fn credentials_are_created_private_and_kept_byte_for_byte() {
    let workspace = Workspace::with_credentials();
    assert_eq!(workspace.mode("credentials"), 0o700);
    assert_eq!(workspace.mode("kubeconfig"), 0o600);
    let before = files_in(&workspace.path("credentials"));
    let names: Vec<&str> =
        before.iter().map(|(name, _)| name.as_str()).filter(|name| *name != ".lock").collect();
    assert_eq!(names.len(), 15 * 2 + 2 + 1, "{names:?}");
    for name in &names {
        let secret = name.ends_with("-key.pem") || name.ends_with(".key");
        assert_eq!(
            workspace.mode(&format!("credentials/{name}")),
            if secret { 0o600 } else { 0o644 },
            "{name}"
        );
    }
    let kubeconfig = workspace.read("kubeconfig");
    for arguments in [&GENERATE[..], &ENSURE[..]] {
        let run = Outcome::of(workspace.command(["--output", "json"]).args(arguments)).expect_code(0);
        assert_eq!(changed(&run), Vec::<String>::new());
        assert_eq!(files_in(&workspace.path("credentials")), before);
        assert_eq!(workspace.read("kubeconfig"), kubeconfig);
    }
}

#[test]
fn every_identity_has_a_key_of_its_own() {
    let workspace = Workspace::with_credentials();
    let mut keys: Vec<Vec<u8>> = files_in(&workspace.path("credentials"))
        .into_iter()
        .filter(|(name, _)| name.ends_with("-key.pem"))
        .map(|(_, bytes)| bytes)
        .collect();
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), count), (16, 16));
}

#[test]
fn subjects_and_lifetimes_are_those_of_the_design() {
    let workspace = Workspace::with_credentials();
    let text = |name: &str| {
        let path = workspace.credential(name);
        openssl([
            "x509",
            "-in",
            path.to_str().unwrap(),
            "-noout",
            "-subject",
            "-ext",
            "keyUsage,extendedKeyUsage",
        ])
        .unwrap()
    };
    for (name, subject) in [
        ("admin.pem", "O = system:masters, CN = kubernetes-admin"),
        ("worker.pem", "O = system:bootstrappers, CN = kubelet-bootstrap"),
        ("controller-bootstrap.pem", "O = infra:controller-bootstrappers, CN = controller-bootstrap"),
        ("controller-manager.pem", "CN = system:kube-controller-manager"),
        ("scheduler.pem", "CN = system:kube-scheduler"),
        ("apiserver.pem", "CN = kube-apiserver"),
        ("etcd-2.pem", "CN = etcd-2"),
        ("etcd-client.pem", "CN = kube-apiserver-etcd-client"),
        ("front-proxy-client.pem", "CN = front-proxy-client"),
    ] {
        assert!(text(name).starts_with(&format!("subject={subject}\n")), "{}", text(name));
    }
    assert!(text("ca.pem").contains("Certificate Sign"), "{}", text("ca.pem"));
    let report = workspace.infra(["certificates", "--output", "json"]).expect_code(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    for row in report["certificates"].as_array().unwrap() {
        let days = row["daysLeft"].as_i64().unwrap();
        let expected = if row["file"].as_str().unwrap().ends_with("ca.pem") { 3649 } else { 364 };
        assert_eq!(days, expected, "{row}");
    }
}

#[test]
fn without_an_authority_both_options_are_named() {
    let workspace = Workspace::with_cluster();
    let run = workspace.infra(ENSURE).expect_code(1);
    for part in
        ["there is no certificate authority", "--generate-ca", "--ca-cert-path FILE --ca-key-path FILE"]
    {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    assert!(!workspace.credential("apiserver.pem").exists());
}

#[test]
fn missing_files_are_created_and_no_other_is_changed() {
    let workspace = Workspace::with_credentials();
    let before = files_in(&workspace.path("credentials"));
    fs::remove_file(workspace.credential("scheduler.pem")).unwrap();
    fs::remove_file(workspace.credential("etcd-1-key.pem")).unwrap();
    let run = workspace.infra(["render", "credentials", "--output", "json"]).expect_code(0);
    assert_eq!(changed(&run), ["scheduler", "etcd-1"]);
    for ((name, old), (_, new)) in before.iter().zip(files_in(&workspace.path("credentials"))) {
        let touched = name.starts_with("scheduler") || name.starts_with("etcd-1");
        assert_eq!(*old != new, touched, "{name}");
    }
}

#[test]
fn only_expired_leaf_certificates_are_issued_again() {
    let old = made_days_ago(400);
    let run = old.infra(["render", "credentials"]).expect_code(0);
    assert!(run.stderr.contains("recreated  apiserver: it expired on "), "{}", run.stderr);
    assert!(run.stderr.contains("credentials: 12 created, 5 kept"), "{}", run.stderr);
    let young = made_days_ago(350);
    let run = young.infra(["render", "credentials", "--output", "json"]).expect_code(0);
    assert_eq!(changed(&run), Vec::<String>::new());
}

#[test]
fn a_change_of_names_is_reported_and_followed() {
    let workspace = Workspace::with_credentials();
    workspace
        .write("cluster.yaml", format!("{MINIMAL}api: {{additionalNames: [vpn.example.com, 192.0.2.7]}}\n"));
    let run = workspace.infra(ENSURE).expect_code(0);
    assert!(
        run.stderr.contains("recreated  apiserver: it lacks the name vpn.example.com, 192.0.2.7\n"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("1 created, 16 kept"), "{}", run.stderr);
    workspace.write("cluster.yaml", MINIMAL);
    workspace
        .infra(ENSURE)
        .expect_code(0)
        .expect_stderr("it has the name vpn.example.com, 192.0.2.7 too many");
    workspace.write("cluster.yaml", MINIMAL.replace("k8s.example.com", "api.example.com"));
    let run = workspace.infra(ENSURE).expect_code(0);
    assert!(
        run.stderr.contains("it lacks the name api.example.com and has k8s.example.com too many"),
        "{}",
        run.stderr
    );
    assert!(workspace.read("kubeconfig").contains("server: https://api.example.com\n"));
}

#[test]
fn damaged_files_are_created_again() {
    let workspace = Workspace::with_credentials();
    fs::write(workspace.credential("scheduler.pem"), b"\xff\xfe garbage").unwrap();
    fs::copy(workspace.credential("admin-key.pem"), workspace.credential("worker-key.pem")).unwrap();
    let run = workspace.infra(ENSURE).expect_code(0);
    for part in ["recreated  scheduler: ", "recreated  worker: its key does not fit it"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
}

#[test]
fn renewing_issues_every_leaf_again_under_the_same_authorities() {
    let workspace = Workspace::with_credentials();
    let before = files_in(&workspace.path("credentials"));
    let run = workspace.infra(["render", "credentials", "--renew", "--output", "json"]).expect_code(0);
    assert_eq!(changed(&run).len(), 12);
    for ((name, old), (_, new)) in before.iter().zip(files_in(&workspace.path("credentials"))) {
        let kept = ["ca", "etcd-ca", "front-proxy-ca", "service-account", "secrets", ".lock"];
        let stem = name.trim_end_matches(".pem").trim_end_matches("-key");
        let stays = kept.iter().any(|kept| stem == *kept || name.starts_with("secrets") || name == ".lock");
        assert_eq!(*old == new, stays, "{name}");
    }
    assert_ne!(
        before.iter().find(|(name, _)| name == "admin.pem").unwrap().1,
        workspace.read("credentials/admin.pem").into_bytes()
    );
}

#[test]
fn authorities_are_replaced_only_with_a_flag_and_a_yes() {
    let workspace = Workspace::with_credentials();
    let before = fs::read(workspace.credential("ca.pem")).unwrap();
    let asked = workspace.infra(["render", "credentials", "--generate-ca", "--replace-ca"]).expect_code(1);
    assert!(
        asked.stderr.contains("There is no terminal to answer it")
            && asked.stderr.contains("`--yes` answers yes")
    );
    workspace
        .infra(["render", "credentials", "--replace-ca"])
        .expect_code(2)
        .expect_stderr("--replace-ca needs new authorities");
    assert_eq!(fs::read(workspace.credential("ca.pem")).unwrap(), before);
    let run =
        workspace.infra(["render", "credentials", "--generate-ca", "--replace-ca", "--yes"]).expect_code(0);
    assert!(run.stderr.contains("replaced   etcd-ca"), "{}", run.stderr);
    assert!(run.stderr.contains("recreated  apiserver: it was not signed by ca"), "{}", run.stderr);
    assert_ne!(fs::read(workspace.credential("ca.pem")).unwrap(), before);
    workspace.infra(["certificates"]).expect_code(0);
}

#[test]
fn a_broken_authority_is_named_and_left_alone() {
    let workspace = Workspace::with_credentials();
    fs::copy(workspace.credential("etcd-ca-key.pem"), workspace.credential("ca-key.pem")).unwrap();
    let before = files_in(&workspace.path("credentials"));
    let run = workspace.infra(GENERATE).expect_code(1);
    assert!(run.stderr.contains("ca-key.pem does not fit ca.pem"), "{}", run.stderr);
    assert_eq!(files_in(&workspace.path("credentials")), before);
    fs::write(workspace.credential("ca.pem"), "nonsense").unwrap();
    workspace.infra(GENERATE).expect_code(1).expect_stderr("ca.pem: there is no certificate in it");
    assert_eq!(fs::read(workspace.credential("ca.pem")).unwrap(), b"nonsense");
    fs::remove_file(workspace.credential("ca.pem")).unwrap();
    workspace.infra(GENERATE).expect_code(1).expect_stderr("ca-key.pem is there, ca.pem is not");
}

#[test]
fn an_authority_whose_key_is_elsewhere_can_keep_but_not_sign() {
    let workspace = Workspace::with_credentials();
    fs::remove_file(workspace.credential("etcd-ca-key.pem")).unwrap();
    workspace.infra(ENSURE).expect_code(0).expect_stderr("credentials: 17 kept");
    fs::remove_file(workspace.credential("etcd-0.pem")).unwrap();
    let run = workspace.infra(ENSURE).expect_code(1);
    assert!(
        run.stderr.contains("etcd-0 must be signed again") && run.stderr.contains("etcd-ca-key.pem"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_expired_authority_is_refused() {
    let workspace = made_days_ago(3700);
    workspace.infra(GENERATE).expect_code(1).expect_stderr("its certificate expired on ");
}

#[test]
fn keys_are_never_replaced_once_created() {
    let workspace = Workspace::with_credentials();
    workspace.write("cluster.yaml", format!("{MINIMAL}kubernetes: {{serviceAccountKey: rsa}}\n"));
    let before = fs::read(workspace.credential("service-account-key.pem")).unwrap();
    let run = workspace.infra(ENSURE).expect_code(1);
    assert!(run.stderr.contains("is an ecdsa key, but cluster.yaml asks for rsa"), "{}", run.stderr);
    assert_eq!(fs::read(workspace.credential("service-account-key.pem")).unwrap(), before);
    workspace.write("cluster.yaml", MINIMAL);
    fs::write(workspace.credential("secrets-encryption.key"), b"short").unwrap();
    workspace.infra(ENSURE).expect_code(1).expect_stderr("has 5 bytes, but must have 32");
    assert_eq!(fs::read(workspace.credential("secrets-encryption.key")).unwrap(), b"short");
}

#[test]
fn the_token_key_may_be_rsa_and_its_public_half_follows() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}kubernetes: {{serviceAccountKey: rsa}}\n"));
    workspace.infra(GENERATE).expect_code(0);
    let key = workspace.credential("service-account-key.pem");
    let text = openssl(["pkey", "-in", key.to_str().unwrap(), "-noout", "-text"]).unwrap();
    assert!(text.contains("2048 bit"), "{text}");
    let public = openssl(["pkey", "-in", key.to_str().unwrap(), "-pubout"]).unwrap();
    assert_eq!(public, workspace.read("credentials/service-account.pem").replace('\r', ""));
    fs::remove_file(workspace.credential("service-account.pem")).unwrap();
    workspace.infra(ENSURE).expect_code(0);
    assert_eq!(public, workspace.read("credentials/service-account.pem").replace('\r', ""));
}

#[test]
fn open_permissions_are_closed_again() {
    let workspace = Workspace::with_credentials();
    let open = |name: &str, mode| {
        fs::set_permissions(workspace.path(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    open("credentials", 0o755);
    open("credentials/ca-key.pem", 0o644);
    workspace.infra(ENSURE).expect_code(0);
    assert_eq!((workspace.mode("credentials"), workspace.mode("credentials/ca-key.pem")), (0o700, 0o600));
}

#[test]
fn certificates_that_expire_soon_are_unhealthy() {
    let workspace = made_days_ago(340);
    let run = workspace.infra(["certificates"]).expect_code(3);
    assert!(
        run.stdout.contains("24 (expires soon)") || run.stdout.contains("25 (expires soon)"),
        "{}",
        run.stdout
    );
    let workspace = made_days_ago(400);
    workspace.infra(["certificates"]).expect_code(3).expect_stdout("(expired)").expect_stderr("--renew");
    let workspace = Workspace::with_credentials();
    workspace.infra(["certificates"]).expect_code(0).expect_stdout("O=system:masters, CN=kubernetes-admin");
    fs::remove_file(workspace.credential("worker.pem")).unwrap();
    workspace.infra(["certificates"]).expect_code(3).expect_stdout("missing");
    fs::remove_file(workspace.path("cluster.yaml")).unwrap();
    workspace
        .infra(["certificates"])
        .expect_code(0)
        .expect_stderr("cannot tell whether a certificate is missing");
    Workspace::with_cluster()
        .infra(["certificates"])
        .expect_code(3)
        .expect_stderr("there are no certificates");
}

#[test]
fn two_renders_at_once_do_not_mix_their_files() {
    let workspace = Workspace::with_cluster();
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut command =
                workspace.command(["render", "credentials", "--generate-ca", "--output", "json"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut makers = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let run =
            Outcome { code: 0, stdout: String::from_utf8(output.stdout).unwrap(), stderr: String::new() };
        match changed(&run).len() {
            17 => makers += 1,
            0 => {}
            some => panic!("{some} of 17 were made by one run"),
        }
    }
    assert_eq!(makers, 1);
    workspace.infra(["certificates"]).expect_code(0);
    workspace.infra(ENSURE).expect_code(0).expect_stderr("credentials: 17 kept");
}
