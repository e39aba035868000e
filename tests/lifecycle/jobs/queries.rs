//! The status of a job, and the list of jobs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{DATA, JobWorld, TRAIN};
use crate::schema_judge::{expect_exact, expect_fit};
use crate::support::job_cluster::controller::Fate;

#[test]
fn status_has_a_line_for_each_replica() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, index, _| if index == 0 { Fate::Run("gpu-1") } else { Fate::Wait });
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    let unplaced = json!([{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]);
    world.cluster.set_status("worker", 1, json!({"phase": "Pending", "conditions": unplaced}));
    let status = world.run(["status"]).expect_code(0);
    assert_eq!(
        status.stdout,
        "default/train: starting (worker 1: 0/4 nodes are available), 0 of 2 done\n\
         run first in train/runs/first on the claim efs\n\
         ROLE    INDEX  PHASE    NODE   RESTARTS  GPUS\n\
         worker  0      Running  gpu-1  0         1\n\
         worker  1      Pending  -      0         1     0/4 nodes are available\n"
    );
    let document = world.run(["status", "train", "--output", "json"]).expect_code(0);
    expect_exact(&BTreeMap::from([("job-status", vec![document.stdout.clone()])]), &[]);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["state"], "starting");
    assert_eq!(document["replicas"][0]["node"], "gpu-1");
    assert_eq!((&document["wanted"], &document["done"]), (&json!(2), &json!(0)));
    assert_eq!(document["claim"], "efs");
    assert_eq!((&document["path"], &document["directory"]), (&json!("train"), &json!("train/runs/first")));
    assert_eq!(document["run"], "first");
    assert_eq!(document["restarts"], json!({"failures": 0, "lostMachines": 0, "allowed": 0}));

    // A pod that succeeded on a machine that is gone is still done.
    world.cluster.finish("worker", 1, 0);
    let pod = world.cluster.pods("worker").remove(1);
    world.cluster.take("pods", "default", &pod);
    let status = world.run(["status"]).expect_code(0);
    status.expect_stdout("train: running, 1 of 2 done").expect_stdout("worker  1      Succeeded  -");
}

#[test]
fn a_job_that_is_complete_with_its_first_replica_does_not_count_the_others() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.finish("worker", 0, 0);
    world.cluster.wait_for_end("train");
    let status = world.run(["status"]).expect_code(0).expect_stdout("default/train: complete\nrun ");
    // The other one was terminated, and did not succeed.
    status.expect_stdout("worker  0      Succeeded  gpu-1").expect_stdout("worker  1      Removed    -");
}

#[test]
fn a_missing_job_is_reported() {
    let world = JobWorld::new(TRAIN);
    for command in
        [vec!["status"], vec!["logs"], vec!["status", "train", "-n", "vision"], vec!["fetch", "other"]]
    {
        let missing = world.run(command).expect_code(1);
        missing.expect_stderr("there is no job '").expect_stderr("`infra job list` shows every job");
    }
    world.run(["list"]).expect_code(0).expect_stdout("tensorflow: there are no jobs");
    let empty = world.run(["list", "--output", "json"]).expect_code(0);
    assert_eq!(empty.stdout, "[]\n");
}

#[test]
fn list_shows_jobs_of_every_namespace_and_nothing_else() {
    let world = JobWorld::new(TRAIN);
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.cluster.put("jobs", json!({"metadata": {"name": "backup", "namespace": "default"}}));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.write_job(&format!("{TRAIN}namespace: vision\n").replace("name: train\n", "name: other\n"));
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit", "--detach"]).expect_code(0);
    let list = world.run(["list"]).expect_code(0);
    assert_eq!(
        without_ages(&list.stdout),
        "NAMESPACE  JOB    FRAMEWORK  STATE     DONE  GPUS\n\
         default    train  pytorch    running   0/2   2\n\
         vision     other  pytorch    complete  2/2   0\n"
    );
    expect_fit("job-list", &[world.run(["list", "--output", "json"]).expect_code(0).stdout]);
    let list = world.run(["list", "-n", "vision"]).expect_code(0);
    assert!(!list.stdout.contains("train"), "{}", list.stdout);
}

/// The list of jobs without its last column, in which every line has an age such as `1d 3h`.
#[track_caller]
pub(super) fn without_ages(list: &str) -> String {
    let place = list.lines().next().unwrap().find("  AGE").expect("there is no age");
    let line = |line: &str| {
        let (cells, age) = line.split_at(place);
        let has_unit = age.trim().ends_with(['s', 'm', 'h']);
        assert!(age.trim() == "AGE" || has_unit, "{list}");
        format!("{}\n", cells.trim_end())
    };
    list.lines().map(line).collect()
}

#[test]
fn only_pods_with_a_machine_hold_gpus() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 1"));
    world.cluster.decide(|_, index, _| if index == 0 { Fate::Run("gpu-1") } else { Fate::Wait });
    world.run(["submit", "--detach"]).expect_code(0);
    world.run(["list"]).expect_code(0).expect_stdout("starting  0/2   1");
    // A pod of the last attempt that has not ended holds what it has.
    world.cluster.keep_pods(true);
    world.cluster.run("worker", 1, "gpu-2");
    world.cluster.finish("worker", 1, 1);
    let held = |world: &JobWorld| {
        let list = world.run(["list", "--output", "json"]).expect_code(0).stdout;
        serde_json::from_str::<Value>(&list).unwrap()[0]["gpusHeld"].clone()
    };
    assert_eq!(held(&world), 1);
    world.cluster.keep_pods(false);
    world.cluster.wait_for_attempt("worker", 1, 2);
    assert_eq!(held(&world), 1);
}

#[test]
fn a_user_of_a_namespace_sees_its_jobs() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.cluster.limit_to_namespace(Some("default"));
    let list = world.run(["list"]).expect_code(0);
    list.expect_stdout("default    train  pytorch    running  0/2   2")
        .expect_stderr("you may not see all namespaces; these are the jobs of default");
    let refused = world.run(["list", "-n", "vision"]).expect_code(1);
    refused.expect_stderr(" is forbidden: User \"ada\" cannot GET it here (403 Forbidden)");
}

#[test]
fn a_job_that_is_importing_shows_its_import() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("importing the data");
    world.cluster.run("data", 0, "worker-1");
    let status = world.run(["status"]).expect_code(0);
    let status = status.expect_stdout("default/train: importing").expect_stdout(" on the claim efs\n");
    // What trains is created when the import is complete.
    let table = "ROLE  INDEX  PHASE    NODE      RESTARTS  GPUS\n\
                 data  0      Running  worker-1  0         0\n";
    assert!(status.stdout.ends_with(table), "{}", status.stdout);
    assert!(world.cluster.object("jobsets", "default", "train").is_none());
}
