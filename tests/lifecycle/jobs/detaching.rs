//! Detaching from a job at any point, and attaching to it again.

use super::{DATA, JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

#[test]
fn a_detached_job_continues_and_submit_attaches_to_it() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let mut first = world.infra(["submit"]).spawn();
    first.wait_for_stderr("train: running");
    first.interrupt();
    let left = first.wait().expect_code(5);
    left.expect_stderr("job 'train' continues")
        .expect_stderr("`infra job submit` or `infra job logs -f train`");

    let late = world.run(["submit", "--timeout", "1s"]).expect_code(5);
    late.expect_stderr("job 'train' continues: the time limit for following it was reached");

    let mut second = world.infra(["submit"]).spawn();
    second.wait_for_stderr("attaching to it");
    world.cluster.finish_together("worker", &[0, 1], 0);
    second.wait().expect_code(0).expect_stdout("complete, 2 of 2 done");
}

#[test]
fn a_detached_import_continues_and_the_next_submit_starts_training() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut first = world.infra(["submit", "--run", "first"]).spawn();
    first.wait_for_stderr("importing the data");
    world.cluster.run("data", 0, "worker-1");
    first.interrupt();
    let left = first.wait().expect_code(5);
    left.expect_stderr("the import of job 'train' continues, but training does not begin by itself")
        .expect_stderr("run `infra job submit` again: it waits for the import, then starts training");
    world.run(["status"]).expect_code(0).expect_stdout("default/train: importing");

    world.cluster.finish("data", 0, 0);
    let held = world.run(["status"]).expect_code(0);
    held.expect_stdout("default/train: held (its data is imported; `infra job submit` starts training)");
    assert!(world.cluster.object("jobsets", "default", "train").is_none());
    let before = world.cluster.changes().len();
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    let second = world.run(["submit"]).expect_code(0).expect_stdout("complete");
    second
        .expect_stderr("job 'train' already exists and is held; attaching to it")
        .expect_stderr("run first");
    let changes = world.cluster.changes().split_off(before);
    assert_eq!(changes, ["PATCH jobsets/train", "PATCH configmaps/train-runs"]);
    let job_set = world.cluster.object("jobsets", "default", "train").unwrap();
    assert_eq!(job_set["metadata"]["labels"]["infra.internal/run"], "first");
}

#[test]
fn an_import_of_a_resumed_run_is_continued_as_that_run() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut first = world.infra(["submit", "--resume", "first"]).spawn();
    first.wait_for_stderr("importing the data");
    first.interrupt();
    first.wait().expect_code(5);
    world.cluster.finish("data", 0, 0);
    // Whoever continues does not say again that the run is resumed: without that, its pods would refuse a run that exists.
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("run first");
    let job_set = world.cluster.object("jobsets", "default", "train").unwrap();
    assert_eq!(job_set["metadata"]["labels"]["infra.internal/run"], "first");
    let pods = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    let prepare = pods["initContainers"][0]["env"].as_array().unwrap();
    let resumed = prepare.iter().find(|variable| variable["name"] == "INFRA_RESUMED");
    assert_eq!(resumed.map(|variable| &variable["value"]), Some(&serde_json::json!("yes")), "{prepare:?}");
}

#[test]
fn an_import_of_a_new_run_is_not_continued_as_a_resumed_one() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut first = world.infra(["submit", "--run", "first"]).spawn();
    first.wait_for_stderr("importing the data");
    first.interrupt();
    first.wait().expect_code(5);
    world.cluster.finish("data", 0, 0);
    // It names the run, but does not make another of it.
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--resume", "first"]).expect_code(0).expect_stderr("attaching to it");
    let job_set = world.cluster.object("jobsets", "default", "train").unwrap();
    assert!(!job_set.to_string().contains("INFRA_RESUMED"), "{job_set}");
}

#[test]
fn an_import_whose_job_was_deleted_runs_again_before_training() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(4);
    world.cluster.run_no_programs();
    let mut first = world.infra(["submit"]).spawn();
    first.wait_for_stderr("importing the data");
    first.interrupt();
    first.wait().expect_code(5);
    // A day after its end a Job is removed with its pods, whether its end was good or not.
    let pods = world.cluster.pods("data");
    assert_eq!(pods.len(), 1, "{pods:?}");
    world.cluster.take("jobs", "default", "train-data");
    world.cluster.take("pods", "default", &pods[0]);
    world.cluster.run_programs();
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    world.run(["submit"]).expect_code(0).expect_stdout("complete");
    let history = world.cluster.history();
    let place = |what: &str| history.iter().position(|event| event == what);
    assert!(place("job train-data Complete") < place("pod worker 0"), "{history:?}");
    assert!(place("job train-data Complete").is_some(), "{history:?}");
}

#[test]
fn a_second_interruption_ends_at_once() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("train: running");
    world.cluster.stall(true);
    world.cluster.wait_for_stalled();
    running.interrupt();
    running.wait_for_stderr("detaching; a second Ctrl-C exits at once");
    running.interrupt();
    running.wait().expect_code(130);
    world.cluster.stall(false);
}
