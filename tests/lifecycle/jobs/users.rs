//! Users of a team: everything about jobs in their namespace, nothing elsewhere, and nothing at all once they are removed. The stand-in
//! judges their requests by the roles and bindings that infra wrote, as Kubernetes does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::kubeconfigs::{Elsewhere, names_in};
use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;
use crate::support::outcome::Outcome;

/// A team, and a user of it who has nothing but a kubeconfig and a job file.
struct TeamWorld {
    world: JobWorld,
    user: Elsewhere,
}

impl TeamWorld {
    fn new() -> Self {
        let world = JobWorld::new(TRAIN);
        world.run_any(["team", "add", "vision", "--gpus", "2"]).expect_code(0);
        world.cluster.decide(|role, _, _| match role {
            // They run their programs.
            "reader" | "files" | "team-directory" => Fate::Wait,
            _ => Fate::Succeed("gpu-1", "well\n"),
        });
        let user = Elsewhere::new(&world);
        user.write("job.yaml", TRAIN);
        let team = Self { world, user };
        team.add("ada");
        team
    }

    /// Adds a user, and hands the kubeconfig over.
    #[track_caller]
    fn add(&self, name: &str) -> Outcome {
        let added = self.world.run_any(["user", "add", name, "--team", "vision", "--replace"]).expect_code(0);
        fs::copy(self.file(name), self.user.path(name)).unwrap();
        added
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.world.workspace.path(&format!("credentials/users/vision-{name}.kubeconfig"))
    }

    #[track_caller]
    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.user.infra(arguments.into_iter().chain(["--kubeconfig", "ada"])).run()
    }
}

#[test]
fn a_user_runs_jobs_in_the_teams_namespace() {
    let team = TeamWorld::new();
    // The namespace is that of the kubeconfig.
    team.run(["job", "submit"]).expect_code(0).expect_stderr("JobSet train: applied");
    assert!(team.world.cluster.object("jobsets", "vision", "train").is_some());
    assert!(team.run(["job", "status"]).expect_code(0).stdout.contains("train"));
    assert!(team.run(["job", "logs"]).expect_code(0).stdout.contains("well"));
    let listed = team.run(["job", "list"]).expect_code(0);
    assert!(listed.stdout.contains("vision") && listed.stdout.contains("train"), "{}", listed.stdout);
    team.user.write("token", "hunter2");
    team.run(["secret", "set", "wandb", "WANDB_API_KEY=@token"]).expect_code(0);
    assert!(team.run(["secret", "list"]).expect_code(0).stdout.contains("WANDB_API_KEY"));
    let output = team.world.cluster.claim().join("train/runs");
    let run = run_of(&team, "train");
    fs::create_dir_all(output.join(&run).join("output")).unwrap();
    fs::write(output.join(&run).join("output/model"), "weights").unwrap();
    team.run(["job", "fetch"]).expect_code(0);
    assert_eq!(names_in(&team.user.path("results/train")), [".infra-source", "model"]);
    team.run(["secret", "delete", "wandb", "--yes"]).expect_code(0);
    team.run(["job", "delete", "--yes"]).expect_code(0);
    // The administrator's key is not here.
    let admin = fs::read_to_string(team.world.workspace.path("credentials/admin-key.pem")).unwrap();
    let kubeconfig = fs::read_to_string(team.user.path("ada")).unwrap();
    let line = admin.lines().nth(1).unwrap();
    assert!(!kubeconfig.contains(line), "the administrator's key was handed over");
}

fn run_of(team: &TeamWorld, job: &str) -> String {
    let set = team.world.cluster.object("jobsets", "vision", job).unwrap();
    set["metadata"]["labels"]["infra.internal/run"].as_str().unwrap().to_owned()
}

