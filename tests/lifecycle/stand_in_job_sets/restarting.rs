//! Failures that restart the whole group: which of them count, and that no old pod is left when the next attempt begins.

use std::time::Duration;

use serde_json::json;

use super::{COLLECTION, Cluster, JOBS, PODS, condition, group};
use crate::support::job_cluster::controller::Fate;

/// Waits for the pods of an attempt, which never meet those of another.
#[track_caller]
fn expect_attempt(cluster: &Cluster, attempt: u64) {
    cluster.jobs.wait_for(&format!("attempt {attempt}"), |state| {
        let all = [state.attempts("worker"), state.attempts("ps")].concat();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "pods of two attempts: {all:?}");
        (all == [attempt; 5]).then_some(())
    });
}

#[test]
fn a_failed_pod_restarts_the_group_and_counts_once() {
    let cluster = Cluster::with_running();
    let status = cluster.read(COLLECTION, "a")["status"].clone();
    assert_eq!((&status["restarts"], &status["restartsCountTowardsMax"]), (&json!(0), &json!(null)));
    assert_eq!(cluster.jobs.attempts("worker"), [0, 0, 0]);

    cluster.jobs.keep_pods(true);
    cluster.jobs.finish("worker", 2, 1);
    let job = cluster.read(JOBS, "a-worker-0");
    let exceeded = "True BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(condition(&job, "FailureTarget"), exceeded);
    assert_eq!(condition(&job, "Failed"), "", "its pods still terminate");
    assert_eq!((&job["status"]["active"], &job["status"]["terminating"]), (&json!(0), &json!(2)));
    let ps = cluster.read(JOBS, "a-ps-0");
    assert_eq!((&ps["status"]["active"], condition(&ps, "FailureTarget")), (&json!(2), String::new()));
    assert_eq!(cluster.jobs.restarts("a"), (0, 0), "a pod that does not end holds the restart back");

    cluster.jobs.decide(|_, _, _| Fate::Wait);
    cluster.jobs.keep_pods(false);
    expect_attempt(&cluster, 1);
    assert_eq!(cluster.jobs.restarts("a"), (1, 1));
    let message = "applying RestartJobSet failure policy action (first failed job: a-worker-0)";
    let job_set = cluster.read(COLLECTION, "a");
    assert_eq!(condition(&job_set, "RestartingJobSet"), format!("True FailurePolicy_failed: {message}"));
    let events = cluster.get("/api/v1/namespaces/default/events?fieldSelector=type%3DWarning").1;
    let events = events["items"].as_array().unwrap();
    let event = events.iter().find(|event| event["reason"] == "RestartJobSetFailurePolicyAction").unwrap();
    assert_eq!(event["message"], message);
    assert_eq!(event["involvedObject"]["uid"], job_set["metadata"]["uid"]);
    for (role, pods) in [("worker", 3), ("ps", 2)] {
        (0..pods).for_each(|index| cluster.jobs.run(role, index, "node-1"));
    }
    let ready = "False JobsReady: all jobs are ready";
    assert_eq!(cluster.condition(COLLECTION, "a", "RestartingJobSet"), ready);
}

#[test]
fn restarts_that_count_are_used_up() {
    let cluster = Cluster::with_running();
    for attempt in 0..3 {
        expect_attempt(&cluster, attempt);
        cluster.jobs.finish("ps", 0, 137);
    }
    expect_attempt(&cluster, 3);
    cluster.jobs.finish("worker", 1, 1);
    let end = cluster.jobs.wait_for_end("a");
    assert_eq!((&end["type"], &end["reason"]), (&json!("Failed"), &json!("ReachedMaxRestarts")));
    assert_eq!(
        end["message"],
        "jobset failed due to reaching max number of restarts (first failed job: a-worker-0)"
    );
    let job_set = cluster.read(COLLECTION, "a");
    assert_eq!(job_set["status"]["terminalState"], "Failed");
    assert_eq!(condition(&job_set, "RestartingJobSet"), "False JobSetFailed: jobset failed");
    assert_eq!(cluster.jobs.restarts("a"), (3, 3));
}

