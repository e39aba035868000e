//! kubeconfig, read by a real kubectl.

use std::fs;

use serde_json::Value;

use crate::support::{Outcome, Workspace, tool};

fn kubectl(workspace: &Workspace, file: &str, arguments: &[&str]) -> Outcome {
    let mut command = tool("venv/bin/kubectl");
    command.env("HOME", workspace.path("")).arg("--kubeconfig").arg(workspace.path(file));
    Outcome::of(command.args(arguments))
}

fn view(workspace: &Workspace, file: &str) -> Value {
    let run = kubectl(workspace, file, &["config", "view", "--raw", "-o", "json"]).expect_code(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn kubectl_reads_what_render_writes_and_what_is_printed() {
    let workspace = Workspace::with_credentials();
    let run = kubectl(&workspace, "kubeconfig", &["config", "current-context"]).expect_code(0);
    assert_eq!(run.stdout, "paddle\n");
    let config = view(&workspace, "kubeconfig");
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://k8s.example.com");
    assert_eq!(config["contexts"][0]["context"]["user"], "paddle-admin");
    let decode = |value: &Value| {
        let mut command = std::process::Command::new("base64");
        let mut child = command
            .arg("-d")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), value.as_str().unwrap().as_bytes())
            .unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let user = &config["users"][0]["user"];
    assert_eq!(decode(&user["client-certificate-data"]), workspace.read("credentials/admin.pem"));
    assert_eq!(decode(&user["client-key-data"]), workspace.read("credentials/admin-key.pem"));
    let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    assert_eq!(decode(authority), workspace.read("credentials/ca.pem"));
    let printed = workspace.infra(["kubeconfig"]).expect_code(0).stdout;
    assert_eq!(printed, workspace.read("kubeconfig"));
}

#[test]
fn kubectl_gets_as_far_as_the_network() {
    let workspace = Workspace::with_credentials();
    workspace.write(
        "local",
        workspace.infra(["kubeconfig", "--server", "https://127.0.0.1:1"]).expect_code(0).stdout,
    );
    let run = kubectl(&workspace, "local", &["get", "nodes", "--request-timeout=60s"]).expect_code(1);
    assert!(run.stderr.contains("127.0.0.1:1"), "{}", run.stderr);
    assert!(run.stderr.contains("connection") && run.stderr.contains("refused"), "{}", run.stderr);
}

#[test]
fn merging_adds_ours_keeps_theirs_and_leaves_their_context() {
    let workspace = Workspace::with_credentials();
    workspace.write(
        "theirs",
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\npreferences: {colors: true}\n\
         clusters:\n- name: prod\n  cluster: {server: https://prod.example.com}\n- name: paddle\n  cluster: {server: https://old}\n\
         contexts:\n- name: prod\n  context: {cluster: prod, user: me, namespace: web}\n\
         users:\n- name: me\n  user: {token: abc}\n",
    );
    for _ in 0..2 {
        let run = workspace.infra(["kubeconfig", "--merge", "theirs"]).expect_code(0);
        assert!(run.stderr.contains("`kubectl config use-context paddle` switches"), "{}", run.stderr);
        assert_eq!(run.stdout, "");
        let config = view(&workspace, "theirs");
        assert_eq!(config["current-context"], "prod");
        let names = |list: &str| -> Vec<String> {
            config[list]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            (names("clusters"), names("users")),
            (vec!["paddle".into(), "prod".into()], vec!["me".into(), "paddle-admin".into()])
        );
        assert_eq!(config["contexts"].as_array().unwrap().len(), 2);
        assert_eq!(workspace.mode("theirs"), 0o600);
    }
    assert!(
        workspace.read("theirs").contains("token: abc")
            && workspace.read("theirs").contains("namespace: web")
    );
    assert!(!workspace.read("theirs").contains("https://old"));
}

#[test]
fn merging_finds_the_usual_places() {
    let workspace = Workspace::with_credentials();
    workspace.infra(["kubeconfig", "--merge"]).expect_code(0).expect_stderr(".kube/config");
    assert_eq!(view(&workspace, ".kube/config")["current-context"], "paddle");
    let mut command = workspace.command(["kubeconfig", "--merge"]);
    Outcome::of(command.env("KUBECONFIG", format!(":{}:other", workspace.path("named").display())))
        .expect_code(0);
    assert_eq!(view(&workspace, "named")["current-context"], "paddle");
}

#[test]
fn a_kubeconfig_that_cannot_be_understood_is_left_alone() {
    let workspace = Workspace::with_credentials();
    for bad in ["clusters: {a: b}\n", "- a list\n", "clusters: [\n"] {
        workspace.write("theirs", bad);
        let run = workspace.infra(["kubeconfig", "--merge", "theirs"]);
        assert!(matches!(run.code, 1 | 2), "{run:?}");
        assert_eq!(workspace.read("theirs"), bad);
    }
}

#[test]
fn without_credentials_it_says_how_to_get_them() {
    let workspace = Workspace::with_cluster();
    workspace.infra(["kubeconfig"]).expect_code(1).expect_stderr("render credentials --generate-ca");
    assert!(!workspace.path("credentials").exists());
    let workspace = Workspace::with_credentials();
    fs::remove_file(workspace.credential("admin-key.pem")).unwrap();
    workspace
        .infra(["kubeconfig"])
        .expect_code(1)
        .expect_stderr("admin-key.pem is not among the credentials");
    workspace.infra(["kubeconfig", "--server", "http://plain"]).expect_code(2).expect_stderr("https://");
}
