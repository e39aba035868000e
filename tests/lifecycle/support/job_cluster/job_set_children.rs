//! What the JobSet controller creates: a Job for each replica of a replicated Job, and a Service for the names of their pods.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::{Map, Value, json};

use super::job_set::{API_VERSION, JOB_SET, REPLICATED_JOB, RESTART_ATTEMPT, is_suspended, replicated_jobs};

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn replicas_of(replicated_job: &Value) -> u64 {
    replicated_job["replicas"].as_u64().unwrap_or(0)
}

/// How often a JobSet was restarted; nothing says so before its first status.
pub fn restarts_of(job_set: &Value) -> u64 {
    job_set["status"]["restarts"].as_u64().unwrap_or(0)
}

/// The name of the Service, which is the domain of the pods.
pub fn subdomain_of(job_set: &Value) -> &str {
    let subdomain = text(&job_set["spec"]["network"]["subdomain"]);
    if subdomain.is_empty() { text(&job_set["metadata"]["name"]) } else { subdomain }
}

pub fn has_hostnames(job_set: &Value) -> bool {
    job_set["spec"]["network"]["enableDNSHostnames"] == true
}

pub fn job_name(job_set: &Value, replicated_job: &Value, number: u64) -> String {
    format!("{}-{}-{number}", text(&job_set["metadata"]["name"]), text(&replicated_job["name"]))
}

fn owner(job_set: &Value) -> Value {
    json!([{"apiVersion": API_VERSION, "kind": "JobSet", "name": job_set["metadata"]["name"],
            "uid": job_set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
}

pub fn service(job_set: &Value) -> Value {
    let published = &job_set["spec"]["network"]["publishNotReadyAddresses"];
    json!({"kind": "Service", "apiVersion": "v1",
           "metadata": {"name": subdomain_of(job_set), "namespace": job_set["metadata"]["namespace"],
                        "ownerReferences": owner(job_set)},
           "spec": {"clusterIP": "None", "type": "ClusterIP", "publishNotReadyAddresses": published,
                    "selector": {JOB_SET: job_set["metadata"]["name"]}},
           "status": {"loadBalancer": {}}})
}

pub fn job(job_set: &Value, replicated_job: &Value, number: u64) -> Value {
    let template = &replicated_job["template"];
    let marks = marks(job_set, replicated_job, number);
    let mut spec = template["spec"].clone();
    mark(&mut spec["template"]["metadata"], &marks);
    if has_hostnames(job_set) {
        spec["template"]["spec"]["subdomain"] = json!(subdomain_of(job_set));
    }
    spec["suspend"] = json!(is_suspended(job_set));
    // As the API server completes a Job.
    let defaults =
        [("completionMode", json!("NonIndexed")), ("parallelism", json!(1)), ("backoffLimit", json!(6))];
    for (field, value) in defaults {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    let mut metadata = json!({"name": job_name(job_set, replicated_job, number),
                              "namespace": job_set["metadata"]["namespace"],
                              "ownerReferences": owner(job_set)});
    for field in ["labels", "annotations"] {
        metadata[field] = template["metadata"][field].clone();
    }
    mark(&mut metadata, &marks);
    json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": spec, "status": {}})
}

/// The same labels and annotations, on a Job and on its pods.
fn mark(metadata: &mut Value, marks: &Map<String, Value>) {
    for field in ["labels", "annotations"] {
        for (key, value) in marks {
            metadata[field][key] = value.clone();
        }
    }
}

fn marks(job_set: &Value, replicated_job: &Value, number: u64) -> Map<String, Value> {
    let metadata = &job_set["metadata"];
    let group = text(&replicated_job["groupName"]);
    let in_group = |job: &&Value| text(&job["groupName"]) == group;
    let is_other = |job: &&Value| job["name"] != replicated_job["name"];
    let jobs = || replicated_jobs(job_set).iter();
    let before =
        |jobs: Vec<&Value>| jobs.into_iter().take_while(is_other).map(replicas_of).sum::<u64>() + number;
    let name = job_name(job_set, replicated_job, number);
    let key = format!("{}/{name}", text(&metadata["namespace"]));
    let key = digest(&SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
    let key: String = key.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let short = |name: &str| format!("jobset.sigs.k8s.io/{name}");
    Map::from_iter([
        (JOB_SET.to_owned(), metadata["name"].clone()),
        (short("jobset-uid"), metadata["uid"].clone()),
        (REPLICATED_JOB.to_owned(), replicated_job["name"].clone()),
        (RESTART_ATTEMPT.to_owned(), json!(restarts_of(job_set).to_string())),
        (short("replicatedjob-replicas"), json!(replicas_of(replicated_job).to_string())),
        (short("global-replicas"), json!(jobs().map(replicas_of).sum::<u64>().to_string())),
        (short("job-index"), json!(number.to_string())),
        (short("job-key"), json!(key)),
        (short("job-global-index"), json!(before(jobs().collect()).to_string())),
        (short("group-name"), json!(group)),
        (short("group-replicas"), json!(jobs().filter(in_group).map(replicas_of).sum::<u64>().to_string())),
        (short("job-group-index"), json!(before(jobs().filter(in_group).collect()).to_string())),
    ])
}

/// Takes over what may be changed while a JobSet is suspended, and lets the pods of a Job begin.
pub fn resume(job: &mut Value, replicated_job: &Value) {
    let changed = &replicated_job["template"]["spec"]["template"];
    let pods = &mut job["spec"]["template"];
    for (parent, field) in [("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector")] {
        for (key, value) in changed[parent][field].as_object().into_iter().flatten() {
            pods[parent][field][key] = value.clone();
        }
    }
    for list in ["tolerations", "schedulingGates"] {
        for item in changed["spec"][list].as_array().into_iter().flatten() {
            let known = &mut pods["spec"][list];
            if known.is_null() {
                *known = json!([]);
            }
            let known = known.as_array_mut().unwrap();
            if !known.contains(item) {
                known.push(item.clone());
            }
        }
    }
    job["spec"]["suspend"] = json!(false);
}
