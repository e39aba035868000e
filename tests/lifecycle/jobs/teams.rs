//! Teams: a namespace with its rules, its quota and its part of the file system.

use std::fs;

use serde_json::json;

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;
use crate::support::outcome::Outcome;

const QUOTA: &str = "requests.nvidia.com/gpu";

impl JobWorld {
    #[track_caller]
    pub(super) fn run_any<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.workspace.infra(arguments).env("INFRA_API_SERVER", &self.cluster.address()).run()
    }
}

#[track_caller]
fn expect_deleted_pod(world: &JobWorld) {
    let changes = world.cluster.changes();
    assert!(changes.iter().any(|change| change.starts_with("DELETE pods/team-vision-")), "{changes:?}");
}

#[test]
fn a_team_gets_a_namespace_with_rules_a_quota_and_a_directory() {
    let world = JobWorld::new(TRAIN);
    let added = world.run_any(["team", "add", "vision", "--gpus", "2"]).expect_code(0);
    added
        .expect_stderr("starting a pod for the directory /teams/vision of the file system")
        .expect_stderr(
            "team 'vision' is ready on cluster tensorflow; its claim efs is /teams/vision of the file system",
        )
        .expect_stderr("`infra user add NAME --team vision` lets someone in");
    let namespace = world.cluster.object("namespaces", "", "vision").unwrap();
    let labels = &namespace["metadata"]["labels"];
    assert_eq!(labels["infra.internal/team"], "vision");
    for level in ["enforce", "warn"] {
        assert_eq!(labels[format!("pod-security.kubernetes.io/{level}")], "baseline");
    }
    let quota = world.cluster.object("resourcequotas", "vision", "team").unwrap();
    assert_eq!(quota["spec"]["hard"], json!({QUOTA: "2"}));
    assert!(world.cluster.claim().join("teams/vision").is_dir(), "the directory is not there");
    let volume = world.cluster.object("persistentvolumes", "", "tensorflow-efs-vision").unwrap();
    assert_eq!(volume["spec"]["nfs"]["path"], "/teams/vision");
    let claim = world.cluster.object("persistentvolumeclaims", "vision", "efs").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    for policy in ["infra-team-pods", "infra-team-services"] {
        assert!(world.cluster.object("validatingadmissionpolicies", "", policy).is_some());
        let binding = world.cluster.object("validatingadmissionpolicybindings", "", policy).unwrap();
        assert_eq!(binding["spec"], json!({"policyName": policy, "validationActions": ["Deny"]}));
    }
    // No pod is left behind, and the rules were there before the namespace.
    expect_deleted_pod(&world);
    let changes = world.cluster.changes();
    let at = |what: &str| {
        changes.iter().position(|change| change == what).unwrap_or_else(|| panic!("{what}: {changes:?}"))
    };
    assert!(at("PATCH validatingadmissionpolicybindings/infra-team-pods") < at("PATCH namespaces/vision"));
    assert!(at("PATCH namespaces/vision") < at("PATCH persistentvolumes/tensorflow-efs-vision"));
}

#[test]
fn a_second_run_completes_a_team_and_changes_its_limit() {
    let world = JobWorld::new(TRAIN);
    world.run_any(["team", "add", "vision"]).expect_code(0);
    assert!(world.cluster.object("resourcequotas", "vision", "team").is_none());
    let listed = world.run_any(["team", "list"]).expect_code(0);
    assert_eq!(listed.stdout, "TEAM    GPUS      JOBS  USERS\nvision  no limit  0\n");
    fs::write(world.cluster.claim().join("teams/vision/model"), "weights").unwrap();
    world.run_any(["team", "add", "vision", "--gpus", "4"]).expect_code(0);
    world.run_any(["team", "add", "vision"]).expect_code(0);
    let quota = world.cluster.object("resourcequotas", "vision", "team").unwrap();
    assert_eq!(quota["spec"]["hard"], json!({QUOTA: "4"}), "a limit that is not given stays");
    let used = json!({"status": {"used": {QUOTA: "3"}}});
    world.cluster.change("resourcequotas", "vision", "team", used);
    let listed = world.run_any(["team", "list"]).expect_code(0);
    assert_eq!(listed.stdout, "TEAM    GPUS  JOBS  USERS\nvision  3/4   0\n");
    world.run_any(["team", "add", "vision", "--gpus", "none"]).expect_code(0);
    assert!(world.cluster.object("resourcequotas", "vision", "team").is_none());
    assert!(world.cluster.claim().join("teams/vision/model").is_file());
    let document = world.run_any(["team", "list", "--output", "json"]).expect_code(0);
    let teams: serde_json::Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(teams, json!([{"name": "vision", "gpuLimit": null, "gpus": null, "users": [], "jobs": 0}]));
}

#[test]
fn a_team_whose_namespace_was_deleted_otherwise_is_completed_again() {
    let world = JobWorld::new(TRAIN);
    world.run_any(["team", "add", "vision"]).expect_code(0);
    fs::write(world.cluster.claim().join("teams/vision/model"), "weights").unwrap();
    world.cluster.take("persistentvolumeclaims", "vision", "efs");
    world.cluster.take("namespaces", "", "vision");
    world.cluster.change(
        "persistentvolumes",
        "",
        "tensorflow-efs-vision",
        json!({"spec": {"claimRef": {"uid": "of-the-claim-before"}}, "status": {"phase": "Released"}}),
    );
    world.run_any(["team", "add", "vision"]).expect_code(0);
    let claim = world.cluster.object("persistentvolumeclaims", "vision", "efs").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert!(world.cluster.claim().join("teams/vision/model").is_file());
}

