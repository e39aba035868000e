//! `infra init`: flags, questions, and what it never does.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Outcome, Workspace};

const FLAGS: [&str; 6] = [
    "init",
    "--cluster-name=paddle",
    "--external-dns-name=k8s.example.com",
    "--region=us-west-2",
    "--kms-key-arn=arn:aws:kms:us-west-2:111122223333:key/1234abcd",
    "--availability-zone=us-west-2a",
];

fn init(workspace: &Workspace, more: &[&str]) -> Outcome {
    Outcome::of(workspace.command(FLAGS).args(more))
}

#[test]
fn writes_a_file_that_validates_and_says_what_is_next() {
    let workspace = Workspace::new();
    init(&workspace, &[]).expect_code(0).expect_stderr("next:").expect_stderr("`infra validate`");
    workspace.infra(["validate"]).expect_code(0);
    let text = workspace.read("cluster.yaml");
    assert!(text.contains("\netcd:\n  count: 1\n"), "{text}");
    assert!(text.contains("\ncontrollers:\n  count: 1\n"), "{text}");
    let ignored = workspace.read(".gitignore");
    for line in ["/credentials/", "/userdata/", "/kubeconfig", "/results/"] {
        assert!(ignored.lines().any(|ignored| ignored == line), "{ignored}");
    }
}

#[test]
fn never_overwrites() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", "mine\n");
    init(&workspace, &[]).expect_code(1).expect_stderr("cluster.yaml exists already and was not changed");
    assert_eq!(workspace.read("cluster.yaml"), "mine\n");
    fs::remove_file(workspace.path("cluster.yaml")).unwrap();
    workspace.write(".gitignore", "/credentials/\n");
    init(&workspace, &[]).expect_code(0).expect_stderr("add /userdata/ /kubeconfig /results/ to it");
    assert_eq!(workspace.read(".gitignore"), "/credentials/\n");
}

#[test]
fn without_a_terminal_every_missing_flag_is_named_at_once() {
    let workspace = Workspace::new();
    let run = workspace.infra(["init", "--region", "us-west-2"]).expect_code(2);
    let all = "flags are missing: --cluster-name, --external-dns-name, --availability-zone, --kms-key-arn";
    assert!(run.stderr.contains(all), "{}", run.stderr);
    assert!(!workspace.path("cluster.yaml").exists());
}

