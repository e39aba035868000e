//! The logs of all replicas as one.

use std::fs;

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

fn with_servers() -> JobWorld {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let world = JobWorld::new(&job);
    world.cluster.decide(|role, index, _| match (role, index) {
        ("ps", _) => Fate::Run("worker-1"),
        (_, 0) => Fate::Run("gpu-1"),
        _ => Fate::Wait,
    });
    world.run(["submit", "--detach"]).expect_code(0);
    world
}

#[test]
fn each_line_is_behind_the_name_of_its_replica() {
    let world = with_servers();
    let waiting = world.run(["logs", "--all", "--role", "worker"]).expect_code(0);
    waiting.expect_stderr("worker 1 has not started: worker 1: Pending");
    world.cluster.print("worker", 0, "one\ntwo\nthree");
    world.cluster.print("ps", 0, "serving\n");
    world.cluster.run("worker", 1, "gpu-2");
    world.cluster.print("worker", 1, "10 %\r20 %\r\ndone\n");
    let all = world.run(["logs", "--all"]).expect_code(0);
    assert_eq!(
        all.stdout,
        "ps-0     │ serving\nworker-0 │ one\nworker-0 │ two\nworker-0 │ three\n\
         worker-1 │ 10 %\nworker-1 │ 20 %\nworker-1 │ done\n"
    );
    assert_eq!(all.stderr, "");
    let workers = world.run(["logs", "train", "--all", "--role", "worker", "--tail", "1"]).expect_code(0);
    assert_eq!(workers.stdout, "worker-0 │ three\nworker-1 │ done\n");
}

#[test]
fn a_role_that_does_not_exist_is_named() {
    let world = with_servers();
    for more in [&["--follow"][..], &[]] {
        let arguments = ["logs", "--all", "--role", "chief"].into_iter().chain(more.iter().copied());
        let missing = world.run(arguments).expect_code(1);
        missing
            .expect_stderr("job 'train' has no replica of role chief")
            .expect_stderr("`infra job status train` lists its replicas");
    }
    for more in [["--index", "1"].as_slice(), &["--attempt", "0", "--follow"]] {
        let arguments = ["logs", "--all"].into_iter().chain(more.iter().copied());
        world.run(arguments).expect_code(2).expect_stderr("cannot be used with");
    }
}

#[test]
fn a_job_of_which_nothing_runs_has_no_logs() {
    let world = JobWorld::new(TRAIN);
    world.run(["submit", "--detach"]).expect_code(0);
    let waiting = world.run(["logs", "--all"]).expect_code(1);
    waiting.expect_stderr("worker 0 has not started: ").expect_stderr("`--follow` waits for it");
}

#[test]
fn all_replicas_are_followed_through_attempts_and_breaks_to_the_end_of_the_job() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.run(["submit", "--detach"]).expect_code(0);
    let mut following = world.infra(["logs", "--all", "-f"]).spawn();
    following.wait_for_stderr("-- the job is starting: worker 0: Pending --");
    world.cluster.run("worker", 0, "gpu-1");
    world.cluster.run("worker", 1, "gpu-2");
    // A line is printed when it is whole, whoever prints meanwhile.
    world.cluster.print("worker", 0, "epoch 1: ");
    world.cluster.print("worker", 1, "ready\n");
    following.wait_for_stdout("worker-1 │ ready\n");
    world.cluster.print("worker", 0, "loss 0.5\n");
    following.wait_for_stdout("worker-0 │ epoch 1: loss 0.5\n");
    world.cluster.print("worker", 1, "ValueError: a bad sample\n");
    world.cluster.finish("worker", 1, 1);
    following.wait_for_stdout("worker-1 │ ValueError: a bad sample\n");
    world.cluster.wait_for_attempt("worker", 1, 2);
    world.cluster.run("worker", 0, "gpu-1");
    world.cluster.run("worker", 1, "gpu-3");
    following.wait_for_stderr("-- attempt 1 begins: restarted after 1 failure of 2 --");
    world.cluster.print("worker", 0, "again 0\n");
    world.cluster.print("worker", 1, "again 1\n");
    following.wait_for_stdout("worker-0 │ again 0\n");
    following.wait_for_stdout("worker-1 │ again 1\n");
    world.cluster.break_logs();
    following.wait_for_stderr("-- the connection broke; some lines may repeat --");
    world.cluster.print("worker", 1, "after the break\n");
    following.wait_for_stdout("worker-1 │ after the break\n");
    world.cluster.set_unreachable(true);
    world.cluster.break_logs();
    following.wait_for_stderr("cannot be reached");
    // What came between a break and the end is not lost.
    world.cluster.print("worker", 0, "the last line has no end");
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    world.cluster.set_unreachable(false);
    let seen = following.wait().expect_code(0);
    seen.stdout.lines().for_each(|line| {
        assert!(line.starts_with("worker-0 │ ") || line.starts_with("worker-1 │ "), "{}", seen.stdout);
    });
    assert_eq!(seen.stdout.matches("epoch 1").count(), 1, "{}", seen.stdout);
    assert_eq!(seen.stderr.matches("begins").count(), 1, "{}", seen.stderr);
    assert!(seen.stdout.contains("worker-0 │ the last line has no end\n"), "{}", seen.stdout);
}

