//! Jobs that fail, and what is reported about them.

use serde_json::{Value, json};

use super::{DATA, JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

#[test]
fn a_failed_replica_is_named_with_its_exit_code_and_last_lines() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, index, _| match index {
        0 => Fate::Run("gpu-1"),
        _ => Fate::Fail("gpu-2", 3, "epoch 1\nRuntimeError: CUDA out of memory\n"),
    });
    let failed = world.run(["submit"]).expect_code(1);
    failed
        .expect_stderr(
            "job 'train' failed: BackoffLimitExceeded: Job has reached the specified backoff limit",
        )
        .expect_stderr("  worker 1 on gpu-2: worker ended with 3")
        .expect_stderr("    RuntimeError: CUDA out of memory")
        .expect_stderr("`infra job logs train --role worker --index 1` shows its whole log")
        .expect_stdout("worker  1      Failed");
    let status = world.run(["status"]).expect_code(3);
    status.expect_stdout("train: failed (BackoffLimitExceeded");
    world.run(["logs", "--index", "1"]).expect_code(0).expect_stdout("epoch 1\nRuntimeError");
}

#[test]
fn the_replica_that_failed_first_is_reported() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let running = world.infra(["submit"]).spawn();
    world.cluster.print("worker", 1, "ValueError: a bad sample\n");
    world.cluster.print("worker", 0, "lost my peer\n");
    world.cluster.finish_together("worker", &[1, 0], 1);
    let failed = running.wait().expect_code(1);
    let failed = failed.expect_stderr("worker 1 on gpu-1: worker ended with 1").expect_stderr("ValueError");
    assert!(!failed.stderr.contains("    lost my peer"), "{}", failed.stderr);
    assert_eq!(world.cluster.restarts("train"), (0, 0));
}

#[test]
fn failures_of_an_earlier_attempt_are_not_reported() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 1"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let running = world.infra(["submit"]).spawn();
    world.cluster.print("worker", 0, "lost my peer\n");
    world.cluster.finish_together("worker", &[0, 1], 1);
    world.cluster.print("worker", 1, "ValueError: a bad sample\n");
    // One more than it may have: the job ends, and the new pod of the other is removed with it.
    world.cluster.finish("worker", 1, 1);
    let failed = running.wait().expect_code(1);
    let failed = failed.expect_stderr("the specified backoff limit (after 1 restart)");
    let failed = failed.expect_stderr("worker 1 on gpu-1: worker ended with 1").expect_stderr("ValueError");
    assert!(!failed.stderr.contains("    lost my peer"), "{}", failed.stderr);
}

#[test]
fn permanent_failures_are_not_retried() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 5"));
    world.cluster.decide(|_, index, _| match index {
        0 => Fate::Fail("gpu-1", 64, "infra: no NVIDIA_VISIBLE_DEVICES\n"),
        _ => Fate::Run("gpu-2"),
    });
    let failed = world.run(["submit"]).expect_code(1);
    failed
        .expect_stderr("PodFailurePolicy")
        .expect_stderr("exit code 64")
        .expect_stderr("    infra: no NVIDIA");
    assert_eq!(world.cluster.history().iter().filter(|event| *event == "pod worker 0").count(), 1);
    assert_eq!(world.cluster.restarts("train"), (0, 0));
    let status = world.run(["status"]).expect_code(3).expect_stdout("train: failed (PodFailurePolicy");
    assert!(!status.stdout.contains("restarted after"), "{}", status.stdout);
}

#[test]
fn one_failure_restarts_the_whole_group_and_counts_once() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("train: running");
    let before = world.cluster.pods("worker");
    world.cluster.finish("worker", 1, 137);
    running.wait_for_stderr("worker 0: Running on gpu-1, restarted once");
    running.wait_for_stderr("worker 1: Running on gpu-1, restarted once");
    world.cluster.wait_for_attempt("worker", 1, 2);
    let now = world.cluster.pods("worker");
    assert!(now.iter().all(|pod| !before.contains(pod)), "{now:?} {before:?}");
    assert_eq!(world.cluster.restarts("train"), (1, 1));
    let status = world.run(["status"]).expect_code(0);
    status.expect_stdout("default/train: running, 0 of 2 done, restarted after 1 failure of 2\n");
    // Index 0 last: with its end the job is complete.
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    let outcome = running.wait().expect_code(0);
    let line = outcome.stdout.lines().find(|line| line.starts_with("worker  1")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["worker", "1", "Succeeded", "gpu-1", "1", "1"]);
    outcome.expect_stdout("default/train: complete, 2 of 2 done, restarted after 1 failure of 2\n");
}

