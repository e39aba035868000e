//! Jobs that are submitted: what is created in which order, and what is not created again.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{DATA, JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

fn all_well(role: &str, index: u32, _: usize) -> Fate {
    match (role, index) {
        ("worker" | "ps", 0) => Fate::Succeed("gpu-1", "well\n"),
        ("worker" | "ps", _) => Fate::Succeed("gpu-2", "well\n"),
        _ => Fate::Wait,
    }
}

fn job_set(world: &JobWorld) -> Value {
    world.cluster.object("jobsets", "default", "train").expect("there is no JobSet")
}

/// The pods of the first replicated Job.
fn pods_of(job_set: &Value) -> &Value {
    &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
}

fn variable(container: &Value, name: &str) -> Option<String> {
    let mut variables = container["env"].as_array().unwrap().iter();
    variables
        .find(|variable| variable["name"] == name)
        .map(|found| found["value"].as_str().unwrap().to_owned())
}

fn variable_of_worker(world: &JobWorld, name: &str) -> Option<String> {
    variable(&pods_of(&job_set(world))["containers"][0], name)
}

fn variable_of_prepare(world: &JobWorld, name: &str) -> Option<String> {
    let set = job_set(world);
    let container = &pods_of(&set)["initContainers"][0];
    assert_eq!(container["name"], "prepare");
    variable(container, name)
}

/// The run that `submit` names.
fn run_of(stderr: &str) -> String {
    let run = stderr.lines().find_map(|line| line.strip_prefix("run ")).expect("no run is named");
    run.to_owned()
}

#[test]
fn a_job_is_created_and_followed_to_its_end() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(all_well);
    let outcome = world.run(["submit"]).expect_code(0);
    let outcome = outcome.expect_stdout("default/train: complete, 2 of 2 done");
    // What is known of the run is written before and after.
    let (runs, scripts) = ("PATCH configmaps/train-runs", "PATCH configmaps/train-scripts");
    assert_eq!(world.cluster.changes(), [runs, runs, scripts, "PATCH jobsets/train", runs]);
    let outcome = outcome
        .expect_stderr("JobSet train: applied")
        .expect_stderr("`infra job fetch train` downloads the results");
    assert!(!outcome.stderr.contains("data"), "{}", outcome.stderr);
    let set = job_set(&world);
    assert_eq!(set["spec"]["suspend"], Value::Null);
    assert_eq!(set["metadata"]["labels"]["app.kubernetes.io/managed-by"], "infra");
    assert_eq!(set["metadata"]["labels"]["infra.internal/run"], run_of(&outcome.stderr).as_str());
}

