//! `tests/broken/*.yaml` and `tests/jobs/broken/*.yaml`: one mistake each, with the exact message and help in the first two lines.

use std::fs;
use std::path::Path;

use crate::support::Workspace;

/// A file with one mistake.
struct Case {
    name: String,
    text: String,
    message: String,
    help: Option<String>,
}

fn cases(directory: &str) -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut cases: Vec<Case> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let line = |prefix: &str| {
                let mut lines = text.lines().take(2);
                lines.find_map(|line| line.strip_prefix(prefix)).map(|rest| rest.trim().to_owned())
            };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let message = line("# expect:").unwrap_or_else(|| panic!("{name} expects nothing"));
            let help = line("# help:").filter(|help| help != "-");
            Case { name, message, help, text }
        })
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

/// Every mistake is found where it is, and nothing else.
fn expect_each<const N: usize>(cases: Vec<Case>, file: &str, command: [&str; N]) {
    assert!(cases.len() >= 60, "there are only {} broken files", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let workspace = Workspace::new();
        workspace.write(file, &case.text);
        let run = workspace.infra(command);
        let help = case.help.map(|help| format!("\n  help: {help}")).unwrap_or_default();
        let expected = format!("{}{help}\n", case.message);
        if run.code != 2 || run.stdout != expected {
            wrong.push(format!("{}: exit {:?}\n{}{}", case.name, run.code, run.stdout, run.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_mistake_in_a_cluster_file_is_found() {
    expect_each(cases("tests/broken"), "cluster.yaml", ["validate"]);
}

#[test]
fn each_mistake_in_a_job_file_is_found() {
    expect_each(cases("tests/jobs/broken"), "job.yaml", ["job", "lint"]);
}

#[test]
fn all_problems_of_meaning_are_shown_in_one_run() {
    let workspace = Workspace::new();
    workspace.write(
        "cluster.yaml",
        "clusterName: Paddle\nexternalDNSName: kubernetes\nregion: us-west-2\navailabilityZones: [us-east-1a]\n\
         kmsKeyArn: key\netcd: {count: 4}\npools:\n- {name: gpu, instanceType: p3.2xlarge, count: 2, maxCount: 1}\n",
    );
    let run = workspace.infra(["validate"]).expect_code(2);
    let places: Vec<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("cluster.yaml:")?.split(": ").next())
        .collect();
    assert_eq!(places, ["1:14", "2:18", "4:21", "5:12", "6:15", "8:29", "8:61"], "{}", run.stdout);
    assert!(run.stderr.contains("cluster.yaml has 7 problems"), "{}", run.stderr);
}

#[test]
fn all_problems_of_structure_are_shown_in_one_run() {
    let workspace = Workspace::new();
    workspace
        .write("cluster.yaml", "clusterNme: paddle\netcd: {count: many, size: 3}\nos: {channel: stabel}\n");
    let run = workspace.infra(["validate"]).expect_code(2);
    for part in
        ["unknown key 'clusterNme'", "count must be", "unknown key 'size'", "'stabel'", "'region' is missing"]
    {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.stdout);
    }
}

#[test]
fn json_has_the_same_findings() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", crate::support::MINIMAL.replace("paddle", "Paddle"));
    let run = workspace.infra(["validate", "--output", "json"]).expect_code(2);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["findings"][0]["line"], 1);
    assert_eq!(report["findings"][0]["column"], 14);
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_eq!(report["findings"][0]["message"], "the cluster name 'Paddle' has a 'P' in it");
}

#[test]
fn warnings_are_shown_and_do_not_fail() {
    let workspace = Workspace::new();
    let more = "sshAllowedCIDRs: [0.0.0.0/0]\n\
        pools: [{name: cpu, instanceType: m5.large, metadataHopLimit: 2}, \
        {name: gpu, instanceType: g5.xlarge, availabilityZones: [us-west-2a], placementGroup: true, capacityReservationId: cr-0123456789abcdef0}]\n";
    workspace.write("cluster.yaml", format!("{}{more}", crate::support::MINIMAL));
    let run = workspace.infra(["validate"]).expect_code(0);
    for part in [
        "nobody can log in",
        "open to the whole internet",
        "can act with its machine's IAM role",
        "machines of a capacity reservation may find no room in a placement group",
    ] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
}

#[test]
fn an_api_server_that_is_open_to_the_world_is_warned_of() {
    let workspace = Workspace::new();
    let validate = |more: &str| {
        workspace.write("cluster.yaml", format!("{}{more}", crate::support::MINIMAL));
        workspace.infra(["validate"]).expect_code(0).stdout
    };
    let help = "\n  help: write the ranges that you connect from, as api: {allowedCIDRs: [203.0.113.0/24]}\n";
    let open = "warning: the API server accepts connections from the whole internet";
    assert_eq!(validate(""), format!("cluster.yaml:1:1: {open}: api.allowedCIDRs is not set{help}"));
    assert_eq!(
        validate("api: {allowedCIDRs: [192.0.2.0/24, 0.0.0.0/0]}\n"),
        format!("cluster.yaml:6:21: {open}{help}")
    );
    for closed in ["api: {allowedCIDRs: [192.0.2.0/24]}\n", "api: {public: false}\n"] {
        assert_eq!(validate(closed), "");
    }
}
