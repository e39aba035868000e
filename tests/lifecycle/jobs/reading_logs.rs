//! The logs of replicas, also of those that are restarted.

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

#[test]
fn a_replica_is_chosen_by_role_and_number() {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let world = JobWorld::new(&job);
    world.cluster.decide(|role, index, _| match (role, index) {
        ("ps", _) => Fate::Succeed("worker-1", "serving\n"),
        (_, 0) => Fate::Succeed("gpu-1", "one\ntwo\nthree\n"),
        _ => Fate::Wait,
    });
    world.run(["submit", "--detach"]).expect_code(0);
    assert_eq!(world.run(["logs"]).expect_code(0).stdout, "one\ntwo\nthree\n");
    assert_eq!(world.run(["logs", "--tail", "2"]).expect_code(0).stdout, "two\nthree\n");
    assert_eq!(world.run(["logs", "train", "--role", "ps"]).expect_code(0).stdout, "serving\n");
    let waiting = world.run(["logs", "--index", "1"]).expect_code(1);
    waiting
        .expect_stderr("worker 1 has not started: worker 1: Pending")
        .expect_stderr("`--follow` waits for it");
    let missing = world.run(["logs", "--index", "7"]).expect_code(1);
    missing
        .expect_stderr("job 'train' has no replica with number 7")
        .expect_stderr("`infra job status train`");
    let missing = world.run(["logs", "--role", "chief"]).expect_code(1);
    missing.expect_stderr("job 'train' has no replica of role chief with number 0");
}

#[test]
fn a_log_that_went_with_its_machine_is_said_to_be_gone() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Succeed("ip-10-0-0-7.us-west-2.compute.internal", "one\n"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.lose_node("ip-10-0-0-7.us-west-2.compute.internal");
    world
        .run(["logs"])
        .expect_code(1)
        .expect_stderr("worker 0 of job 'train' ran on ip-10-0-0-7.us-west-2.compute.internal; that machine is gone, and the log with it")
        .expect_stderr("`infra job fetch train` downloads what it wrote");
}

#[test]
fn a_log_is_followed_from_the_first_line_to_the_last_across_restarts_and_breaks() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.run(["submit", "--detach"]).expect_code(0);
    let mut following = world.infra(["logs", "-f"]).spawn();
    following.wait_for_stderr("waiting for worker 0 to start");
    world.cluster.run("worker", 0, "gpu-1");
    world.cluster.run("worker", 1, "gpu-2");
    world.cluster.print("worker", 0, "step 1\n");
    following.wait_for_stdout("step 1\n");
    // Comes while the connection is open, and not only at the end.
    world.cluster.print("worker", 0, "step 2\n");
    following.wait_for_stdout("step 2\n");
    world.cluster.finish("worker", 0, 1);
    following.wait_for_stderr("waiting for worker 0 to start again");
    world.cluster.run("worker", 0, "gpu-3");
    following.wait_for_stderr("-- restarted as train-0-");
    world.cluster.print("worker", 0, "again 1\n");
    following.wait_for_stdout("again 1\n");
    world.cluster.break_logs();
    following.wait_for_stderr("-- the connection broke; some lines may repeat --");
    world.cluster.print("worker", 0, "again 2\n");
    following.wait_for_stdout("again 2\n");
    world.cluster.set_unreachable(true);
    world.cluster.break_logs();
    following.wait_for_stderr("cannot be reached");
    world.cluster.set_unreachable(false);
    world.cluster.print("worker", 0, "again 3\n");
    following.wait_for_stdout("again 3\n");
    world.cluster.finish("worker", 0, 0);
    // The other one still runs; this one has nothing more to say.
    following.wait().expect_code(0);
}

#[test]
fn following_ends_with_an_interruption() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "step 1\n");
    let mut following = world.infra(["logs", "-f"]).spawn();
    following.wait_for_stdout("step 1\n");
    following.interrupt();
    following.wait().expect_code(130);
}