#[test]
fn a_lost_machine_restarts_the_group_and_does_not_count() {
    let cluster = Cluster::with_running();
    cluster.jobs.run_job_set_controller(false);
    cluster.jobs.keep_pods(true);
    let pod = cluster.jobs.evict("worker", 1);
    assert_eq!(cluster.condition(JOBS, "a-worker-0", "FailureTarget"), "", "it still has its grace");
    cluster.jobs.keep_pods(false);
    cluster.jobs.wait_for("the end of the Job", |state| {
        state.history().iter().any(|event| event == "job a-worker-0 Failed").then_some(())
    });
    assert_eq!(
        cluster.condition(JOBS, "a-worker-0", "Failed"),
        format!(
            "True PodFailurePolicy: Pod default/{} has condition DisruptionTarget matching FailJob rule at index 1",
            pod.2
        )
    );
    cluster.jobs.run_job_set_controller(true);
    expect_attempt(&cluster, 1);
    assert_eq!(cluster.jobs.restarts("a"), (1, 0));
    let why = cluster.condition(COLLECTION, "a", "RestartingJobSet");
    assert!(why.starts_with("False JobsReady"), "{why}");

    cluster.jobs.put_node("node-2", "gpu", 1);
    cluster
        .jobs
        .decide(|_, index, attempt| Fate::Run(if index + attempt as u32 == 3 { "node-2" } else { "node-1" }));
    cluster.jobs.evict("ps", 0);
    expect_attempt(&cluster, 2);
    assert_eq!(cluster.jobs.restarts("a"), (2, 0));
    // A whole machine, whose pods cannot end by themselves.
    cluster.jobs.lose_machine("node-2");
    expect_attempt(&cluster, 3);
    assert_eq!(cluster.jobs.restarts("a"), (3, 0));
    assert_eq!(cluster.get("/api/v1/nodes/node-2").0, 404);
}

#[test]
fn what_is_seen_first_decides_whether_a_restart_counts() {
    let cluster = Cluster::with_running();
    // A peer fails while the evicted pod still saves.
    cluster.jobs.set_grace(Duration::from_millis(100));
    cluster.jobs.keep_pods(true);
    cluster.jobs.evict("worker", 1);
    cluster.jobs.finish("worker", 2, 1);
    cluster.jobs.keep_pods(false);
    expect_attempt(&cluster, 1);
    assert_eq!(cluster.jobs.restarts("a"), (1, 1));
    // Both ends are seen together.
    cluster.jobs.keep_pods(true);
    let evicted = cluster.jobs.evict("worker", 1);
    let peer = cluster.jobs.pod("worker", 2);
    {
        let mut state = cluster.jobs.state();
        state.finish(&peer, 1);
        state.finish(&evicted, 143);
        state.reconcile();
    }
    cluster.jobs.keep_pods(false);
    expect_attempt(&cluster, 2);
    assert_eq!(cluster.jobs.restarts("a"), (2, 1));
}

#[test]
fn a_pod_that_someone_deletes_has_failed() {
    let cluster = Cluster::with_running();
    let pod = cluster.jobs.pod("worker", 0);
    assert_eq!(cluster.delete(&format!("{PODS}/{}", pod.2), "Background").0, 200);
    expect_attempt(&cluster, 1);
    assert_eq!(cluster.jobs.restarts("a"), (1, 1));
}

#[test]
fn the_budget_can_be_raised_and_refilled_while_a_job_set_runs() {
    let cluster = Cluster::with_running();
    let path = format!("{COLLECTION}/a");
    let change = |maximum: u32| json!({"spec": {"failurePolicy": {"maxRestarts": maximum}}});
    assert_eq!(cluster.merge(&path, &change(1)).0, 200);
    cluster.jobs.finish("worker", 0, 1);
    expect_attempt(&cluster, 1);
    // The status is changed at its own path, and only there.
    let refill = json!({"status": {"restartsCountTowardsMax": 0}});
    cluster.merge(&path, &refill);
    assert_eq!(cluster.jobs.restarts("a"), (1, 1));
    cluster.merge(&format!("{path}/status"), &refill);
    assert_eq!(cluster.jobs.restarts("a"), (1, 0));
    cluster.jobs.finish("worker", 0, 1);
    expect_attempt(&cluster, 2);
    assert_eq!(cluster.merge(&path, &change(2)).0, 200);
    cluster.jobs.finish("worker", 0, 1);
    expect_attempt(&cluster, 3);
    assert_eq!(cluster.jobs.restarts("a"), (3, 2));
}

#[test]
fn a_controller_that_was_down_catches_up_and_counts_once() {
    let cluster = Cluster::with_running();
    cluster.jobs.run_job_set_controller(false);
    cluster.jobs.finish("worker", 2, 1);
    cluster.jobs.wait_for("the end of the Job", |state| {
        state.history().iter().any(|event| event == "job a-worker-0 Failed").then_some(())
    });
    assert_eq!(cluster.jobs.pods("ps").len(), 2, "the pods of other Jobs run on");
    assert_eq!(cluster.jobs.restarts("a"), (0, 0));
    // A JobSet is accepted, and nothing comes of it.
    cluster.apply(&group("b"));
    assert_eq!(cluster.get(&format!("{JOBS}/b-worker-0")).0, 404);

    cluster.jobs.run_job_set_controller(true);
    cluster.jobs.wait_for("both groups", |state| {
        let count = |attempt: u64| state.attempts("worker").iter().filter(|one| **one == attempt).count();
        (count(0) == 3 && count(1) == 3).then_some(())
    });
    assert_eq!((cluster.jobs.restarts("a"), cluster.jobs.restarts("b")), ((1, 1), (0, 0)));
}
