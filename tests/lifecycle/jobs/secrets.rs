//! Secrets of jobs: stored without ever being shown, and nothing of others' touched.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::support::invocation::Invocation;
use crate::support::job_cluster::controller::Fate;
use crate::support::outcome::Outcome;

/// The value that no output, log, argument or file may contain.
const VALUE: &str = "hunter2-3a9c";

impl JobWorld {
    /// `infra secret …`, as talkative as it can be.
    fn secret<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let all: Vec<&str> = ["-vv", "secret"].into_iter().chain(arguments).collect();
        let infra = self.workspace.infra(all).env("INFRA_LOG", "trace").env("RUST_BACKTRACE", "1");
        infra.env("INFRA_API_SERVER", &self.cluster.address())
    }

    fn stored(&self, name: &str) -> Value {
        self.cluster.object("secrets", "default", name).expect("there is no such secret")
    }
}

/// Every way in which the value could be written down.
fn expect_silence(outcome: &Outcome) {
    for text in [&outcome.stdout, &outcome.stderr] {
        for form in [VALUE.to_owned(), STANDARD.encode(VALUE), STANDARD.encode(format!("ada:{VALUE}"))] {
            assert!(!text.contains(&form), "a secret was printed:\n{text}");
        }
    }
}

/// No file below a directory contains the value.
fn expect_no_file_with_it(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            expect_no_file_with_it(&path);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(VALUE), "{}", path.display());
        }
    }
}

#[test]
fn values_come_from_files_and_pipes_and_are_shown_nowhere() {
    let world = JobWorld::new(&format!("{TRAIN}secrets: [wandb]\nimagePullSecrets: [ghcr]\n"));
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("token");
    fs::write(&path, format!("{VALUE}\n")).unwrap();
    let from_file = format!("WANDB_API_KEY=@{}", path.display());
    let created = world.secret(["set", "wandb", &from_file]).run().expect_code(0);
    let created = created
        .expect_stderr("secret 'wandb' created in namespace default of cluster tensorflow")
        .expect_stderr("`secrets: [wandb]` in job.yaml gives its variables to a job");
    let changed = world.secret(["set", "wandb", "HF_TOKEN=-"]).input(VALUE).run().expect_code(0);
    let changed = changed.expect_stderr("secret 'wandb' changed in namespace default");
    let login = ["set", "ghcr", "--registry", "ghcr.io", "--username", "ada", "password=-"];
    let pulled = world.secret(login).input(&format!("{VALUE}\n")).run().expect_code(0);
    let listed = world.secret(["list"]).run().expect_code(0);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("SECRET  USE        HOLDS"), "{lines:?}");
    assert!(lines[1].starts_with("ghcr    registry   ghcr.io "), "{lines:?}");
    assert!(lines[2].starts_with("wandb   variables  HF_TOKEN, WANDB_API_KEY "), "{lines:?}");
    let document = world.secret(["list", "--output", "json"]).run().expect_code(0);

    let encoded = STANDARD.encode(VALUE);
    let stored = world.stored("wandb");
    assert_eq!(stored["type"], "Opaque");
    assert_eq!(stored["data"], json!({"WANDB_API_KEY": encoded, "HF_TOKEN": encoded}));
    let stored = world.stored("ghcr");
    assert_eq!(stored["type"], "kubernetes.io/dockerconfigjson");
    let text = STANDARD.decode(stored["data"][".dockerconfigjson"].as_str().unwrap()).unwrap();
    let login: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(login["auths"]["ghcr.io"]["password"], VALUE);

    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    let rendered = world.infra(["render"]).run().expect_code(0);
    let submitted = world.infra(["submit", "-vv"]).env("INFRA_LOG", "trace").run().expect_code(0);
    for outcome in [&created, &changed, &pulled, &listed, &document, &rendered, &submitted] {
        expect_silence(outcome);
    }
    expect_no_file_with_it(&world.workspace.path(""));
    let set = world.cluster.object("jobsets", "default", "train").unwrap();
    let pod = &set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["envFrom"], json!([{"secretRef": {"name": "wandb"}}]));
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "ghcr"}]));
    assert!(pod["initContainers"][0].get("envFrom").is_none(), "our own script needs no secret");
}

#[test]
fn a_value_that_is_typed_is_not_shown() {
    let world = JobWorld::new(TRAIN);
    let invocation = world.workspace.at_terminal("secret set wandb WANDB_API_KEY", "dumb");
    let mut running = invocation.env("INFRA_API_SERVER", &world.cluster.address()).typed().spawn();
    running.wait_for_stdout("WANDB_API_KEY (not shown):");
    // A line, a mistake that is erased, and a second mistake that is deleted whole.
    running.write_input("oops\u{15}x\u{7f}");
    running.write_input(&format!("{VALUE}\r"));
    let typed = running.wait().expect_code(0);
    expect_silence(&typed);
    assert!(!typed.stdout.contains("oops"), "{}", typed.stdout);
    assert_eq!(world.stored("wandb")["data"]["WANDB_API_KEY"], STANDARD.encode(VALUE));
}