#[test]
fn a_user_is_refused_elsewhere_in_clear_words() {
    let team = TeamWorld::new();
    team.world.run_any(["team", "add", "speech"]).expect_code(0);
    let before = team.world.cluster.changes();
    for command in [
        &["job", "submit"][..],
        &["job", "submit", "--dry-run"],
        &["job", "status", "train"],
        &["job", "logs", "train"],
        &["job", "logs", "train", "--all", "--follow"],
        &["job", "why", "train"],
        &["job", "shell", "train", "1"],
        &["job", "tensorboard", "train"],
        &["job", "runs", "train"],
        &["job", "fetch", "train"],
        &["job", "fetch", "train", "--run", "first"],
        &["job", "delete", "train", "--yes"],
        &["job", "list"],
        &["data", "put", "job.yaml", "import"],
        &["data", "get", "import", "back"],
        &["data", "ls"],
        &["data", "rm", "import", "--yes"],
        &["secret", "list"],
        &["secret", "delete", "wandb", "--yes"],
    ] {
        for namespace in ["default", "speech"] {
            team.user.write("job.yaml", &format!("{TRAIN}namespace: {namespace}\n"));
            let own: &[&str] = if command[1] == "submit" { &[] } else { &["--namespace", namespace] };
            let refused = team.run(command.iter().chain(own).copied()).expect_code(1);
            assert!(refused.stderr.contains("error: user 'ada:"), "{command:?}: {}", refused.stderr);
            refused
                .expect_stderr(" may not ")
                .expect_stderr(&format!(" in namespace {namespace} (403 Forbidden)"))
                .expect_stderr(&format!(
                    "the administrator lets you in with `infra user add NAME --team {namespace}`"
                ));
        }
    }
    // What only the administrator does needs the administrator's directory.
    team.user.infra(["team", "list"]).run().expect_code(2).expect_stderr("cluster.yaml does not exist");
    assert_eq!(team.world.cluster.changes(), before);
}

#[test]
fn a_job_over_the_quota_of_its_team_is_refused_before_it_waits() {
    let team = TeamWorld::new();
    let before = team.world.cluster.changes();
    team.user.write("job.yaml", &TRAIN.replace("replicas: 2", "replicas: 3"));
    let unmet = "the job needs 3 GPUs, and the quota 'team' of namespace vision allows 2 \
                 (the administrator changes it with `infra team add vision --gpus N`)";
    team.run(["job", "submit"]).expect_code(1).expect_stderr(&format!("- {unmet}"));
    let planned = team.run(["job", "submit", "--dry-run"]).expect_code(1).stdout;
    assert!(planned.contains(&format!("cannot run now:\n  {unmet}\n")), "{planned}");
    assert_eq!(team.world.cluster.changes(), before);
    // Others of the team use a part of it.
    let used = json!({"status": {"used": {"requests.nvidia.com/gpu": "1"}}});
    team.world.cluster.change("resourcequotas", "vision", "team", used);
    team.user.write("job.yaml", TRAIN);
    let remark = "the quota 'team' of namespace vision has room for 1 of 2 GPUs now, the others wait";
    let planned = team.run(["job", "submit", "--dry-run"]).expect_code(0).stdout;
    assert!(planned.contains(&format!("would wait for:\n  {remark}\n")), "{planned}");
    team.run(["job", "submit"]).expect_code(0).expect_stderr(remark);
}

#[test]
fn a_removed_user_is_out_at_once_and_comes_back_only_with_a_new_certificate() {
    let team = TeamWorld::new();
    team.run(["job", "list"]).expect_code(0);
    fs::copy(team.user.path("ada"), team.user.path("before")).unwrap();
    let asked = team.world.run_any(["user", "remove", "ada", "--team", "vision"]).expect_code(1);
    asked.expect_stderr("User 'ada' will lose all rights in team 'vision' of cluster tensorflow. Continue?");
    let removed = team.world.run_any(["user", "remove", "ada", "--team", "vision", "--yes"]).expect_code(0);
    removed
        .expect_stderr("user 'ada' has no rights in team 'vision' any more; jobs and files stay")
        .expect_stderr("the certificate ada:");
    for command in [&["job", "list"][..], &["job", "submit"], &["secret", "list"]] {
        team.run(command.iter().copied()).expect_code(1).expect_stderr("(403 Forbidden)");
    }
    let again = team.world.run_any(["user", "remove", "ada", "--team", "vision", "--yes"]).expect_code(0);
    again.expect_stderr("team 'vision' has no user 'ada'; nothing to do");
    team.add("ada");
    team.run(["job", "list"]).expect_code(0);
    let revived = team.user.infra(["job", "list", "--kubeconfig", "before"]).run().expect_code(1);
    revived.expect_stderr("(403 Forbidden)");
    // The same with one command.
    fs::copy(team.user.path("ada"), team.user.path("before")).unwrap();
    team.add("ada");
    team.run(["job", "list"]).expect_code(0);
    team.user.infra(["job", "list", "--kubeconfig", "before"]).run().expect_code(1);
}