#[test]
fn data_is_imported_before_training_may_begin() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(10);
    world.cluster.decide(all_well);
    let outcome = world.run(["submit"]).expect_code(0);
    outcome
        .expect_stderr("importing the data; training begins when that is complete")
        .expect_stderr("the data is imported")
        .expect_stdout("complete, 2 of 2 done");
    assert_eq!(
        world.cluster.history(),
        [
            "pod data 0",
            "data 0 Succeeded",
            "job train-data Complete",
            "pod worker 0",
            "pod worker 1",
            "worker 0 Succeeded",
            "worker 1 Succeeded",
            "job train-worker-0 Complete",
            "jobset train Completed",
        ]
    );
    let mut changes = world.cluster.changes();
    changes.retain(|change| change != "PATCH configmaps/train-runs");
    let expected = ["configmaps/train-scripts", "jobs/train-data", "jobsets/train"];
    assert_eq!(changes, expected.map(|change| format!("PATCH {change}")));
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
    world.cluster.install_kueue(&["team-a"]);
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("queue team-a has not admitted it yet");
    let set = job_set(&world);
    assert_eq!(set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team-a");
    assert_eq!(set["spec"]["suspend"], true);
    assert_eq!(world.cluster.history(), ["pod data 0", "data 0 Succeeded", "job train-data Complete"]);
    // Its queue decides, and coming back does not decide for it.
    let before = world.cluster.changes();
    world.run(["submit", "--detach"]).expect_code(0);
    assert_eq!(job_set(&world)["spec"]["suspend"], true);
    assert_eq!(world.cluster.changes(), before);
    let held = world.run(["status"]).expect_code(0);
    held.expect_stdout("held (queue team-a has not admitted it yet)").expect_stdout("worker  0      Held");
    let why = "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor gpu, 1 more needed";
    world.cluster.put_workload("another", "it is too large");
    world.cluster.put_workload("train", why);
    let held = world.run(["status"]).expect_code(0);
    held.expect_stdout(&format!("held (queue team-a has not admitted it yet: {why})"));
    world.cluster.change("jobsets", "default", "train", json!({"spec": {"suspend": false}}));
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
    let owned = [("jobs", "other-worker-0"), ("services", "other")];
    for (plural, name) in [("jobsets", "other"), ("configmaps", "other-scripts")].into_iter().chain(owned) {
        assert!(world.cluster.object(plural, "vision", name).is_some(), "{plural} {name}");
        world.cluster.take(plural, "vision", name);
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
    world.cluster.finish_together("worker", &[0, 1], 0);
    second.wait().expect_code(0).expect_stdout("train: complete, 2 of 2 done");
    // It saw how the run ended, and nothing else is new.
    let later = world.cluster.changes().split_off(before.len());
    assert_eq!(later, ["PATCH configmaps/train-runs"], "attaching changed something");
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
    let set = job_set(&world);
    assert_eq!(pods_of(&set)["containers"][0]["image"], "registry.example.com/train:2");
    assert_eq!(world.cluster.pods("worker").len(), 2, "pods of the first are left");

    let finished = world.run(["submit"]).expect_code(1);
    finished.expect_stderr("this very job already exists: 'train', complete").expect_stderr("--replace");
}

#[test]
fn an_unchanged_job_is_started_again_only_with_replace() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    let uid = || job_set(&world)["metadata"]["uid"].clone();
    let first = uid();
    // Another run is not what is there.
    let refused = world.run(["submit", "--detach", "--run", "second"]).expect_code(1);
    refused.expect_stderr("this very job already exists: 'train', running").expect_stderr("--replace");
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0).expect_stderr("attaching to it");
    assert_eq!(uid(), first);
    let anew = world.run(["submit", "--detach", "--replace", "--run", "second", "--yes"]).expect_code(0);
    anew.expect_stderr("deleting the existing job (running)");
    assert_ne!(uid(), first);
    assert_eq!(job_set(&world)["metadata"]["labels"]["infra.internal/run"], "second");
}

#[test]
fn two_submissions_are_two_runs_with_two_directories() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(all_well);
    let submit = |arguments: &[&str]| {
        let outcome = world.run(arguments.iter().copied()).expect_code(0);
        let run = run_of(&outcome.stderr);
        outcome.expect_stdout(&format!("run {run} in train/runs/{run} on the claim efs"));
        assert_eq!(variable_of_worker(&world, "INFRA_RUN").as_ref(), Some(&run));
        let directory = variable_of_worker(&world, "INFRA_OUTPUT_DIR").unwrap();
        assert_eq!(directory, format!("/mnt/training/train/runs/{run}/output"));
        assert_eq!(variable_of_prepare(&world, "INFRA_OUTPUT_DIR"), Some(directory.clone()));
        assert_eq!(variable_of_prepare(&world, "INFRA_RESUMED"), None);
        directory
    };
    let first = submit(&["submit"]);
    let second = submit(&["submit", "--replace"]);
    assert_ne!(first, second);
}

