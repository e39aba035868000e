//! The failure policy of a JobSet: which of its rules applies to the Jobs that failed.

use serde_json::Value;

use super::conditions::true_condition;
use super::job_set::REPLICATED_JOB;

/// What is done about failed Jobs.
pub struct Decision<'a> {
    /// The rule that matched; none if the default applies.
    pub rule: Option<&'a Value>,
    /// The Job that it is about.
    pub job: &'a Value,
}

/// Rules are tried in their order, each on all failed Jobs; of several Jobs the one that failed first.
pub fn decide<'a>(rules: &'a Value, failed: &'a [Value]) -> Decision<'a> {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    for rule in rules {
        if let Some(job) = first(failed.iter().filter(|job| applies(rule, job))) {
            return Decision { rule: Some(rule), job };
        }
    }
    Decision { rule: None, job: first(failed.iter()).expect("no Job has failed") }
}

fn first<'a>(jobs: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let when = |job: &&Value| {
        let failure = true_condition(job, "Failed");
        failure.and_then(|failure| failure["lastTransitionTime"].as_str()).map(str::to_owned)
    };
    jobs.min_by_key(when)
}

fn applies(rule: &Value, job: &Value) -> bool {
    let Some(failure) = true_condition(job, "Failed") else { return false };
    let is_listed = |list: &str, value: &Value| match rule[list].as_array() {
        Some(allowed) if !allowed.is_empty() => allowed.contains(value),
        _ => true,
    };
    let message = failure["message"].as_str().unwrap_or_default();
    let patterns = rule["onJobFailureMessagePatterns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_found = |pattern: &Value| {
        literal(pattern.as_str().unwrap_or_default()).is_some_and(|text| message.contains(&text))
    };
    is_listed("onJobFailureReasons", &failure["reason"])
        && (patterns.is_empty() || patterns.iter().any(is_found))
        && is_listed("targetReplicatedJobs", &job["metadata"]["labels"][REPLICATED_JOB])
}

/// The text that a pattern finds, if it is a plain text as a regular expression writes it. The stand-in knows no other patterns.
pub fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next().filter(char::is_ascii_punctuation)?),
            '.' | '^' | '$' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' => return None,
            plain => text.push(plain),
        }
    }
    Some(text)
}
