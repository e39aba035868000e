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
    world.cluster.finish("worker", 0, 0);
    world.cluster.finish("worker", 1, 0);
    second.wait().expect_code(0).expect_stdout("complete, 2 of 2 done");
}

#[test]
fn a_detached_import_continues_and_the_next_submit_starts_training() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut first = world.infra(["submit"]).spawn();
    first.wait_for_stderr("importing the data");
    world.cluster.run("data", 0, "worker-1");
    first.interrupt();
    let left = first.wait().expect_code(5);
    left.expect_stderr("the import of job 'train' continues, but training does not begin by itself")
        .expect_stderr("run `infra job submit` again: it waits for the import, then starts training");
    world.run(["status"]).expect_code(0).expect_stdout("default/train: importing");

    world.cluster.finish("data", 0, 0);
    world.run(["status"]).expect_code(0).expect_stdout(
        "default/train: held (its data is imported; `infra job submit` starts training), 0 of 2 done",
    );
    let before = world.cluster.changes().len();
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0).expect_stdout("complete");
    assert_eq!(world.cluster.changes().split_off(before), ["PATCH jobs/train"]);
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
    // A day after its end a Job is removed, whether its end was good or not.
    world.cluster.take("jobs", "default", "train-data");
    world.cluster.run_programs();
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    world.run(["submit"]).expect_code(0).expect_stdout("complete");
    let history = world.cluster.history();
    let place = |what: &str| history.iter().position(|event| event == what);
    assert!(place("data 0 Succeeded") < place("job train released"), "{history:?}");
    assert!(place("data 0 Succeeded").is_some(), "{history:?}");
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