#[test]
fn bad_flags_are_refused_one_by_one_and_together() {
    let workspace = Workspace::new();
    init(&workspace, &["--cluster-name=Paddle"]).expect_code(2);
    workspace.infra(["init", "--cluster-name", "Paddle"]).expect_code(2).expect_stderr("has a 'P' in it");
    workspace.infra(["init", "--s3-uri", "bucket"]).expect_code(2).expect_stderr("is not an S3 URI");
    let run = init(&workspace, &["--availability-zone=us-east-1a", "--gpu=p3.2xlarge"]).expect_code(2);
    for part in ["zone us-east-1a is not in region us-west-2", "AWS no longer offers it", "use g5.xlarge"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    init(&workspace, &["--gpu-count=2"]).expect_code(2).expect_stderr("--gpu");
    assert!(!workspace.path("cluster.yaml").exists());
    assert!(!workspace.path(".gitignore").exists());
}

#[test]
fn a_key_is_either_given_or_created() {
    let workspace = Workspace::new();
    init(&workspace, &["--create-key"]).expect_code(2).expect_stderr("cannot be used with");
    let without: Vec<&str> = FLAGS.into_iter().filter(|flag| !flag.contains("kms")).collect();
    for flag in ["--profile=team", "--endpoint-url=http://127.0.0.1:1"] {
        init(&workspace, &[flag]).expect_code(2).expect_stderr("cannot be used with");
        let run = Outcome::of(workspace.command([]).args(&without).arg(flag));
        run.expect_code(2).expect_stderr("--create-key");
    }
    let run = Outcome::of(workspace.command([]).args(&without));
    run.expect_code(2).expect_stderr("flag is missing: --kms-key-arn or --create-key");
    // Without a terminal nothing is written without the key.
    let mut command = workspace.command([]);
    command.args(without).args(["--create-key", "--endpoint-url=http://127.0.0.1:1"]);
    command
        .env("AWS_ACCESS_KEY_ID", "any")
        .env("AWS_SECRET_ACCESS_KEY", "any")
        .env("INFRA_TEST_TEMPO", "0.01");
    Outcome::of(&mut command).expect_code(1).expect_stderr("kms:DescribeKey");
    assert!(!workspace.path("cluster.yaml").exists());
}

#[test]
fn high_availability_says_what_the_loss_of_an_availability_zone_costs() {
    let one = Workspace::new();
    init(&one, &["--ha"])
        .expect_code(0)
        .expect_stderr("with 1 availability zone, losing us-west-2a stops the API");
    let text = one.read("cluster.yaml");
    assert!(
        text.contains("\netcd:\n  count: 3\n") && text.contains("\ncontrollers:\n  count: 2\n"),
        "{text}"
    );
    let two = Workspace::new();
    let run = init(&two, &["--ha", "--availability-zone=us-west-2b"]).expect_code(0);
    assert!(
        run.stderr.contains("with 2 availability zones, losing us-west-2a stops the API"),
        "{}",
        run.stderr
    );
    let three = Workspace::new();
    let run = init(&three, &["--ha", "--availability-zone=us-west-2b", "--availability-zone=us-west-2c"]);
    run.expect_code(0).expect_stderr("any one availability zone can be lost");
}

#[test]
fn init_adds_a_gpu_pool_beside_the_cpu_pool() {
    let workspace = Workspace::new();
    init(&workspace, &["--gpu=g5.xlarge", "--gpu-count=3", "--key-name=my key: #1"]).expect_code(0);
    let text = workspace.read("cluster.yaml");
    assert!(text.contains("- name: cpu\n  instanceType: m5.large\n  count: 1\n"), "{text}");
    assert!(text.contains("- name: gpu\n  instanceType: g5.xlarge\n  count: 3\n"), "{text}");
    assert!(text.contains("keyName: \"my key: #1\""), "{text}");
    workspace.infra(["validate"]).expect_code(0);
}

#[test]
fn jobs_have_a_claim_unless_the_file_system_is_left_out() {
    let storage = |flags: &[&str]| {
        let workspace = Workspace::new();
        init(&workspace, flags).expect_code(0);
        workspace.infra(["render", "--generate-ca"]).expect_code(0);
        (workspace.path("stacks/storage.json").exists(), workspace.read("cluster.yaml"))
    };
    let (exists, text) = storage(&[]);
    assert!(exists && text.contains("\nstorage:\n  efs:\n    mountPath: /mnt/efs "), "{text}");
    let (exists, text) = storage(&["--no-efs"]);
    assert!(!exists && text.contains("\n#storage:\n#  efs:\n#    mountPath: /mnt/efs "), "{text}");
}

#[test]
fn machines_without_a_gpu_are_no_gpu_machines() {
    let workspace = Workspace::new();
    let run = init(&workspace, &["--gpu=m5.large"]).expect_code(2);
    assert!(
        run.stderr.contains("--gpu: m5.large has no GPU\nhelp: use g5.xlarge, for example"),
        "{}",
        run.stderr
    );
    assert!(!workspace.path("cluster.yaml").exists());
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let workspace = Workspace::new();
    let run = Outcome::of(workspace.command(FLAGS).args(["-C", "nowhere"])).expect_code(1);
    assert!(
        run.stderr.contains("cannot write nowhere/cluster.yaml: No such file or directory"),
        "{}",
        run.stderr
    );
}

/// Runs `infra init` at a pseudo-terminal and types the answers.
fn answer(workspace: &Workspace, flags: &str, answers: &str) -> (Option<i32>, String) {
    let command = format!("{} init {flags}", env!("CARGO_BIN_EXE_infra"));
    let mut child = Command::new("script")
        .args(["-qefc", &command, "/dev/null"])
        .current_dir(workspace.path(""))
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn at_a_terminal_it_asks_for_what_is_missing_and_says_why() {
    let workspace = Workspace::new();
    let answers = "Bad_Name\npaddle\nk8s.example.com\nus-west-2a us-west-2b\n\
                   arn:aws:kms:us-west-2:111122223333:key/1234abcd\nteam-key\n\n\n\n";
    let (code, screen) = answer(&workspace, "--region us-west-2", answers);
    assert_eq!(code, Some(0), "{screen}");
    for part in [
        "Every stack, tag and internal DNS name begins with the cluster's name.",
        "the cluster name 'Bad_Name' has a 'B' in it",
        "They cannot be changed later.",
        "EC2 key pair (empty for none):",
    ] {
        assert!(screen.contains(part), "'{part}' is not in:\n{screen}");
    }
    assert!(!screen.contains("Region:"), "it asked for what it was told:\n{screen}");
    let text = workspace.read("cluster.yaml");
    assert!(text.contains("availabilityZones: [us-west-2a, us-west-2b]"), "{text}");
    assert!(text.contains("\nkeyName: team-key\n") && text.contains("\n#s3URI:"), "{text}");
    assert!(!text.contains("name: gpu") && text.contains("\nstorage:\n  efs:\n"), "{text}");
    workspace.infra(["validate"]).expect_code(0);
}

/// Answers up to the first question that is about GPUs.
const UP_TO_GPUS: &str =
    "paddle\nk8s.example.com\nus-west-2a\narn:aws:kms:us-west-2:111122223333:key/1234abcd\n\n\n";

#[test]
fn at_a_terminal_it_asks_for_gpu_machines_and_the_file_system_until_the_answers_are_good() {
    let workspace = Workspace::new();
    let answers =
        format!("{UP_TO_GPUS}m5.large\np3.2xlarge\ng5g.xlarge\ng5.xlarge\nmany\n5001\n2\nmaybe\nNo\n");
    let (code, screen) = answer(&workspace, "--region us-west-2", &answers);
    assert_eq!(code, Some(0), "{screen}");
    for part in [
        "Instance type of GPU machines (empty for none):",
        "  m5.large has no GPU",
        "  p3.2xlarge is not supported: AWS no longer offers it",
        "  g5g.xlarge is not supported",
        "Number of GPU machines (empty for 1):",
        "  'many' is not a number from 0 to 5000",
        "  '5001' is not a number from 0 to 5000",
        "Training jobs keep their data and results in a file system (EFS) that every node mounts.",
        "Shared file system [Y/n]:",
        "  'maybe' is neither yes nor no",
    ] {
        assert!(screen.contains(part), "'{part}' is not in:\n{screen}");
    }
    let text = workspace.read("cluster.yaml");
    assert!(text.contains("- name: gpu\n  instanceType: g5.xlarge\n  count: 2\n"), "{text}");
    assert!(text.contains("\n#storage:\n"), "{text}");
    workspace.infra(["validate"]).expect_code(0);
}

#[test]
fn what_flags_say_is_not_asked() {
    let workspace = Workspace::new();
    let (code, screen) = answer(&workspace, "--region us-west-2 --gpu g5.xlarge --no-efs", UP_TO_GPUS);
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("GPU machines") && !screen.contains("Shared file system"), "{screen}");
    let text = workspace.read("cluster.yaml");
    assert!(text.contains("- name: gpu\n  instanceType: g5.xlarge\n  count: 1\n"), "{text}");
    assert!(text.contains("\n#storage:\n"), "{text}");
}

#[test]
fn an_end_of_input_in_the_middle_writes_nothing() {
    let workspace = Workspace::new();
    let (code, screen) = answer(&workspace, "--region us-west-2", "paddle\n\u{4}");
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("nothing was written"), "{screen}");
    assert!(!workspace.path("cluster.yaml").exists());
}