#[test]
fn a_kubeconfig_is_private_and_never_overwritten_unasked() {
    let team = TeamWorld::new();
    let path = team.file("ada");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = team.world.run_any(["user", "add", "ada", "--team", "vision"]).expect_code(1);
    refused
        .expect_stderr("'ada' is a user of team 'vision' already, with a certificate until ")
        .expect_stderr("`--replace` issues a new one, and ends the rights of the one before");
    let before = team.world.cluster.changes();
    fs::write(team.world.workspace.path("taken"), "something").unwrap();
    let refused =
        team.world.run_any(["user", "add", "bob", "--team", "vision", "--to", "taken"]).expect_code(1);
    refused.expect_stderr("taken exists already").expect_stderr("`--to FILE`");
    assert_eq!(fs::read_to_string(team.world.workspace.path("taken")).unwrap(), "something");
    assert_eq!(team.world.cluster.changes(), before, "nobody got rights");
    let nobody = team.world.run_any(["user", "add", "bob", "--team", "speech"]).expect_code(1);
    nobody.expect_stderr("there is no team 'speech'").expect_stderr("`infra team add speech` creates it");
    // Rights that cannot be given leave no kubeconfig.
    team.world.cluster.set_unreachable(true);
    team.world.run_any(["user", "add", "bob", "--team", "vision"]).expect_code(1);
    team.world.cluster.set_unreachable(false);
    assert!(!team.file("bob").exists());
    let listed = team.world.run_any(["user", "list"]).expect_code(0);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("TEAM    USER  CERTIFICATE UNTIL"), "{lines:?}");
    assert!(lines[1].starts_with("vision  ada   20"), "{lines:?}");
    let document =
        team.world.run_any(["user", "list", "--output", "json", "--team", "vision"]).expect_code(0);
    let users: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!((&users[0]["name"], &users[0]["team"]), (&json!("ada"), &json!("vision")));
}

#[test]
fn a_certificate_says_who_and_for_how_long() {
    let team = TeamWorld::new();
    let short = ["user", "add", "bob", "--team", "vision", "--valid", "7d", "--to", "bob"];
    team.world.run_any(short).expect_code(0);
    let kubeconfig = fs::read_to_string(team.world.workspace.path("bob")).unwrap();
    let data =
        kubeconfig.lines().find_map(|line| line.trim().strip_prefix("client-certificate-data: ")).unwrap();
    fs::write(team.world.workspace.path("bob.pem.base64"), data).unwrap();
    let decode =
        format!("base64 -d {}/bob.pem.base64 | openssl x509 -noout", team.world.workspace.root().display());
    let openssl = |question: &str| {
        let output = Command::new("sh").args(["-c", &format!("{decode} {question}")]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (_, subject) = openssl("-subject -nameopt RFC2253");
    assert!(subject.contains("CN=bob:") && subject.contains("O=infra:team:vision"), "{subject}");
    let day = 24 * 3600;
    assert!(openssl(&format!("-checkend {}", 7 * day - 3600)).0, "it is valid for a week");
    assert!(!openssl(&format!("-checkend {}", 7 * day + 3600)).0, "it is valid for longer than a week");
    let (_, usage) = openssl("-ext extendedKeyUsage,basicConstraints");
    assert!(usage.contains("TLS Web Client Authentication") && usage.contains("CA:FALSE"), "{usage}");
    assert!(!usage.contains("Server"), "{usage}");
    assert!(kubeconfig.contains("    namespace: vision\n"), "{kubeconfig}");
}

#[test]
fn no_key_of_a_user_is_printed() {
    let team = TeamWorld::new();
    let arguments = ["-vv", "user", "add", "bob", "--team", "vision"];
    let infra = team.world.workspace.infra(arguments).env("INFRA_LOG", "trace").env("RUST_BACKTRACE", "1");
    let added = infra.env("INFRA_API_SERVER", &team.world.cluster.address()).run().expect_code(0);
    let kubeconfig = fs::read_to_string(team.file("bob")).unwrap();
    let key = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("client-key-data: ")).unwrap();
    for text in [&added.stdout, &added.stderr] {
        assert!(!text.contains(key) && !text.contains("PRIVATE KEY"), "{text}");
    }
}