#[test]
fn a_job_without_retries_left_fails_with_its_last_failure() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 2"));
    world.cluster.decide(|_, index, attempt| match (index, attempt) {
        (0, _) => Fate::Run("gpu-1"),
        (_, 2) => Fate::Fail("gpu-2", 3, "ValueError: a bad sample\n"),
        _ => Fate::Fail("gpu-2", 1, "ConnectionError: no route\n"),
    });
    let failed = world.run(["submit"]).expect_code(1);
    let failed = failed
        .expect_stderr("job 'train' failed: BackoffLimitExceeded: Job has reached the specified backoff limit (after 2 restarts)")
        .expect_stderr("  worker 1 on gpu-2: worker ended with 3")
        .expect_stderr("    ValueError: a bad sample");
    assert!(!failed.stderr.contains("ConnectionError"), "{}", failed.stderr);
    assert_eq!(world.cluster.restarts("train"), (2, 2));
    assert_eq!(world.cluster.history().iter().filter(|event| *event == "pod worker 1").count(), 3);
    let status = world.run(["status"]).expect_code(3);
    status
        .expect_stdout("train: failed (BackoffLimitExceeded")
        .expect_stdout("restarted after 2 failures of 2");
}

#[test]
fn a_lost_machine_restarts_the_group_and_does_not_count() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, index, attempt| match (index, attempt) {
        (0, 0) => Fate::Run("gpu-1"),
        (_, 0) => Fate::Run("gpu-2"),
        _ => Fate::Wait,
    });
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("train: running");
    world.cluster.lose_machine("gpu-2");
    running.wait_for_stderr("train: starting: a machine was lost; the whole group is restarted");
    world.cluster.wait_for_attempt("worker", 1, 2);
    world.cluster.run("worker", 0, "gpu-1");
    world.cluster.run("worker", 1, "gpu-3");
    running.wait_for_stderr("worker 1: Running on gpu-3, restarted once");
    assert_eq!(world.cluster.restarts("train"), (1, 0));
    world.run(["status"]).expect_code(0).expect_stdout("restarted after 1 lost machine\n");
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    running.wait().expect_code(0).expect_stdout("2 of 2 done, restarted after 1 lost machine\n");
}

/// A machine that comes back finds its containers dead, and reports 255 of them.
#[test]
fn a_machine_without_power_for_a_moment_does_not_count() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.finish("worker", 1, 255);
    world.cluster.wait_for_attempt("worker", 1, 2);
    assert_eq!(world.cluster.restarts("train"), (1, 0));
    world.run(["status"]).expect_code(0).expect_stdout("restarted after 1 lost machine\n");
}

#[test]
fn failures_and_lost_machines_are_told_apart() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 3"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.evict("worker", 0);
    world.cluster.wait_for_attempt("worker", 1, 2);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 2, 2);
    world.cluster.evict("worker", 1);
    world.cluster.wait_for_attempt("worker", 3, 2);
    assert_eq!(world.cluster.restarts("train"), (3, 1));
    let status = world.run(["status"]).expect_code(0);
    status.expect_stdout("running, 0 of 2 done, restarted after 1 failure of 3 and 2 lost machines\n");
    let status = world.run(["status", "--output", "json"]).expect_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["restarts"], json!({"failures": 1, "lostMachines": 2, "allowed": 3}));
}

#[test]
fn data_that_is_not_there_fails_with_the_reason_and_holds_no_gpu() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    let failed = world.run(["submit"]).expect_code(1);
    failed
        .expect_stderr("the data of job 'train' could not be imported: there is no ")
        .expect_stderr("import/data.tar.gz: copy the archive there first")
        .expect_stderr("`infra job logs train --role data` shows its whole log; fix the cause, then run `infra job submit --replace`");
    assert!(world.cluster.pods("worker").is_empty());
    world
        .run(["logs", "train", "--role", "data"])
        .expect_code(0)
        .expect_stdout("copy the archive there first");
    let status =
        world.run(["status"]).expect_code(3).expect_stdout("train: failed (its data: PodFailurePolicy");
    status.expect_stdout("data  0      Failed");

    world.put_archive(4);
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    world.run(["submit", "--replace"]).expect_code(0).expect_stdout("complete");
}

#[test]
fn a_waiting_import_reports_what_it_waits_for() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut running = world.infra(["submit"]).spawn();
    let waiting = json!({"reason": "ImagePullBackOff", "message": "no such image"});
    world.cluster.set_status(
        "data",
        0,
        json!({"phase": "Pending", "containerStatuses": [{"name": "data", "state": {"waiting": waiting}}]}),
    );
    running.wait_for_stderr("the import is waiting: ImagePullBackOff: no such image");
    world
        .run(["status"])
        .expect_code(0)
        .expect_stdout("default/train: importing (its data: ImagePullBackOff: no such image)");
}

#[test]
fn an_api_server_that_has_just_started_is_asked_again() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.cluster.refuse_early_requests(2);
    world.run(["submit", "--detach"]).expect_code(0);
    for words in [["status", "train"].as_slice(), &["logs", "train"], &["delete", "train", "--yes"]] {
        world.cluster.refuse_early_requests(2);
        let ended = world.run(words.iter().copied()).expect_code(0);
        assert!(!ended.stderr.contains("429"), "{}", ended.stderr);
        assert_eq!(world.cluster.early_requests(), 0);
    }
}

