//! How a JobSet ends, and what is left of it.

use serde_json::json;

use super::{COLLECTION, Cluster, JOBS, PODS, condition, group};
use crate::support::job_cluster::controller::Fate;

#[test]
fn an_exit_code_that_nothing_can_fix_ends_the_job_set() {
    let cluster = Cluster::with_running();
    let pod = cluster.jobs.pod("worker", 1);
    cluster.jobs.finish("worker", 1, 64);
    let end = cluster.jobs.wait_for_end("a");
    assert_eq!((&end["type"], &end["reason"]), (&json!("Failed"), &json!("FailJobSetFailurePolicyAction")));
    assert_eq!(end["message"], "applying FailJobSet failure policy action (first failed job: a-worker-0)");
    let message = format!(
        "Container main for pod default/{} failed with exit code 64 matching FailJob rule at index 0",
        pod.2
    );
    let failed = cluster.condition(JOBS, "a-worker-0", "Failed");
    assert_eq!(failed, format!("True PodFailurePolicy: {message}"));
    assert_eq!(cluster.jobs.restarts("a"), (0, 0));
    // The Job and the pod that failed stay; everything that ran is gone.
    cluster.jobs.wait_for("the parameter servers to go", |state| (!state.has_job("a-ps-0")).then_some(()));
    assert_eq!(cluster.jobs.pods("worker"), [pod.2]);
    assert!(cluster.jobs.pods("ps").is_empty());
}

#[test]
fn a_deadline_ends_the_job_set() {
    let cluster = Cluster::with_running();
    let message = "Job was active longer than specified deadline";
    cluster.jobs.end_job("a-worker-0", "DeadlineExceeded", message);
    assert_eq!(cluster.jobs.wait_for_end("a")["reason"], "FailJobSetFailurePolicyAction");
    let failed = cluster.condition(JOBS, "a-worker-0", "Failed");
    assert_eq!(failed, format!("True DeadlineExceeded: {message}"));
}

#[test]
fn the_first_worker_decides_and_the_others_are_terminated() {
    let cluster = Cluster::with_running();
    let first = cluster.jobs.pod("worker", 0);
    cluster.jobs.keep_pods(true);
    cluster.jobs.finish("worker", 0, 0);
    let job = cluster.read(JOBS, "a-worker-0");
    assert_eq!(condition(&job, "SuccessCriteriaMet"), "True SuccessPolicy: Matched rules at index 0");
    assert_eq!(condition(&job, "Complete"), "");
    let leaving = cluster.get(PODS).1["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
        .count();
    assert_eq!(leaving, 2, "the other workers, not the parameter servers");
    // What fails now is of no interest.
    let peer = cluster.jobs.pods("worker").into_iter().find(|pod| *pod != first.2).unwrap();
    cluster.jobs.end_pod(&("pods", "default".to_owned(), peer), 1, "");
    cluster.jobs.keep_pods(false);
    let end = cluster.jobs.wait_for_end("a");
    assert_eq!((&end["type"], &end["reason"]), (&json!("Completed"), &json!("AllJobsCompleted")));
    assert_eq!(end["message"], "jobset completed successfully");
    assert_eq!(cluster.read(COLLECTION, "a")["status"]["terminalState"], "Completed");
    let job = cluster.read(JOBS, "a-worker-0");
    assert_eq!(condition(&job, "Complete"), "True SuccessPolicy: Matched rules at index 0");
    assert_eq!((&job["status"]["succeeded"], &job["status"]["completedIndexes"]), (&json!(1), &json!("0")));

    // The parameter servers are deleted; the workers' Job and what succeeded stay.
    cluster.jobs.wait_for("the parameter servers to go", |state| (!state.has_job("a-ps-0")).then_some(()));
    assert!(cluster.jobs.pods("ps").is_empty());
    assert!(cluster.jobs.pods("worker").contains(&first.2));
    assert_eq!(cluster.jobs.restarts("a"), (0, 0));
}

#[test]
fn a_failure_that_is_seen_with_a_success_wins() {
    let cluster = Cluster::with_running();
    cluster.jobs.finish_at_once(&[("worker", 0, 0), ("worker", 2, 1)]);
    cluster.jobs.wait_for_attempt("worker", 1, 3);
    assert_eq!(cluster.jobs.restarts("a"), (1, 1));
}

#[test]
fn without_a_success_policy_every_worker_has_to_succeed() {
    let cluster = Cluster::new();
    let mut job_set = group("a");
    let workers = &mut job_set["spec"]["replicatedJobs"][0]["template"]["spec"];
    workers.as_object_mut().unwrap().remove("successPolicy");
    cluster.jobs.decide(|role, index, _| match (role, index) {
        ("worker", 2) => Fate::Wait,
        ("worker", _) => Fate::Succeed("node-1", "well\n"),
        _ => Fate::Run("node-1"),
    });
    cluster.apply(&job_set);
    let status = cluster.read(COLLECTION, "a")["status"].clone();
    assert_eq!(status["terminalState"], json!(null));
    assert_eq!(cluster.read(JOBS, "a-worker-0")["status"]["completedIndexes"], "0,1");
    cluster.jobs.finish("worker", 2, 0);
    assert_eq!(cluster.jobs.wait_for_end("a")["type"], "Completed");
    let job = cluster.read(JOBS, "a-worker-0");
    let reached = "True CompletionsReached: Reached expected number of succeeded pods";
    assert_eq!(condition(&job, "Complete"), reached);
    assert_eq!(job["status"]["completedIndexes"], "0-2");
    let rows = &cluster.read(COLLECTION, "a")["status"]["replicatedJobsStatus"];
    assert_eq!((&rows[0]["name"], &rows[0]["succeeded"]), (&json!("worker"), &json!(1)));
}

#[test]
fn without_a_failure_policy_the_first_failure_ends_the_job_set() {
    let cluster = Cluster::new();
    let mut job_set = group("a");
    job_set["spec"].as_object_mut().unwrap().remove("failurePolicy");
    cluster.apply(&job_set);
    cluster.jobs.finish("ps", 1, 1);
    let end = cluster.jobs.wait_for_end("a");
    assert_eq!(end["reason"], "FailedJobs");
    assert_eq!(end["message"], "jobset failed due to one or more job failures (first failed job: a-ps-0)");
}
