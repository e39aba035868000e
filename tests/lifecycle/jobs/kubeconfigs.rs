//! Which cluster a command works on: that of a kubeconfig, of the asset directory, or of the environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::{JobWorld, TRAIN};
use crate::support::invocation::Invocation;
use crate::support::job_cluster::controller::Fate;

/// A token that no output may contain.
const TOKEN: &str = "hunter2-token-5d";

/// A directory without a cluster.yaml, and someone who works there.
pub(super) struct Elsewhere {
    directory: TempDir,
    address: String,
}

impl Elsewhere {
    pub(super) fn new(world: &JobWorld) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), address: world.cluster.address() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// `infra` in that directory, without anything of the caller's environment but PATH.
    pub(super) fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infra"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(self.directory.path()).args(arguments);
        Invocation::of_infra(command).env("INFRA_API_SERVER", &self.address)
    }
}

fn administrators_kubeconfig(world: &JobWorld) -> String {
    world.workspace.infra(["kubeconfig"]).run().expect_code(0).stdout
}

/// The same kubeconfig with a token in the place of the certificate.
fn with_token(kubeconfig: &str) -> String {
    let without: Vec<&str> =
        kubeconfig.lines().filter(|line| !line.trim_start().starts_with("client-")).collect();
    format!("{}\n    token: {TOKEN}\n", without.join("\n"))
}

#[test]
fn a_job_needs_nothing_but_a_kubeconfig() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", "well\n"));
    let elsewhere = Elsewhere::new(&world);
    let nowhere = elsewhere.infra(["job", "list"]).run().expect_code(2);
    nowhere
        .expect_stderr("cluster.yaml does not exist, and no kubeconfig is named")
        .expect_stderr("`--kubeconfig FILE`, or KUBECONFIG");
    elsewhere.write("job.yaml", TRAIN);
    let file = elsewhere.write("cluster.kubeconfig", &administrators_kubeconfig(&world));
    let named = |command: &[&'static str]| {
        let all: Vec<&str> = command.iter().copied().chain(["--kubeconfig", &file]).collect();
        elsewhere.infra(all).run()
    };
    let sent = named(&["job", "submit"]).expect_code(0);
    sent.expect_stderr(&format!("cluster tensorflow (context 'tensorflow' of {file})"));
    assert!(named(&["job", "status"]).expect_code(0).stdout.contains("train"));
    assert!(named(&["job", "logs"]).expect_code(0).stdout.contains("well"));
    assert!(named(&["job", "list"]).expect_code(0).stdout.contains("train"));
    named(&["secret", "list"]).expect_code(0);
    named(&["job", "delete", "--yes"]).expect_code(0);
    // From the environment, and by a path relative to the directory.
    elsewhere.infra(["job", "list"]).env("KUBECONFIG", &file).run().expect_code(0);
    elsewhere.infra(["job", "list", "--kubeconfig", "cluster.kubeconfig"]).run().expect_code(0);
}

/// Without cluster.yaml, machines are known by the nodes that exist.
#[test]
fn a_pool_without_nodes_sets_no_memory_limit_and_submit_says_so() {
    let world = JobWorld::new(TRAIN);
    for node in ["gpu-1", "gpu-2", "gpu-3"] {
        let has = json!({"status": {"allocatable": {"cpu": "3920m", "memory": "15000Mi"}}});
        world.cluster.change("nodes", "", node, has);
    }
    let elsewhere = Elsewhere::new(&world);
    let file = elsewhere.write("cluster.kubeconfig", &administrators_kubeconfig(&world));
    let said = |job: &str, command: &[&'static str]| {
        elsewhere.write("job.yaml", job);
        let all: Vec<&str> = command.iter().copied().chain(["--kubeconfig", &file]).collect();
        let run = elsewhere.infra(all).run();
        format!("{}{}", run.stdout, run.stderr)
    };
    let empty = TRAIN.replace("gpus: 1", "pool: empty");
    let plan = said(&empty, &["job", "submit", "--dry-run"]);
    assert!(plan.contains("\nwarnings:\n  the job's pods have no memory limit, because"), "{plan}");
    let linted = said(&empty, &["job", "lint", "--online"]);
    assert!(linted.contains("warning: the job's pods have no memory limit, because"), "{linted}");
    for known in [TRAIN.to_owned(), format!("{empty}memory: 4Gi\n")] {
        for command in [["job", "submit", "--dry-run"], ["job", "lint", "--online"]] {
            let said = said(&known, &command);
            assert!(!said.contains("no memory limit"), "{said}");
        }
    }
}