#[test]
fn control_c_while_a_value_is_typed_leaves_the_terminal_as_it_was() {
    let world = JobWorld::new(TRAIN);
    let infra = format!("{} -C {}", env!("CARGO_BIN_EXE_infra"), world.workspace.root().display());
    let mut script = std::process::Command::new("script");
    let line = format!("{infra} secret set wandb TOKEN; echo code $?; stty -a");
    script.args(["-qefc", &line, "/dev/null"]).env("TERM", "dumb").env("SHELL", "/bin/sh");
    let invocation = Invocation::of(script).env("INFRA_API_SERVER", &world.cluster.address());
    let mut running = invocation.typed().spawn();
    running.wait_for_stdout("TOKEN (not shown):");
    running.write_input("half\u{3}");
    running.wait_for_stdout("code 130");
    let ended = running.wait().expect_code(0);
    assert!(ended.stdout.contains("interrupted; nothing was changed"), "{}", ended.stdout);
    let settings: Vec<&str> = ended.stdout.split_whitespace().collect();
    for setting in ["echo", "icanon", "isig"] {
        assert!(settings.contains(&setting), "{setting} is off:\n{}", ended.stdout);
    }
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

#[test]
fn values_that_no_variable_can_have_are_refused() {
    let world = JobWorld::new(TRAIN);
    let cases =
        [("", "is empty"), ("\n", "is empty"), ("a\0b", "contains a zero byte, which no variable can")];
    for (value, objection) in cases {
        let refused = world.secret(["set", "wandb", "TOKEN=-"]).input(value).run().expect_code(2);
        refused
            .expect_stderr(&format!("the value of TOKEN {objection}"))
            .expect_stderr("nothing was changed");
    }
    let long = "x".repeat(200_000);
    let refused = world.secret(["set", "wandb", "TOKEN=-"]).input(&long).run().expect_code(2);
    refused.expect_stderr("the value of TOKEN is longer than 127 KiB");
    let missing = world.secret(["set", "wandb", "TOKEN=@no-such-file"]).run().expect_code(1);
    missing.expect_stderr("no-such-file").expect_stderr("No such file or directory");
    // A question needs a terminal.
    let asked = world.secret(["set", "wandb", "TOKEN"]).run().expect_code(1);
    asked
        .expect_stderr("there is no terminal to ask for TOKEN")
        .expect_stderr("write =@FILE or =- behind the key");
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

#[test]
fn secrets_of_others_are_left_alone() {
    let world = JobWorld::new(TRAIN);
    let foreign = json!({"metadata": {"name": "token", "namespace": "default"},
                         "type": "kubernetes.io/service-account-token", "data": {"token": "eA=="}});
    world.cluster.put("secrets", foreign);
    for arguments in [&["set", "token", "A=-"][..], &["delete", "token", "--yes"]] {
        let refused = world.secret(arguments.iter().copied()).input("x").run().expect_code(1);
        refused
            .expect_stderr("the Secret 'token' in namespace default was not created by infra")
            .expect_stderr("infra changes and deletes only Secrets that it created");
    }
    let listed = world.secret(["list"]).run().expect_code(0);
    assert_eq!(listed.stdout, "there are no secrets in namespace default\n");
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

#[test]
fn a_secret_is_for_one_thing() {
    let world = JobWorld::new(TRAIN);
    world.secret(["set", "both", "A=-"]).input("x").run().expect_code(0);
    let login = ["set", "both", "--registry", "ghcr.io", "--username", "ada", "password=-"];
    let refused = world.secret(login).input("x").run().expect_code(1);
    refused
        .expect_stderr("the secret 'both' in namespace default holds variables, not the login to a registry")
        .expect_stderr("choose another name, or run `infra secret delete both` first");
    let asked = world.secret(["delete", "both"]).run().expect_code(1);
    asked.expect_stderr("Secret 'both' holds A. It will be deleted. Continue?").expect_stderr("`--yes`");
    world.secret(["delete", "both", "--yes"]).run().expect_code(0).expect_stderr("secret 'both' is deleted");
    let again = world.secret(["delete", "both", "--yes"]).run().expect_code(0);
    again.expect_stderr("there is no secret 'both' in namespace default; nothing to do");
    world.secret(login).input("x").run().expect_code(0);
}

#[test]
fn the_namespace_is_that_of_the_job_file_or_the_one_that_is_named() {
    let world = JobWorld::new(&format!("{TRAIN}namespace: vision\n"));
    let refused = world.secret(["set", "wandb", "A=-"]).input("x").run().expect_code(1);
    refused.expect_stderr("there is no namespace 'vision'");
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.secret(["set", "wandb", "A=-"]).input("x").run().expect_code(0);
    assert!(world.cluster.object("secrets", "vision", "wandb").is_some());
    world.secret(["set", "wandb", "A=-", "--namespace", "default"]).input("x").run().expect_code(0);
    assert!(world.cluster.object("secrets", "default", "wandb").is_some());
}

#[test]
fn submit_needs_the_secrets_that_a_job_names() {
    let world = JobWorld::new(&format!("{TRAIN}secrets: [wandb, ghcr]\nimagePullSecrets: [ghcr, tokens]\n"));
    world.run(["submit"])
        .expect_code(1)
        .expect_stderr("- there is no secret 'wandb' in namespace default (`infra secret set wandb KEY --namespace default` creates it)")
        .expect_stderr("- there is no secret 'tokens' in namespace default (`infra secret set tokens --registry HOST --username USER --namespace default` creates it)");
    for (name, kind) in
        [("wandb", "Opaque"), ("tokens", "Opaque"), ("ghcr", "kubernetes.io/dockerconfigjson")]
    {
        let metadata = json!({"name": name, "namespace": "default"});
        world.cluster.put("secrets", json!({"metadata": metadata, "type": kind, "data": {}}));
    }
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("- the secret 'ghcr' in namespace default is the login to a registry: name it in imagePullSecrets, not in secrets")
        .expect_stderr("- the secret 'tokens' in namespace default is not the login to a registry: imagePullSecrets cannot use it");
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
    world.write_job(&format!("{TRAIN}secrets: [wandb]\nimagePullSecrets: [ghcr]\n"));
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0);
}
