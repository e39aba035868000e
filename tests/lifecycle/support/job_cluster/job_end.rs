//! How a Job ends: by the failures of its pods, by its success policy, or because all of them succeeded.

use std::collections::BTreeSet;

use serde_json::Value;

use super::conditions::true_condition;
use super::controller::{index_of, phase_of};
use super::indexes::read_indexes;
use super::job_set_children::text;
use super::pod_failures::{Consequence, consequence_of};
use super::store::Key;

/// The condition, its reason and its message.
type End = (&'static str, String, String);

pub fn is_indexed(job: &Value) -> bool {
    job["spec"]["completionMode"] == "Indexed"
}

/// The numbers that have succeeded, also those whose pods are gone. Without numbers one success is the first of them.
pub fn completed(job: &Value, pods: &[(Key, Value)]) -> BTreeSet<u32> {
    let wanted = job["spec"]["completions"].as_u64().unwrap_or(1) as u32;
    let mut done = read_indexes(job["status"]["completedIndexes"].as_str().unwrap_or_default());
    for (_, pod) in pods.iter().filter(|(_, pod)| phase_of(pod) == "Succeeded") {
        match index_of(pod) {
            Some(index) if is_indexed(job) => _ = done.insert(index),
            _ => done.extend(0..wanted),
        }
    }
    done
}

/// How a Job ends. What was decided stays; failures are looked at before successes.
pub fn end_of(job: &Value, pods: &[(Key, Value)], done: &BTreeSet<u32>, failed: u64) -> Option<End> {
    for (target, end) in [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")] {
        if let Some(decided) = true_condition(job, target) {
            return Some((end, text(&decided["reason"]).to_owned(), text(&decided["message"]).to_owned()));
        }
    }
    for (_, pod) in pods.iter().filter(|(_, pod)| phase_of(pod) == "Failed") {
        if let Consequence::FailsJob(message) = consequence_of(job, pod) {
            return Some(("Failed", "PodFailurePolicy".to_owned(), message));
        }
    }
    let end = |end, reason: &str, message: &str| Some((end, reason.to_owned(), message.to_owned()));
    if failed > job["spec"]["backoffLimit"].as_u64().unwrap_or(6) {
        return end("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    let rules = job["spec"]["successPolicy"]["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(number) = rules.iter().position(|rule| is_met(rule, done)) {
        return end("Complete", "SuccessPolicy", &format!("Matched rules at index {number}"));
    }
    if done.len() as u64 >= job["spec"]["completions"].as_u64().unwrap_or(1) {
        return end("Complete", "CompletionsReached", "Reached expected number of succeeded pods");
    }
    None
}

/// Whether a rule of a success policy is met: enough of these indexes have succeeded, or all of them.
fn is_met(rule: &Value, done: &BTreeSet<u32>) -> bool {
    let named = rule["succeededIndexes"].as_str().map(read_indexes);
    let found = named.as_ref().map_or(done.len(), |named| named.intersection(done).count());
    match rule["succeededCount"].as_u64() {
        Some(count) => found as u64 >= count,
        None => named.is_some_and(|named| named.len() == found),
    }
}
