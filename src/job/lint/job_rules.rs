//! Rules of Jobs that the API server checks and no schema does.

use serde_json::Value;

use super::finding::Findings;

const LONGEST_NAME: usize = 63;

/// Names that become host names, label values and parts of DNS names.
pub(super) fn check_name(object: &Value, findings: &mut Findings) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        if object["metadata"]["generateName"].is_null() {
            findings.add("metadata.name", "it is missing", None);
        }
        return;
    }
    let good = name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.'));
    if !good || name.starts_with(['-', '.']) || name.ends_with(['-', '.']) {
        let help = "lower-case letters, digits and '-', beginning and ending with a letter or digit";
        findings.add("metadata.name", format!("'{name}' is not a name"), Some(help));
    }
    let is_label = matches!(object["kind"].as_str(), Some("Job" | "Service"));
    if is_label && name.len() > LONGEST_NAME {
        findings.add(
            "metadata.name",
            format!("it has {} characters, {LONGEST_NAME} are allowed", name.len()),
            None,
        );
    }
    if object["kind"] == "Service" && name.starts_with(|c: char| c.is_ascii_digit()) {
        findings.add("metadata.name", "a Service's name begins with a letter", None);
    }
    if object["kind"] == "Job" && object["spec"]["completionMode"] == "Indexed" {
        let last = object["spec"]["completions"].as_u64().unwrap_or(1).saturating_sub(1);
        let longest = format!("{name}-{last}");
        if name.len() <= LONGEST_NAME && longest.len() > LONGEST_NAME {
            let message = format!(
                "its last pod would be called '{longest}': {} characters, {LONGEST_NAME} are allowed",
                longest.len()
            );
            findings.add("metadata.name", message, None);
        }
    }
}

/// What contradicts itself in a Job.
pub(super) fn check_job(object: &Value, findings: &mut Findings) {
    let spec = &object["spec"];
    let mode = &spec["completionMode"];
    let is_indexed = mode == "Indexed";
    if !mode.is_null() && !is_indexed && mode != "NonIndexed" {
        let help = "it is Indexed or NonIndexed, with capital letters";
        findings.add("spec.completionMode", format!("{mode} is not a completion mode"), Some(help));
    }
    if is_indexed && spec["completions"].is_null() {
        findings.add("spec.completions", "an Indexed Job needs the number of its pods", None);
    }
    for (field, why) in [
        ("successPolicy", "which pods must succeed is said by number"),
        ("backoffLimitPerIndex", "attempts are counted by number"),
    ] {
        if !spec[field].is_null() && !is_indexed {
            let help = format!("write completionMode: Indexed: {why}");
            findings.add(&format!("spec.{field}"), "it needs an Indexed Job", Some(&help));
        }
    }
    for field in
        ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"]
    {
        if spec[field].as_i64().is_some_and(|number| number < 0) {
            findings.add(&format!("spec.{field}"), "it is negative", None);
        }
    }
    check_restart(spec, findings);
    check_failure_policy(spec, findings);
    let replacement = &spec["podReplacementPolicy"];
    if !replacement.is_null() && replacement != "Failed" && replacement != "TerminatingOrFailed" {
        findings.add(
            "spec.podReplacementPolicy",
            format!("{replacement} is not a replacement policy"),
            Some("it is Failed or TerminatingOrFailed"),
        );
    }
}

fn check_restart(spec: &Value, findings: &mut Findings) {
    let field = "spec.template.spec.restartPolicy";
    let policy = &spec["template"]["spec"]["restartPolicy"];
    match policy.as_str() {
        Some("Never" | "OnFailure") => {}
        None => findings.add(
            field,
            "it is missing, and its default is not allowed for Jobs",
            Some("write restartPolicy: Never"),
        ),
        Some(other) => findings.add(
            field,
            format!("a Job's pods cannot have {other}"),
            Some("write restartPolicy: Never"),
        ),
    }
    if policy != "Never" && !spec["podFailurePolicy"].is_null() && policy.is_string() {
        findings.add("spec.podFailurePolicy", "it works with restartPolicy: Never only", None);
    }
}

fn check_failure_policy(spec: &Value, findings: &mut Findings) {
    let containers: Vec<&str> = ["containers", "initContainers"]
        .iter()
        .filter_map(|list| spec["template"]["spec"][list].as_array())
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    for (number, rule) in spec["podFailurePolicy"]["rules"].as_array().into_iter().flatten().enumerate() {
        let field = format!("spec.podFailurePolicy.rules[{number}]");
        let action = rule["action"].as_str().unwrap_or_default();
        if !matches!(action, "FailJob" | "FailIndex" | "Ignore" | "Count") {
            findings.add(
                &format!("{field}.action"),
                format!("'{action}' is not an action"),
                Some("it is FailJob, FailIndex, Ignore or Count"),
            );
        }
        if rule["onExitCodes"].is_null() == rule["onPodConditions"].as_array().is_none_or(Vec::is_empty) {
            findings.add(&field, "it needs either onExitCodes or onPodConditions", None);
        }
        let codes = rule["onExitCodes"]["values"].as_array();
        if rule["onExitCodes"]["operator"] == "In" && codes.into_iter().flatten().any(|code| code == 0) {
            findings.add(&format!("{field}.onExitCodes.values"), "0 is not a failure", None);
        }
        if let Some(name) = rule["onExitCodes"]["containerName"].as_str()
            && !containers.contains(&name)
        {
            findings.add(
                &format!("{field}.onExitCodes.containerName"),
                format!("there is no container '{name}'"),
                None,
            );
        }
    }
}
