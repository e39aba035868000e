//! What a Job's pod failure policy says about a pod that failed: the first rule that matches decides.

use serde_json::Value;

/// What a failed pod means for its Job.
#[derive(Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It counts towards the backoff limit.
    Counts,
    /// It is replaced as if it had not failed.
    Ignored,
    /// The Job fails, with this message.
    FailsJob(String),
}

pub fn consequence_of(job: &Value, pod: &Value) -> Consequence {
    let rules = job["spec"]["podFailurePolicy"]["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let Some(what) = matched_by(rule, pod) else { continue };
        return match rule["action"].as_str() {
            Some("Ignore") => Consequence::Ignored,
            Some("FailJob") => {
                Consequence::FailsJob(format!("{what} matching FailJob rule at index {index}"))
            }
            _ => Consequence::Counts,
        };
    }
    Consequence::Counts
}

/// What of the pod matches a rule, in the words of the Job controller.
fn matched_by(rule: &Value, pod: &Value) -> Option<String> {
    let metadata = &pod["metadata"];
    let name = format!(
        "{}/{}",
        metadata["namespace"].as_str().unwrap_or_default(),
        metadata["name"].as_str().unwrap_or_default()
    );
    if rule["onExitCodes"].is_object() {
        let (container, code) = matching_exit(&rule["onExitCodes"], &pod["status"])?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let patterns = rule["onPodConditions"].as_array()?;
    let conditions = pod["status"]["conditions"].as_array()?;
    let is_wanted = |condition: &&Value| {
        let matches = |pattern: &Value| {
            let status = pattern["status"].as_str().unwrap_or("True");
            pattern["type"] == condition["type"] && condition["status"] == status
        };
        patterns.iter().any(matches)
    };
    let condition = conditions.iter().find(is_wanted)?;
    Some(format!("Pod {name} has condition {}", condition["type"].as_str().unwrap_or_default()))
}

/// The first container that ended with a code that a rule asks for.
fn matching_exit(wanted: &Value, status: &Value) -> Option<(String, i64)> {
    let lists = ["containerStatuses", "initContainerStatuses"].map(|list| status[list].as_array());
    for container in lists.into_iter().flatten().flatten() {
        let Some(code) = container["state"]["terminated"]["exitCode"].as_i64().filter(|code| *code != 0)
        else {
            continue;
        };
        let is_named = wanted["containerName"].is_null() || wanted["containerName"] == container["name"];
        let is_listed =
            wanted["values"].as_array().is_some_and(|values| values.iter().any(|one| *one == code));
        if is_named && is_listed == (wanted["operator"] == "In") {
            return Some((container["name"].as_str().unwrap_or_default().to_owned(), code));
        }
    }
    None
}
