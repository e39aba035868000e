//! What is created for a JobSet, what it is completed with, and what is refused.

use serde_json::{Value, json};

use super::{COLLECTION, Cluster, JOBS, SERVICES, group, replicated_job};

#[test]
fn jobs_and_pods_carry_the_names_and_labels_of_their_job_set() {
    let cluster = Cluster::new();
    let uid = cluster.apply(&group("a"))["metadata"]["uid"].clone();
    let service = cluster.read(SERVICES, "a");
    assert_eq!(
        service["spec"],
        json!({"clusterIP": "None", "type": "ClusterIP", "publishNotReadyAddresses": true,
               "selector": {"jobset.sigs.k8s.io/jobset-name": "a"}})
    );
    let job = cluster.read(JOBS, "a-ps-0");
    for object in [&service, &job] {
        let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "a", "uid": uid,
                            "controller": true, "blockOwnerDeletion": true}]);
        assert_eq!(object["metadata"]["ownerReferences"], owner);
    }
    let marks = json!({
        "jobset.sigs.k8s.io/jobset-name": "a", "jobset.sigs.k8s.io/jobset-uid": uid,
        "jobset.sigs.k8s.io/replicatedjob-name": "ps", "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "1", "jobset.sigs.k8s.io/global-replicas": "2",
        "jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/job-global-index": "1",
        // sha1sum of default/a-ps-0.
        "jobset.sigs.k8s.io/job-key": "378e164b9197e754dacf16b1991e0510a41d80c7",
        "jobset.sigs.k8s.io/group-name": "default", "jobset.sigs.k8s.io/group-replicas": "2",
        "jobset.sigs.k8s.io/job-group-index": "1"});
    assert_eq!((&job["metadata"]["labels"], &job["metadata"]["annotations"]), (&marks, &marks));

    let key = cluster.jobs.pod("ps", 1);
    let pod = cluster.jobs.object("pods", "default", &key.2).unwrap();
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("a-ps-0-1"), &json!("a")));
    assert!(key.2.starts_with("a-ps-0-1-") && key.2.len() == "a-ps-0-1-xxxxx".len(), "{}", key.2);
    for (label, value) in [
        ("jobset.sigs.k8s.io/restart-attempt", "0"),
        ("batch.kubernetes.io/job-name", "a-ps-0"),
        ("batch.kubernetes.io/job-completion-index", "1"),
    ] {
        assert_eq!(pod["metadata"]["labels"][label], value, "{label}");
    }
    for field in ["labels", "annotations"] {
        for (mark, value) in marks.as_object().unwrap() {
            assert_eq!(&pod["metadata"][field][mark], value, "{field} {mark}");
        }
    }
}

#[test]
fn job_sets_are_listed_by_their_labels() {
    let cluster = Cluster::new();
    cluster.apply(&group("a"));
    let names = |path: &str| {
        let (status, list) = cluster.get(path);
        assert_eq!((status, &list["kind"]), (200, &json!("JobSetList")));
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&format!("{COLLECTION}?labelSelector=team%3Dvision")), ["a"]);
    assert!(names(&format!("{COLLECTION}?labelSelector=team%3Dspeech")).is_empty());
    assert_eq!(names("/apis/jobset.x-k8s.io/v1alpha2/jobsets?limit=500"), ["a"]);
    assert!(names("/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets").is_empty());
}

