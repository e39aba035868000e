//! Jobs that are submitted: what is created in which order, and what is not created again.

use serde_json::json;

use super::{DATA, JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

fn all_well(role: &str, index: u32, _: usize) -> Fate {
    match (role, index) {
        ("worker" | "ps", 0) => Fate::Succeed("gpu-1", "well\n"),
        ("worker" | "ps", _) => Fate::Succeed("gpu-2", "well\n"),
        _ => Fate::Wait,
    }
}

#[test]
fn a_job_is_created_and_followed_to_its_end() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(all_well);
    let outcome = world.run(["submit"]).expect_code(0);
    let outcome = outcome.expect_stdout("default/train: complete, 2 of 2 done");
    assert_eq!(
        world.cluster.changes(),
        ["PATCH configmaps/train-scripts", "PATCH services/train", "PATCH jobs/train"]
    );
    let outcome = outcome
        .expect_stderr("Job train: applied")
        .expect_stderr("`infra job fetch train` downloads the results");
    assert!(!outcome.stderr.contains("data"), "{}", outcome.stderr);
    let job = world.cluster.object("jobs", "default", "train").unwrap();
    assert_eq!(job["spec"]["suspend"], serde_json::Value::Null);
    assert_eq!(job["metadata"]["labels"]["app.kubernetes.io/managed-by"], "infra");
}

#[test]
fn data_is_imported_before_training_may_begin() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(10);
    world.cluster.decide(all_well);
    let outcome = world.run(["submit"]).expect_code(0);
    outcome
        .expect_stderr("importing the data; training begins when that is complete")
        .expect_stderr("the data is imported; training may begin")
        .expect_stdout("complete, 2 of 2 done");
    assert_eq!(
        world.cluster.history(),
        [
            "pod data 0",
            "data 0 Succeeded",
            "job train-data Complete",
            "job train released",
            "pod worker 0",
            "worker 0 Succeeded",
            "pod worker 1",
            "worker 1 Succeeded",
            "job train Complete",
        ]
    );
    let changes =
        ["configmaps/train-scripts", "services/train", "jobs/train-data", "jobs/train", "jobs/train"];
    assert_eq!(world.cluster.changes(), changes.map(|change| format!("PATCH {change}")));
    // The real program divided the real archive.
    let parts = [0, 1].map(|number| world.read_claim(&format!("train/{number}/data/train.txt")));
    assert_eq!(parts.concat(), (0..10).map(|number| format!("line {number}\n")).collect::<String>());
    assert!(parts.iter().all(|part| part.lines().count() >= 4), "{parts:?}");
    assert_eq!(world.read_claim("train/1/data/words.txt"), "a\nb\n");
    assert_eq!(world.read_claim("train/config/model.py"), "layers = 3\n");
}

#[test]
fn a_queue_gets_the_job_when_its_data_is_there() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}queue: team-a\n"));
    world.put_archive(4);
    world.cluster.decide(all_well);
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("queue team-a has not admitted it yet");
    let job = world.cluster.object("jobs", "default", "train").unwrap();
    assert_eq!(job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team-a");
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(world.cluster.history(), ["pod data 0", "data 0 Succeeded", "job train-data Complete"]);
    // Its queue decides, and coming back does not decide for it.
    world.run(["submit", "--detach"]).expect_code(0);
    assert_eq!(world.cluster.object("jobs", "default", "train").unwrap()["spec"]["suspend"], true);
    world.admit("train");
    running.wait().expect_code(0).expect_stdout("complete");
}

#[test]
fn another_namespace_gets_a_claim_of_its_own() {
    let world = JobWorld::new(&format!("{TRAIN}namespace: vision\n"));
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.cluster.decide(all_well);
    world.run(["submit"]).expect_code(0).expect_stdout("vision/train: complete");
    let claim = world.cluster.object("persistentvolumeclaims", "vision", "efs").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    let volume = world.cluster.object("persistentvolumes", "", "tensorflow-efs-vision").unwrap();
    assert_eq!(volume["spec"]["claimRef"]["namespace"], "vision");

    // Another job finds both, and touches neither.
    let before = world.cluster.changes().len();
    world.write_job(&format!("{TRAIN}namespace: vision\n").replace("name: train\n", "name: other\n"));
    world.run(["submit"]).expect_code(0);
    let later = world.cluster.changes().split_off(before);
    assert!(later.iter().all(|change| !change.contains("persistentvolume")), "{later:?}");

    // A namespace that was removed took its claim along; the volume remembers that one.
    for plural in ["jobs", "services", "configmaps"] {
        world.cluster.take(plural, "vision", if plural == "configmaps" { "other-scripts" } else { "other" });
    }
    world.cluster.take("persistentvolumeclaims", "vision", "efs");
    world.cluster.change(
        "persistentvolumes",
        "",
        "tensorflow-efs-vision",
        json!({"status": {"phase": "Released"}}),
    );
    world.run(["submit"]).expect_code(0);
    let claim = world.cluster.object("persistentvolumeclaims", "vision", "efs").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound", "{claim}");
}

