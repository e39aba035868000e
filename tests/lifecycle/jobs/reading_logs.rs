//! The logs of replicas, also of those that are restarted.

use std::fs;
use std::process::Command;

use super::{JobWorld, TRAIN};
use crate::support::invocation::Invocation;
use crate::support::job_cluster::controller::Fate;
use crate::support::outcome::Outcome;

#[test]
fn a_replica_is_chosen_by_role_and_number() {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let world = JobWorld::new(&job);
    world.cluster.decide(|role, index, _| match (role, index) {
        ("ps", _) => Fate::Succeed("worker-1", "serving\n"),
        (_, 0) => Fate::Run("gpu-1"),
        _ => Fate::Wait,
    });
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "one\ntwo\nthree\n");
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
        .expect_stderr("`infra job logs train --role worker --index 0 --attempt 0` reads what it printed from the claim");
}

#[test]
fn a_log_is_followed_from_the_first_line_to_the_last_across_restarts_and_breaks() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.run(["submit", "--detach"]).expect_code(0);
    let mut following = world.infra(["logs", "-f", "--index", "1"]).spawn();
    following.wait_for_stderr("waiting for worker 1 to start");
    world.cluster.run("worker", 1, "gpu-1");
    world.cluster.run("worker", 0, "gpu-2");
    world.cluster.print("worker", 1, "step 1\n");
    following.wait_for_stdout("step 1\n");
    // Comes while the connection is open, and not only at the end.
    world.cluster.print("worker", 1, "step 2\n");
    following.wait_for_stdout("step 2\n");
    world.cluster.finish("worker", 1, 1);
    following.wait_for_stderr("waiting for worker 1 to start again");
    world.cluster.run("worker", 1, "gpu-3");
    world.cluster.run("worker", 0, "gpu-2");
    following.wait_for_stderr("-- restarted as train-worker-0-1-");
    world.cluster.print("worker", 1, "again 1\n");
    following.wait_for_stdout("again 1\n");
    world.cluster.break_logs();
    following.wait_for_stderr("-- the connection broke; some lines may repeat --");
    world.cluster.print("worker", 1, "again 2\n");
    following.wait_for_stdout("again 2\n");
    world.cluster.set_unreachable(true);
    world.cluster.break_logs();
    following.wait_for_stderr("cannot be reached");
    world.cluster.set_unreachable(false);
    world.cluster.print("worker", 1, "again 3\n");
    following.wait_for_stdout("again 3\n");
    world.cluster.finish("worker", 1, 0);
    // The other one still runs; this one has nothing more to say.
    following.wait().expect_code(0);
    assert_eq!(world.cluster.restarts("train"), (1, 1));
    world.run(["status"]).expect_code(0).expect_stdout("train: running, 1 of 2 done");
}

#[test]
fn what_a_pod_printed_between_a_break_and_its_end_is_printed() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "step 1\n");
    let mut following = world.infra(["logs", "-f"]).spawn();
    following.wait_for_stdout("step 1\n");
    world.cluster.set_unreachable(true);
    world.cluster.break_logs();
    following.wait_for_stderr("cannot be reached");
    world.cluster.print("worker", 0, "the end\n");
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    world.cluster.set_unreachable(false);
    following.wait().expect_code(0).expect_stdout("the end\n");
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

/// `infra job …` whose output goes to `head -n 1`, as in a shell, where the pipe is over when both have ended.
fn piped_to_head(world: &JobWorld, words: &str) -> Outcome {
    let infra = env!("CARGO_BIN_EXE_infra");
    let root = world.workspace.root().display().to_string();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{infra} -C {root} job {words} | head -n 1")]);
    Invocation::of_infra(command).env("INFRA_API_SERVER", &world.cluster.address()).run()
}

#[test]
fn following_ends_with_its_reader() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "step 1\n");
    world.cluster.print("worker", 1, "step 1\n");
    // Nothing more is printed, and the job runs on.
    for (words, line) in [("logs -f", "step 1\n"), ("logs --all -f --role worker", "worker-")] {
        let seen = piped_to_head(&world, words);
        assert!(seen.stdout.starts_with(line), "{seen:#?}");
        assert_eq!(seen.stdout.lines().count(), 1, "{seen:#?}");
        assert_eq!(seen.stderr, "", "{words}");
    }
    world.run(["status"]).expect_code(0).expect_stdout("train: running");
}

/// A job whose group was restarted once, and whose launchers wrote the logs of both attempts.
fn with_two_attempts() -> JobWorld {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.cluster.decide(|role, _, _| if role == "files" { Fate::Wait } else { Fate::Run("gpu-1") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    for (attempt, replica, file, text) in [
        (0, "worker-0", "output.log", "lost my peer\n"),
        (0, "worker-1", "output.log.1", "epoch 1\n"),
        (0, "worker-1", "output.log", "epoch 2\nValueError: a bad sample\n"),
        (1, "worker-1", "output.log", "epoch 1 again\n"),
    ] {
        let directory =
            world.cluster.claim().join(format!("train/runs/r-1/logs/attempt-{attempt}/{replica}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(file), text).unwrap();
    }
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 1, 2);
    world
}

#[track_caller]
fn expect_no_pod(world: &JobWorld) {
    world.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
}

#[test]
fn the_log_of_an_attempt_that_ended_is_read_from_the_claim() {
    let world = with_two_attempts();
    let printed = |arguments: &[&str]| {
        let all = ["logs", "--attempt"].into_iter().chain(arguments.iter().copied());
        world.run(all).expect_code(0).stdout
    };
    assert_eq!(printed(&["0", "--index", "1"]), "epoch 1\nepoch 2\nValueError: a bad sample\n");
    assert_eq!(printed(&["0"]), "lost my peer\n");
    assert_eq!(printed(&["1", "--index", "1"]), "epoch 1 again\n");
    expect_no_pod(&world);
    for other in ["--follow", "--tail=3"] {
        world.run(["logs", "--attempt", "0", other]).expect_code(2);
    }
}

#[test]
fn an_attempt_without_a_log_is_explained() {
    let world = with_two_attempts();
    let before = world.cluster.changes();
    let missing = world.run(["logs", "--index", "1", "--attempt", "2"]).expect_code(1);
    missing
        .expect_stderr("worker 1 of job 'train' has had no attempt 2; the newest is attempt 1")
        .expect_stderr("attempts are counted from 0");
    assert_eq!(world.cluster.changes(), before);
    // Its launcher did not come far enough.
    let missing = world.run(["logs", "--attempt", "1"]).expect_code(1);
    let missing = missing
        .expect_stderr("the log of worker 0 of job 'train' in attempt 1 cannot be read: there is no directory train/runs/r-1/logs/attempt-1/worker-0 on the claim efs")
        .expect_stderr("`infra job logs train --role worker --index 0` reads the log of its pod");
    assert!(!missing.stderr.contains("--path"), "{}", missing.stderr);
    expect_no_pod(&world);
}

#[test]
fn an_interruption_leaves_no_pod_behind() {
    let world = with_two_attempts();
    world.cluster.run_no_programs();
    let reading = world.infra(["logs", "--attempt", "0"]).spawn();
    world.cluster.pod("files", 0);
    reading.interrupt();
    let left = reading.wait().expect_code(130);
    assert_eq!(left.stdout, "");
    expect_no_pod(&world);
}
