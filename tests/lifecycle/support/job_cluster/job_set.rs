//! JobSets as the API server takes them: the defaults of their CustomResourceDefinition, and what it and the admission policy refuse.

use serde_json::{Value, json};

use super::failure_rules::literal;
use super::store::Answer;
use crate::support::kubernetes::failure;

pub const API_VERSION: &str = "jobset.x-k8s.io/v1alpha2";
/// Begins every path of the group.
pub const GROUP_PATH: &str = "/apis/jobset.x-k8s.io";
pub const RESOURCE: &str = "jobsets.jobset.x-k8s.io";
pub const JOB_SET: &str = "jobset.sigs.k8s.io/jobset-name";
pub const REPLICATED_JOB: &str = "jobset.sigs.k8s.io/replicatedjob-name";
pub const RESTART_ATTEMPT: &str = "jobset.sigs.k8s.io/restart-attempt";

const ACTIONS: [&str; 3] = ["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"];
/// What is left for the name of a JobSet and of a replicated Job in the name of a pod.
const LONGEST_NAMES: usize = 50;

fn fill(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() {
        object[field] = value;
    }
}

/// Sets what the CustomResourceDefinition has defaults for, and nothing else.
pub fn set_defaults(job_set: &mut Value) {
    let spec = &mut job_set["spec"];
    if !spec.is_object() {
        return;
    }
    for group in ["network", "successPolicy", "startupPolicy"] {
        fill(spec, group, json!({}));
    }
    fill(&mut spec["network"], "enableDNSHostnames", json!(true));
    fill(&mut spec["network"], "publishNotReadyAddresses", json!(true));
    fill(&mut spec["successPolicy"], "operator", json!("All"));
    fill(&mut spec["startupPolicy"], "startupPolicyOrder", json!("AnyOrder"));
    if spec["failurePolicy"].is_object() {
        fill(&mut spec["failurePolicy"], "restartStrategy", json!("Recreate"));
    }
    for job in spec["replicatedJobs"].as_array_mut().into_iter().flatten() {
        fill(job, "groupName", json!("default"));
        fill(job, "replicas", json!(1));
    }
}

/// The replicated Jobs of a JobSet.
pub fn replicated_jobs(job_set: &Value) -> &[Value] {
    job_set["spec"]["replicatedJobs"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn is_suspended(object: &Value) -> bool {
    object["spec"]["suspend"] == true
}

/// Why a JobSet cannot be created, or changed from what it was.
pub fn refusal(before: Option<&Value>, after: &Value) -> Option<Answer> {
    let name = after["metadata"]["name"].as_str().unwrap_or_default();
    if let Some(problem) = problem_of_schema(after) {
        let message = format!("JobSet.jobset.x-k8s.io \"{name}\" is invalid: {problem}");
        return Some(failure(422, "Invalid", &message));
    }
    if let Some(unknown) = unknown_feature(after) {
        let message = format!("the stand-in for the JobSet controller does not know {unknown}");
        return Some(failure(501, "NotImplemented", &message));
    }
    let problem = problem_of_policy(before, after)?;
    let message = format!(
        "{RESOURCE} \"{name}\" is forbidden: ValidatingAdmissionPolicy 'infra-jobsets' with binding 'infra-jobsets' \
         denied request: {problem}"
    );
    Some(failure(422, "Invalid", &message))
}

fn problem_of_schema(job_set: &Value) -> Option<String> {
    let spec = &job_set["spec"];
    if !spec["replicatedJobs"].is_array() {
        return Some("spec.replicatedJobs: Required value".to_owned());
    }
    if replicated_jobs(job_set).is_empty() {
        return Some(
            "spec.replicatedJobs: Invalid value: 0: spec.replicatedJobs in body should have at least 1 items"
                .to_owned(),
        );
    }
    for (number, job) in replicated_jobs(job_set).iter().enumerate() {
        if let Some(field) = ["name", "template"].into_iter().find(|field| job[*field].is_null()) {
            return Some(format!("spec.replicatedJobs[{number}].{field}: Required value"));
        }
    }
    let choices: [(&str, &[&str]); 3] = [
        ("/successPolicy/operator", &["All", "Any"]),
        ("/startupPolicy/startupPolicyOrder", &["AnyOrder", "InOrder"]),
        ("/failurePolicy/restartStrategy", &["Recreate", "BlockingRecreate"]),
    ];
    for (pointer, allowed) in choices {
        if let Some(problem) = spec.pointer(pointer).and_then(|value| unsupported(value, allowed)) {
            return Some(format!("spec{}: {problem}", pointer.replace('/', ".")));
        }
    }
    let rules = spec["failurePolicy"]["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, rule) in rules.iter().enumerate() {
        let position = format!("spec.failurePolicy.rules[{number}]");
        if let Some(field) = ["name", "action"].into_iter().find(|field| rule[*field].is_null()) {
            return Some(format!("{position}.{field}: Required value"));
        }
        if let Some(problem) = unsupported(&rule["action"], &ACTIONS) {
            return Some(format!("{position}.action: {problem}"));
        }
    }
    None
}

fn unsupported(value: &Value, allowed: &[&str]) -> Option<String> {
    if allowed.iter().any(|choice| value == choice) {
        return None;
    }
    let allowed: Vec<String> = allowed.iter().map(|choice| format!("\"{choice}\"")).collect();
    Some(format!("Unsupported value: {value}: supported values: {}", allowed.join(", ")))
}

fn problem_of_policy(before: Option<&Value>, after: &Value) -> Option<&'static str> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&after["metadata"]["name"]);
    let jobs: Vec<String> = replicated_jobs(after).iter().map(|job| text(&job["name"])).collect();
    if jobs.iter().any(|job| name.len() + 1 + job.len() > LONGEST_NAMES) {
        return Some("the names of its pods would be longer than 63 characters");
    }
    let targets = after["spec"]["successPolicy"]["targetReplicatedJobs"].as_array();
    if targets.into_iter().flatten().any(|target| !jobs.contains(&text(target))) {
        return Some("spec.successPolicy.targetReplicatedJobs names a replicatedJob that does not exist");
    }
    let is_changed = |before: &&Value| before["spec"]["replicatedJobs"] != after["spec"]["replicatedJobs"];
    let is_held = |before: &Value| is_suspended(before) || is_suspended(after);
    before
        .filter(is_changed)
        .filter(|before| !is_held(before))
        .map(|_| "spec.replicatedJobs of a running JobSet cannot be changed")
}

/// A part of JobSet that would be ignored here: better no answer than a wrong one.
fn unknown_feature(job_set: &Value) -> Option<&'static str> {
    let spec = &job_set["spec"];
    let jobs = replicated_jobs(job_set);
    let rules = spec["failurePolicy"]["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let patterns = rules.iter().filter_map(|rule| rule["onJobFailureMessagePatterns"].as_array()).flatten();
    let mut patterns = patterns.filter_map(Value::as_str);
    if spec["startupPolicy"]["startupPolicyOrder"] == "InOrder" {
        Some("startupPolicyOrder InOrder")
    } else if jobs.iter().any(|job| !job["dependsOn"].is_null()) {
        Some("dependsOn")
    } else if !spec["coordinator"].is_null() {
        Some("coordinator")
    } else if !spec["volumeClaimPolicies"].is_null() {
        Some("volumeClaimPolicies")
    } else if patterns.any(|pattern| literal(pattern).is_none()) {
        Some("regular expressions in onJobFailureMessagePatterns, only plain texts")
    } else {
        None
    }
}