#[test]
fn a_resumed_run_keeps_its_name_and_its_directory() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    let directory = variable_of_worker(&world, "INFRA_OUTPUT_DIR");
    assert_eq!(variable_of_prepare(&world, "INFRA_RESUMED"), None);
    world.run(["delete", "--yes"]).expect_code(0);

    let resumed = world.run(["submit", "--detach", "--resume", "first"]).expect_code(0);
    assert_eq!(run_of(&resumed.stderr), "first");
    assert_eq!(job_set(&world)["metadata"]["labels"]["infra.internal/run"], "first");
    assert_eq!(variable_of_worker(&world, "INFRA_OUTPUT_DIR"), directory);
    assert_eq!(variable_of_prepare(&world, "INFRA_RESUMED").as_deref(), Some("yes"));
    // The job that resumed it is the one that is there.
    let again = world.run(["submit", "--detach", "--resume", "first"]).expect_code(0);
    again.expect_stderr("attaching to it");
    let other = world.run(["submit", "--detach", "--resume", "second"]).expect_code(1);
    other.expect_stderr("this very job already exists: 'train', running");
}

#[test]
fn a_deadline_is_a_moment_counted_from_the_start_of_training() {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let world = JobWorld::new(&format!("{TRAIN}{DATA}deadline: 2h\n"));
    world.cluster.run_no_programs();
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Run("gpu-1") });
    let mut running = world.infra(["submit", "--detach"]).spawn();
    running.wait_for_stderr("importing the data");
    // The import takes longer than a second.
    let begun = seconds();
    while seconds() < begun + 2 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let imported = seconds();
    world.cluster.finish("data", 0, 0);
    running.wait().expect_code(0);
    let deadline: u64 = variable_of_worker(&world, "INFRA_DEADLINE").unwrap().parse().unwrap();
    assert!((imported..=seconds()).contains(&(deadline - 7200)), "{deadline}, imported at {imported}");
    // Coming back does not move it.
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("attaching to it");
    assert_eq!(variable_of_worker(&world, "INFRA_DEADLINE"), Some(deadline.to_string()));
}

#[test]
fn foreign_objects_are_not_overwritten() {
    let world = JobWorld::new(TRAIN);
    for (plural, name) in [("services", "train"), ("jobs", "train-worker-0"), ("jobsets", "train")] {
        world.cluster.put_foreign(plural, name);
    }
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr(
            "there is a JobSet train in namespace default that infra did not create; choose another name",
        )
        .expect_stderr("there is a Job train-worker-0 in namespace default that infra did not create")
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
    world.cluster.take("configmaps", "default", "train-scripts");
    let before = world.cluster.changes().len();
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("run first");
    assert_eq!(world.cluster.changes().split_off(before), ["PATCH configmaps/train-scripts"]);
    assert_eq!(job_set(&world)["metadata"]["labels"]["infra.internal/run"], "first");
    for name in ["train-ps-0", "train-worker-0"] {
        let job = world.cluster.object("jobs", "default", name).unwrap();
        assert_eq!(job["metadata"]["labels"]["infra.internal/run"], "first", "{name}");
    }
}

#[test]
fn a_job_that_another_process_creates_at_the_same_time_is_reported() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.cluster.overtake("train");
    let overtaken = world.run(["submit"]).expect_code(1);
    let overtaken = overtaken
        .expect_stderr("JobSet train was created by another process at the same time")
        .expect_stderr("attaches to the job that exists");
    assert!(overtaken.stderr.len() < 2000, "{}", overtaken.stderr);
}

#[test]
fn an_object_that_kubernetes_finds_invalid_is_not_blamed_on_another_process() {
    let world = JobWorld::new(TRAIN);
    world
        .cluster
        .refuse_as_invalid("train", "JobSet.jobset.x-k8s.io \"train\" is invalid: spec: Invalid value");
    let refused =
        world.run(["submit"]).expect_code(1).expect_stderr("is invalid: spec: Invalid value (422 Invalid)");
    assert!(!refused.stderr.contains("another process"), "{}", refused.stderr);
}
