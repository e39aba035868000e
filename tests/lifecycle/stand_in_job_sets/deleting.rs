//! JobSets that are deleted: with what belongs to them first, or last.

use serde_json::{Value, json};

use super::{COLLECTION, Cluster, JOBS, SERVICES, group};
use crate::support::job_cluster::controller::Fate;

fn is_gone(cluster: &Cluster, path: &str) -> bool {
    cluster.get(path).0 == 404
}

#[test]
fn a_job_set_is_deleted_in_the_foreground_when_its_pods_are_gone() {
    let cluster = Cluster::with_running();
    // No controller is needed for it.
    cluster.jobs.run_job_set_controller(false);
    cluster.jobs.keep_pods(true);
    let path = format!("{COLLECTION}/a");
    let (status, leaving) = cluster.delete(&path, "Foreground");
    assert_eq!(status, 200);
    assert_eq!(leaving["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(!leaving["metadata"]["deletionTimestamp"].is_null());
    let job = cluster.read(JOBS, "a-worker-0");
    assert!(!job["metadata"]["deletionTimestamp"].is_null() && cluster.jobs.pods("worker").len() == 3);
    assert!(is_gone(&cluster, &format!("{SERVICES}/a")));
    cluster.jobs.keep_pods(false);
    cluster.jobs.wait_for("the JobSet to go", |state| (!state.has_job_set("a")).then_some(()));
    let (status, answer) = cluster.get(&path);
    assert_eq!((status, &answer["message"]), (404, &json!("jobsets.jobset.x-k8s.io \"a\" not found")));
    assert!(cluster.jobs.pods("worker").is_empty() && cluster.jobs.pods("ps").is_empty());
    assert!(is_gone(&cluster, &format!("{JOBS}/a-worker-0")) && is_gone(&cluster, &format!("{JOBS}/a-ps-0")));
    assert_eq!(cluster.delete(&path, "Foreground").0, 404);
}

#[test]
fn a_job_set_that_is_deleted_in_the_background_leaves_pods_that_meet_those_of_the_next() {
    let cluster = Cluster::with_running();
    cluster.jobs.keep_pods(true);
    let path = format!("{COLLECTION}/a");
    assert_eq!(cluster.delete(&path, "Background").1["status"], "Success");
    assert!(is_gone(&cluster, &path) && is_gone(&cluster, &format!("{JOBS}/a-worker-0")));
    assert_eq!(cluster.jobs.pods("worker").len(), 3);
    cluster.apply(&group("a"));
    assert_eq!(cluster.jobs.pods("worker").len(), 6);
    cluster.jobs.keep_pods(false);
    cluster.jobs.wait_for_attempt("worker", 0, 3);
}

#[test]
fn a_job_set_that_is_not_the_one_that_was_meant_is_not_deleted() {
    let cluster = Cluster::with_running();
    let options = json!({"propagationPolicy": "Foreground", "preconditions": {"uid": "uid-of-another"}});
    let path = format!("{COLLECTION}/a");
    let (status, text) = cluster.ask("DELETE", &path, "application/json", &options.to_string());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["reason"]), (409, &json!("Conflict")));
    assert!(cluster.read(COLLECTION, "a")["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn without_their_definition_there_are_no_job_sets() {
    let cluster = Cluster::with_running();
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobsets.jobset.x-k8s.io";
    assert_eq!(cluster.get(definition).0, 200);
    assert_eq!(cluster.get("/apis/jobset.x-k8s.io/v1alpha2").1["resources"][0]["name"], "jobsets");
    cluster.jobs.install_job_sets(false);
    assert_eq!(cluster.get(definition).0, 404);
    for path in [COLLECTION, "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/jobset.x-k8s.io/v1alpha2"] {
        assert_eq!(cluster.get(path), (404, json!("404 page not found\n")), "{path}");
    }
    let body = group("b").to_string();
    let path = format!("{COLLECTION}/b?fieldManager=infra&force=true");
    assert_eq!(cluster.ask("PATCH", &path, "application/apply-patch+yaml", &body).0, 404);
    // What belonged to one is deleted with it.
    cluster.jobs.wait_for("the pods to go", |state| (!state.has_pod_of("worker")).then_some(()));
    assert!(is_gone(&cluster, &format!("{JOBS}/a-worker-0")));
    cluster.jobs.install_job_sets(true);
    assert_eq!(cluster.get(COLLECTION).1["items"], json!([]));
}

#[test]
fn a_job_that_someone_deletes_is_created_again() {
    let cluster = Cluster::with_running();
    let before = cluster.read(JOBS, "a-ps-0")["metadata"]["uid"].clone();
    cluster.jobs.decide(|_, _, _| Fate::Wait);
    cluster.delete(&format!("{JOBS}/a-ps-0"), "Foreground");
    cluster.jobs.wait_for("another Job", |state| {
        (state.attempts("ps") == [0, 0] && state.phases("ps") == ["Pending", "Pending"]).then_some(())
    });
    assert_ne!(cluster.read(JOBS, "a-ps-0")["metadata"]["uid"], before);
    assert_eq!(cluster.jobs.restarts("a"), (0, 0));
}