#[test]
fn a_replica_that_printed_nothing_does_not_keep_the_logs_open_after_a_break() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "step 1\n");
    let mut following = world.infra(["logs", "--all", "-f"]).spawn();
    following.wait_for_stdout("worker-0 │ step 1\n");
    world.cluster.set_unreachable(true);
    world.cluster.break_logs();
    following.wait_for_stderr("cannot be reached");
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    world.cluster.set_unreachable(false);
    following.wait().expect_code(0);
}

#[test]
fn an_attempt_that_nobody_saw_is_mentioned() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 3"));
    world.cluster.decide(|_, index, attempt| match (index, attempt) {
        (1, 1) => Fate::Fail("gpu-2", 1, "too short to be seen\n"),
        _ => Fate::Run("gpu-1"),
    });
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 1, "step 1\n");
    let mut following = world.infra(["logs", "--all", "-f"]).spawn();
    following.wait_for_stdout("worker-1 │ step 1\n");
    world.cluster.stall(true);
    world.cluster.wait_for_stalled();
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 2, 2);
    world.cluster.stall(false);
    following.wait_for_stderr(
        "-- attempt 1 has ended already; `infra job logs train --all --attempt 1` reads it from the claim --",
    );
    following.wait_for_stderr("-- attempt 2 begins: restarted after 2 failures of 3 --");
    following.interrupt();
    following.wait().expect_code(130);
}

#[test]
fn control_codes_are_kept_for_a_pipe_and_replaced_on_a_terminal() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 1, "\u{1b}[32mgreen\u{1b}[0m \u{1b}[2J\n");
    let seen = world.at_terminal("logs --all", "").expect_code(0);
    assert_eq!(seen.stdout, "worker-1 │ green �[2J\r\n");
    let piped = world.run(["logs", "--all"]).expect_code(0);
    assert_eq!(piped.stdout, "worker-1 │ \u{1b}[32mgreen\u{1b}[0m \u{1b}[2J\n");
}

#[test]
fn the_logs_of_an_attempt_that_ended_are_read_from_the_claim() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.cluster.decide(|role, _, _| if role == "files" { Fate::Wait } else { Fate::Run("gpu-1") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    for (replica, file, text) in [
        ("worker-0", "output.log", "lost my peer\n"),
        ("worker-1", "output.log.1", "epoch 1\nepo"),
        ("worker-1", "output.log", "ch 2\nValueError: a bad sample\n"),
    ] {
        let directory = world.cluster.claim().join(format!("train/runs/r-1/logs/attempt-0/{replica}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(file), text).unwrap();
    }
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 1, 2);
    let all = world.run(["logs", "--all", "--attempt", "0"]).expect_code(0);
    assert_eq!(
        all.stdout,
        "worker-0 │ lost my peer\nworker-1 │ epoch 1\nworker-1 │ epoch 2\nworker-1 │ ValueError: a bad sample\n"
    );
    let missing = world.run(["logs", "--all", "--attempt", "1"]).expect_code(1);
    missing
        .expect_stderr("the logs of all replicas of job 'train' in attempt 1 cannot be read: there is no directory train/runs/r-1/logs/attempt-1 on the claim efs")
        .expect_stderr("`infra job logs train --all` reads the logs of its pods");
    let before = world.cluster.changes();
    let missing = world.run(["logs", "--all", "--attempt", "2"]).expect_code(1);
    missing
        .expect_stderr("job 'train' has had no attempt 2; the newest is attempt 1")
        .expect_stderr("attempts are counted from 0");
    assert_eq!(world.cluster.changes(), before);
    world.cluster.wait_for("the pod of the files to go", |state| (!state.has_pod_of("files")).then_some(()));
}