#[test]
fn following_a_job_waits_for_an_unreachable_api() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("importing the data");
    world.cluster.refuse_with(Some((503, "the server is shutting down")));
    running.wait_for_stderr(
        "the server is shutting down (503 ServiceUnavailable); the job continues, and is still followed",
    );
    world.cluster.refuse_with(None);
    running.wait_for_stderr("the Kubernetes API answers again");
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.cluster.finish("data", 0, 0);
    running.wait_for_stderr("train: running");
    world.cluster.set_unreachable(true);
    running.wait_for_stderr("cannot be reached");
    world.cluster.set_unreachable(false);
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    running.wait().expect_code(0).expect_stdout("complete");
}

#[test]
fn a_job_that_another_user_deletes_is_reported() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("train: running");
    world.cluster.take("jobsets", "default", "train");
    let missed = running.wait().expect_code(1);
    missed.expect_stderr("job 'train' was deleted by someone else").expect_stderr("its files stay");
}

#[test]
fn a_job_past_its_deadline_is_reported() {
    let job = TRAIN.replace("retries: 0", "retries: 3");
    let world = JobWorld::new(&format!("{job}deadline: 1h\n"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("train: running");
    world.cluster.end_job(
        "train-worker-0",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    );
    let failed = running.wait().expect_code(1);
    failed
        .expect_stderr("DeadlineExceeded: Job was active longer")
        .expect_stderr("`infra job submit --replace`");
    world.cluster.wait_for("the end of the pods", |state| (!state.has_pod_of("worker")).then_some(()));
    world.run(["status"]).expect_code(3).expect_stdout("worker  1      Removed");
    let gone = world.run(["logs"]).expect_code(1);
    gone.expect_stderr("worker 0 of job 'train' no longer has a pod, and its log was deleted with it")
        .expect_stderr(
            "`infra job logs train --role worker --index 0 --attempt 0` reads what it printed from the claim",
        );
    assert_eq!(world.cluster.restarts("train"), (0, 0));
}

#[test]
fn a_volume_that_cannot_be_mounted_is_reported_as_the_reason() {
    let world = JobWorld::new(TRAIN);
    let mut running = world.infra(["submit"]).spawn();
    let key = world.cluster.pod("worker", 0);
    world.cluster.warn(&key, "FailedScheduling", "0/4 nodes are available");
    let creating = json!([{"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}]);
    let stuck =
        json!({"spec": {"nodeName": "gpu-1"}, "status": {"phase": "Pending", "containerStatuses": creating}});
    world.cluster.change("pods", "default", &key.2, stuck);
    // That it was not placed at first is no reason any more.
    let status = world.run(["status"]).expect_code(0);
    assert!(!status.stdout.contains("nodes are available"), "{}", status.stdout);
    world.cluster.warn(&key, "FailedMount", "MountVolume.SetUp failed: mount.nfs: Connection timed out");
    running.wait_for_stderr(
        "worker 0: its container is not created on gpu-1: FailedMount: MountVolume.SetUp failed: mount.nfs: Connection timed out",
    );
    world.run(["status"]).expect_code(0).expect_stdout("mount.nfs: Connection timed out");
}

#[test]
fn pods_that_a_quota_refuses_are_reported_as_the_reason() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(4);
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    let quota = "pods \"train-0\" is forbidden: exceeded quota: team-a";
    world.cluster.set_quota(Some(quota));
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr(&format!("the import is waiting: no pod can be created: FailedCreate: {quota}"));
    world.run(["status"]).expect_code(0).expect_stdout("exceeded quota: team-a");
    world.cluster.set_quota(None);
    running.wait().expect_code(0).expect_stdout("complete");
}

#[test]
fn the_role_that_failed_is_reported_and_the_other_one_terminated() {
    let servers = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    for (role, index, other) in [("worker", 1, "ps"), ("ps", 0, "worker")] {
        let world = JobWorld::new(&servers);
        world.cluster.decide(|role, _, _| Fate::Run(if role == "ps" { "worker-1" } else { "gpu-1" }));
        let mut running = world.infra(["submit"]).spawn();
        running.wait_for_stderr("train: running");
        world.cluster.print(role, index, "ValueError: a bad sample\n");
        world.cluster.finish(role, index, 3);
        let failed = running.wait().expect_code(1);
        failed
            .expect_stderr("job 'train' failed: BackoffLimitExceeded")
            .expect_stderr(&format!("  {role} {index} on "))
            .expect_stderr(&format!(": {role} ended with 3"))
            .expect_stderr("    ValueError: a bad sample")
            .expect_stderr("`infra job submit --replace` starts it again");
        world.cluster.wait_for("the end of the other role", |state| (!state.has_pod_of(other)).then_some(()));
        let status = world.run(["status"]).expect_code(3);
        let status = status.expect_stdout("train: failed (BackoffLimitExceeded");
        let line = status.stdout.lines().find(|line| line.starts_with(other)).unwrap();
        assert_eq!(line.split_whitespace().nth(2), Some("Removed"), "{}", status.stdout);
    }
}