#[test]
fn submit_attaches_to_a_job_that_exists() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("`infra job logs -f train`");
    let before = world.cluster.changes();
    // Machines that went away meanwhile are no reason not to look at it.
    for number in 1..=3 {
        world.cluster.take("nodes", "", &format!("gpu-{number}"));
    }
    let mut second = world.infra(["submit"]).spawn();
    second.wait_for_stderr("job 'train' already exists and is running; attaching to it");
    second.wait_for_stderr("train: running");
    world.cluster.finish("worker", 0, 0);
    world.cluster.finish("worker", 1, 0);
    second.wait().expect_code(0).expect_stdout("train: complete, 2 of 2 done");
    assert_eq!(world.cluster.changes(), before, "attaching changed something");
}

#[test]
fn a_job_of_the_same_name_is_not_replaced_without_the_flag() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.write_job(&TRAIN.replace("train:1", "train:2"));
    let before = world.cluster.changes();
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("another job of this name already exists: 'train', running")
        .expect_stderr("`infra job submit --replace` deletes it first");
    assert_eq!(world.cluster.changes(), before, "a refusal changed something");

    let asked = world.run(["submit", "--replace"]).expect_code(1);
    asked
        .expect_stderr("Job 'train' is running. It will be deleted and started again. Continue?")
        .expect_stderr("`--yes` answers yes");
    assert_eq!(world.cluster.changes(), before, "nobody said yes");
    world.cluster.decide(all_well);
    let replaced = world.run(["submit", "--replace", "--yes"]).expect_code(0);
    replaced.expect_stderr("deleting the existing job (running)").expect_stdout("complete");
    let job = world.cluster.object("jobs", "default", "train").unwrap();
    assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example.com/train:2");
    assert_eq!(world.cluster.pods("worker").len(), 2, "pods of the first are left");

    let finished = world.run(["submit"]).expect_code(1);
    finished.expect_stderr("this very job already exists: 'train', complete").expect_stderr("--replace");
}

#[test]
fn an_unchanged_job_is_started_again_only_with_replace() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    let uid = || world.cluster.object("jobs", "default", "train").unwrap()["metadata"]["uid"].clone();
    let first = uid();
    // Another run is not what is there.
    let refused = world.run(["submit", "--detach", "--run", "second"]).expect_code(1);
    refused.expect_stderr("this very job already exists: 'train', running").expect_stderr("--replace");
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0).expect_stderr("attaching to it");
    assert_eq!(uid(), first);
    let anew = world.run(["submit", "--detach", "--replace", "--run", "second", "--yes"]).expect_code(0);
    anew.expect_stderr("deleting the existing job (running)");
    assert_ne!(uid(), first);
    let job = world.cluster.object("jobs", "default", "train").unwrap();
    assert_eq!(job["metadata"]["labels"]["infra.internal/run"], "r-second");
}

#[test]
fn foreign_objects_are_not_overwritten() {
    let world = JobWorld::new(TRAIN);
    world.cluster.put(
        "jobs",
        json!({"metadata": {"name": "train", "namespace": "default"}, "spec": {"suspend": true}}),
    );
    world.cluster.put("services", json!({"metadata": {"name": "train", "namespace": "default"}}));
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr(
            "there is a Job train in namespace default that infra did not create; choose another name",
        )
        .expect_stderr("there is a Service train in namespace default that infra did not create")
        .expect_stderr("nothing was changed");
    assert!(world.cluster.changes().is_empty());
    world.run(["submit", "--replace"]).expect_code(1);
    assert!(world.cluster.changes().is_empty());
}

#[test]
fn a_half_submitted_job_is_completed_as_the_same_run() {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let world = JobWorld::new(&job);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    world.cluster.take("jobs", "default", "train-worker");
    let before = world.cluster.changes().len();
    world.run(["submit", "--detach"]).expect_code(0);
    assert_eq!(world.cluster.changes().split_off(before), ["PATCH jobs/train-worker"]);
    for name in ["train-ps", "train-worker"] {
        let job = world.cluster.object("jobs", "default", name).unwrap();
        assert_eq!(job["metadata"]["labels"]["infra.internal/run"], "r-first", "{name}");
    }
}

#[test]
fn a_job_that_another_process_creates_at_the_same_time_is_reported() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.cluster.overtake("train");
    let overtaken = world.run(["submit"]).expect_code(1);
    let overtaken = overtaken
        .expect_stderr("Job train was created by another process at the same time")
        .expect_stderr("attaches to the job that exists");
    assert!(overtaken.stderr.len() < 2000, "{}", overtaken.stderr);
}