#[test]
fn namespaces_and_volumes_of_others_are_left_alone() {
    let world = JobWorld::new(TRAIN);
    world.cluster.put("namespaces", json!({"metadata": {"name": "speech"}}));
    let refused = world.run_any(["team", "add", "speech"]).expect_code(1);
    refused
        .expect_stderr("the namespace 'speech' exists, and is no team's")
        .expect_stderr("kubectl label namespace speech infra.internal/team=speech");
    // A job of the administrator has mounted the whole file system there.
    let volume = json!({"metadata": {"name": "tensorflow-efs-audio"}, "spec": {"nfs": {"path": "/"}}});
    world.cluster.put("persistentvolumes", volume);
    let refused = world.run_any(["team", "add", "audio"]).expect_code(1);
    refused
        .expect_stderr(
            "the volume tensorflow-efs-audio of namespace audio is for the directory / of the file system",
        )
        .expect_stderr("`kubectl delete pv tensorflow-efs-audio`; the files stay");
    for team in ["speech", "audio"] {
        world.run_any(["team", "remove", team, "--yes"]).expect_code(1);
    }
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
    let nothing = world.run_any(["team", "remove", "nobody", "--yes"]).expect_code(0);
    nothing.expect_stderr("there is no team 'nobody'; nothing to do");
}

#[test]
fn the_administrators_job_uses_the_claim_of_a_team() {
    let world = JobWorld::new(&format!("{TRAIN}namespace: vision\n"));
    world.run_any(["team", "add", "vision"]).expect_code(0);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    let sent = world.run(["submit"]).expect_code(0);
    assert!(!sent.stderr.contains("PersistentVolume"), "{}", sent.stderr);
    let volume = world.cluster.object("persistentvolumes", "", "tensorflow-efs-vision").unwrap();
    assert_eq!(volume["spec"]["nfs"]["path"], "/teams/vision");
    // Any other namespace gets the whole file system, as before.
    world.cluster.put("namespaces", json!({"metadata": {"name": "audio"}}));
    world.write_job(&format!("{TRAIN}namespace: audio\n"));
    world.run(["submit"]).expect_code(0);
    let volume = world.cluster.object("persistentvolumes", "", "tensorflow-efs-audio").unwrap();
    assert_eq!(volume["spec"]["nfs"]["path"], "/");
}

#[test]
fn a_team_is_removed_only_if_nothing_is_lost_unsaid() {
    let world = JobWorld::new(&format!("{TRAIN}namespace: vision\n"));
    world.run_any(["team", "add", "vision"]).expect_code(0);
    world.run_any(["user", "add", "ada", "--team", "vision"]).expect_code(0);
    world.run(["submit", "--detach"]).expect_code(0);
    let refused = world.run_any(["team", "remove", "vision", "--yes"]).expect_code(1);
    refused
        .expect_stderr("team 'vision' has a job that is not finished: train")
        .expect_stderr("`--delete-jobs` deletes them with the team");
    fs::write(world.cluster.claim().join("teams/vision/model"), "weights").unwrap();
    let refused = world.run_any(["team", "remove", "vision", "--delete-jobs", "--yes"]).expect_code(1);
    refused
        .expect_stderr("/teams/vision of the file system holds 1 file or directory")
        .expect_stderr("`--keep-files` removes the team and leaves them there");
    let all = ["team", "remove", "vision", "--delete-jobs", "--keep-files"];
    let asked = world.run_any(all).expect_code(1);
    asked.expect_stderr("The namespace vision of cluster tensorflow and everything in it will be deleted. ada will lose access. Continue?");
    assert!(world.cluster.object("namespaces", "", "vision").is_some());
    let removed = world.run_any(all.into_iter().chain(["--yes"])).expect_code(0);
    removed.expect_stderr("team 'vision' is removed").expect_stderr(
        "its files stay in /teams/vision of the file system; a team of the same name finds them again",
    );
    assert!(world.cluster.object("namespaces", "", "vision").is_none());
    assert!(world.cluster.object("persistentvolumes", "", "tensorflow-efs-vision").is_none());
    assert!(world.cluster.object("clusterrolebindings", "", "infra:user:vision:ada").is_none());
    assert!(world.cluster.claim().join("teams/vision/model").is_file());
    world.run_any(["team", "add", "vision"]).expect_code(0);
    assert!(world.cluster.claim().join("teams/vision/model").is_file());
}

#[test]
fn a_directory_that_cannot_be_created_says_why() {
    let world = JobWorld::new(TRAIN);
    fs::write(world.cluster.claim().join("teams"), "a file").unwrap();
    let failed = world.run_any(["team", "add", "vision"]).expect_code(1);
    failed
        .expect_stderr("the directory /teams/vision of the file system: team-directory ended with 1")
        .expect_stderr("run the same command again");
    expect_deleted_pod(&world);
    assert!(world.cluster.object("persistentvolumes", "", "tensorflow-efs-vision").is_none());
    fs::remove_file(world.cluster.claim().join("teams")).unwrap();
    world.run_any(["team", "add", "vision"]).expect_code(0);
}