#[test]
fn a_flag_comes_before_the_asset_directory_and_that_before_the_environment() {
    let world = JobWorld::new(TRAIN);
    let elsewhere = Elsewhere::new(&world);
    let other = administrators_kubeconfig(&world).replace("name: tensorflow\n", "name: other\n");
    let other = other
        .replace("cluster: tensorflow\n", "cluster: other\n")
        .replace("current-context: tensorflow", "current-context: other");
    let file = elsewhere.write("other", &other);
    let of_directory = world.infra(["list"]).env("KUBECONFIG", &file).run().expect_code(0);
    assert_eq!(of_directory.stdout, "tensorflow: there are no jobs\n");
    assert!(!of_directory.stderr.contains("context"), "{}", of_directory.stderr);
    let of_flag = world.infra(["list", "--kubeconfig", &file]).run().expect_code(0);
    assert_eq!(of_flag.stdout, "other: there are no jobs\n");
    // Whoever has cluster.yaml without its keys is a user.
    fs::remove_dir_all(world.workspace.credentials()).unwrap();
    let of_environment = world.infra(["list"]).env("KUBECONFIG", &file).run().expect_code(0);
    assert_eq!(of_environment.stdout, "other: there are no jobs\n");
    let refused = world.infra(["list", "--context", "other"]).run().expect_code(2);
    refused.expect_stderr("--context is about a kubeconfig");
    let refused = world.infra(["list", "--kubeconfig", &file, "--context", "third"]).run().expect_code(2);
    refused
        .expect_stderr("the kubeconfig has no context 'third'")
        .expect_stderr("`--context NAME` names one; there are other");
}

#[test]
fn a_token_is_sent_and_never_shown() {
    let world = JobWorld::new(TRAIN);
    let elsewhere = Elsewhere::new(&world);
    let file = elsewhere.write("token", &with_token(&administrators_kubeconfig(&world)));
    let list = ["-vv", "job", "list", "--kubeconfig", &file];
    let run = || elsewhere.infra(list).env("INFRA_LOG", "trace").env("RUST_BACKTRACE", "1").run();
    let refused = run().expect_code(1);
    refused
        .expect_stderr("(401 Unauthorized)")
        .expect_stderr("the certificate or token is not accepted, or has expired");
    world.cluster.put_token(TOKEN, "ada");
    let listed = run().expect_code(0);
    world.cluster.refuse_with(Some((503, "not now")));
    for outcome in [listed, run().expect_code(1)] {
        assert!(!outcome.stderr.contains(TOKEN) && !outcome.stdout.contains(TOKEN), "{}", outcome.stderr);
    }
}

#[test]
fn a_kubeconfig_that_needs_another_program_is_refused() {
    let world = JobWorld::new(TRAIN);
    let elsewhere = Elsewhere::new(&world);
    let plugin = with_token(&administrators_kubeconfig(&world))
        .replace(&format!("token: {TOKEN}"), "exec: {command: aws, args: [eks, get-token]}");
    let file = elsewhere.write("plugin", &plugin);
    let refused = elsewhere.infra(["job", "submit", "--kubeconfig", &file]).run().expect_code(2);
    refused
        .expect_stderr("logs in with the exec plug-in 'aws', which infra does not run")
        .expect_stderr("use one with a client certificate or a token, such as `infra user add` writes");
    assert!(world.cluster.requests().is_empty());
    let missing = elsewhere.infra(["job", "list", "--kubeconfig", "none"]).run().expect_code(2);
    missing.expect_stderr("none does not exist");
    let nonsense = elsewhere.write("nonsense", "kind: Pod\n");
    elsewhere
        .infra(["job", "list", "--kubeconfig", &nonsense])
        .run()
        .expect_code(2)
        .expect_stderr("is not a kubeconfig");
}

#[test]
fn pools_are_read_from_the_nodes() {
    let world = JobWorld::new(TRAIN);
    let taints = json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"},
                        {"key": "team", "value": "vision", "effect": "NoSchedule"},
                        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    for node in ["gpu-1", "gpu-2", "gpu-3"] {
        let allocatable = json!({"cpu": "3920m", "memory": "15728640Ki", "nvidia.com/gpu": "1"});
        world.cluster.change(
            "nodes",
            "",
            node,
            json!({"spec": {"taints": taints}, "status": {"allocatable": allocatable}}),
        );
    }
    let elsewhere = Elsewhere::new(&world);
    let file = elsewhere.write("config", &administrators_kubeconfig(&world));
    elsewhere.write("job.yaml", &format!("{TRAIN}pool: gpu\n"));
    let submit = ["job", "submit", "--detach", "--kubeconfig", &file];
    let sent = elsewhere.infra(submit).run().expect_code(0);
    sent.expect_stderr("tainted with node.kubernetes.io/unschedulable")
        .expect_stderr("it waits until there are more machines");
    let set = world.cluster.object("jobsets", "default", "train").unwrap();
    let pod = &set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"infra.internal/pool": "gpu"}));
    let keys: Vec<&str> =
        pod["tolerations"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(
        keys,
        ["nvidia.com/gpu", "team", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    );
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "15360Mi");
    // A pool without machines cannot be seen from here, and may grow.
    elsewhere.write("job.yaml", &format!("{}pool: large\n", TRAIN.replace("name: train", "name: second")));
    let sent = elsewhere.infra(submit).run().expect_code(0);
    sent.expect_stderr("pool large has now: no node is usable; it waits until there are more machines");
}

/// Everything that a directory holds, by name.
pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
