//! JobSets that are suspended, as a queue does it.

use serde_json::{Value, json};

use super::{COLLECTION, Cluster, JOBS, condition, group};

fn suspended(name: &str) -> Value {
    let mut job_set = group(name);
    job_set["spec"]["suspend"] = json!(true);
    job_set
}

#[test]
fn a_suspended_job_set_has_jobs_and_no_pods() {
    let cluster = Cluster::new();
    cluster.apply(&suspended("a"));
    let job_set = cluster.read(COLLECTION, "a");
    assert_eq!(condition(&job_set, "Suspended"), "True SuspendedJobs: jobset is suspended");
    for name in ["a-worker-0", "a-ps-0"] {
        let job = cluster.read(JOBS, name);
        assert_eq!(job["spec"]["suspend"], true);
        assert_eq!(condition(&job, "Suspended"), "True JobSuspended: Job suspended");
    }
    assert!(cluster.jobs.pods("worker").is_empty() && cluster.jobs.pods("ps").is_empty());
    let rows = job_set["status"]["replicatedJobsStatus"].clone();
    let row = |name: &str| json!({"name": name, "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 1});
    assert_eq!(rows, json!([row("worker"), row("ps")]));

    // What a queue decides about placement reaches the pods.
    let mut jobs = job_set["spec"]["replicatedJobs"].clone();
    jobs[0]["template"]["spec"]["template"]["spec"]["nodeSelector"] = json!({"pool": "gpu"});
    let path = format!("{COLLECTION}/a");
    let (status, answer) = cluster.merge(&path, &json!({"spec": {"suspend": false, "replicatedJobs": jobs}}));
    assert_eq!(status, 200, "{answer}");
    let pod = cluster.jobs.pod("worker", 0);
    let pod = cluster.jobs.object("pods", "default", &pod.2).unwrap();
    assert_eq!(pod["spec"]["nodeSelector"], json!({"pool": "gpu"}));
    assert_eq!(cluster.condition(COLLECTION, "a", "Suspended"), "False ResumeJobs: jobset is resumed");
    assert!(cluster.jobs.history().contains(&"jobset a released".to_owned()));
}

#[test]
fn a_job_set_that_is_suspended_while_it_runs_loses_its_pods_and_no_attempt() {
    let cluster = Cluster::with_running();
    let path = format!("{COLLECTION}/a");
    cluster.merge(&path, &json!({"spec": {"suspend": true}}));
    cluster.jobs.wait_for("the pods to go", |state| {
        (!state.has_pod_of("worker") && !state.has_pod_of("ps")).then_some(())
    });
    let job = cluster.read(JOBS, "a-worker-0");
    assert_eq!((condition(&job, "FailureTarget"), &job["status"]["failed"]), (String::new(), &json!(null)));
    cluster.merge(&path, &json!({"spec": {"suspend": false}}));
    cluster.jobs.wait_for_attempt("worker", 0, 3);
    assert_eq!(cluster.jobs.restarts("a"), (0, 0));
    assert_eq!(cluster.condition(JOBS, "a-worker-0", "Suspended"), "False JobResumed: Job resumed");

    // A restart keeps the number of what it restarts.
    cluster.jobs.finish("worker", 0, 1);
    cluster.jobs.wait_for_attempt("worker", 1, 3);
    cluster.merge(&path, &json!({"spec": {"suspend": true}}));
    cluster.jobs.wait_for("the pods to go", |state| (!state.has_pod_of("worker")).then_some(()));
    cluster.merge(&path, &json!({"spec": {"suspend": false}}));
    cluster.jobs.wait_for_attempt("worker", 1, 3);
}

#[test]
fn replicated_jobs_cannot_be_changed_while_they_run() {
    let cluster = Cluster::with_running();
    let mut other = group("a");
    other["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = json!(4);
    let (status, answer) = cluster.try_to_apply(&other);
    assert_eq!((status, &answer["reason"]), (422, &json!("Invalid")));
    let message = answer["message"].as_str().unwrap();
    assert!(message.ends_with("spec.replicatedJobs of a running JobSet cannot be changed"), "{message}");
    // The same again changes nothing.
    let before = cluster.read(COLLECTION, "a");
    assert_eq!(cluster.apply(&group("a")), before);
}