#[test]
fn what_a_job_set_leaves_out_is_filled_in() {
    let cluster = Cluster::new();
    let mut job = replicated_job("worker", 1);
    job.as_object_mut().unwrap().retain(|field, _| field == "name" || field == "template");
    let made = cluster.apply(&json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicatedJobs": [job], "failurePolicy": {"maxRestarts": 1}}}));
    let spec = &made["spec"];
    assert_eq!(spec["network"], json!({"enableDNSHostnames": true, "publishNotReadyAddresses": true}));
    assert_eq!(spec["successPolicy"], json!({"operator": "All"}));
    assert_eq!(spec["startupPolicy"], json!({"startupPolicyOrder": "AnyOrder"}));
    assert_eq!(spec["failurePolicy"]["restartStrategy"], "Recreate");
    let job = &spec["replicatedJobs"][0];
    assert_eq!((&job["replicas"], &job["groupName"]), (&json!(1), &json!("default")));
    // Its pods are in the domain of its own name.
    let pod = cluster.jobs.pod("worker", 0);
    assert_eq!(cluster.jobs.object("pods", "default", &pod.2).unwrap()["spec"]["subdomain"], "a");
    assert_eq!(cluster.read(SERVICES, "a")["metadata"]["name"], "a");
}

#[test]
fn job_sets_that_cannot_be_are_refused() {
    let cluster = Cluster::new();
    let cases: [(&str, Value, u16, &str); 8] = [
        ("/replicatedJobs", json!(null), 422, "spec.replicatedJobs: Required value"),
        ("/replicatedJobs", json!([]), 422, "should have at least 1 items"),
        (
            "/successPolicy/operator",
            json!("Most"),
            422,
            "spec.successPolicy.operator: Unsupported value: \"Most\"",
        ),
        ("/failurePolicy/rules/3", json!({"action": "RestartJobSet"}), 422, "rules[3].name: Required value"),
        ("/failurePolicy/rules/3/action", json!("Restart"), 422, "rules[3].action: Unsupported value"),
        (
            "/successPolicy/targetReplicatedJobs/0",
            json!("chief"),
            422,
            "names a replicatedJob that does not exist",
        ),
        (
            "/startupPolicy/startupPolicyOrder",
            json!("InOrder"),
            501,
            "does not know startupPolicyOrder InOrder",
        ),
        (
            "/failurePolicy/rules/0/onJobFailureMessagePatterns/0",
            json!("exit code (64|65)"),
            501,
            "does not know regular expressions",
        ),
    ];
    for (pointer, value, code, message) in cases {
        let mut job_set = group("a");
        *job_set["spec"].pointer_mut(pointer).unwrap() = value;
        let (status, answer) = cluster.try_to_apply(&job_set);
        assert_eq!(status, code, "{pointer}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains(message), "{pointer}: {answer}");
    }
    let (status, answer) = cluster.try_to_apply(&group(&"a".repeat(44)));
    assert_eq!(status, 422);
    assert!(answer["message"].as_str().unwrap().ends_with("would be longer than 63 characters"), "{answer}");
    assert_eq!(cluster.get(COLLECTION).1["items"], json!([]));
}

#[test]
fn a_foreign_service_is_taken_and_a_foreign_job_is_in_the_way() {
    let cluster = Cluster::new();
    cluster.jobs.put_foreign("services", "a");
    cluster.jobs.put_foreign("jobs", "a-worker-0");
    cluster.apply(&group("a"));
    assert_eq!(cluster.read(SERVICES, "a")["metadata"]["ownerReferences"], json!(null));
    // Nothing says so but an event, which is counted and not repeated.
    cluster.read(COLLECTION, "a");
    assert_eq!(cluster.read(COLLECTION, "a")["status"], json!({}));
    let events = cluster.get("/api/v1/namespaces/default/events").1;
    let events = events["items"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(
        (events[0]["reason"].as_str(), events[0]["message"].as_str()),
        (
            Some("JobCreationFailed"),
            Some("job \"a-worker-0\" creation failed with error: jobs.batch \"a-worker-0\" already exists")
        )
    );
    assert_eq!(cluster.get(&format!("{JOBS}/a-ps-0")).0, 404);
    cluster.jobs.take("jobs", "default", "a-worker-0");
    cluster.read(COLLECTION, "a");
    cluster.jobs.wait_for_attempt("worker", 0, 3);
}

#[test]
fn a_job_without_a_restart_policy_is_not_created() {
    let cluster = Cluster::new();
    let mut job_set = group("a");
    let pods = &mut job_set["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"];
    pods.as_object_mut().unwrap().remove("restartPolicy");
    cluster.apply(&job_set);
    let events = cluster.get("/api/v1/namespaces/default/events").1;
    let message = events["items"][0]["message"].as_str().unwrap();
    assert!(message.contains("spec.template.spec.restartPolicy: Required value"), "{message}");
    assert_eq!(cluster.get(&format!("{JOBS}/a-ps-0")).0, 404);
}
