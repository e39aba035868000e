//! Kubernetes objects into findings: what the API server would refuse, and what it takes but cannot work.
//!
//! It reads objects of anybody's making. Those of ours pass by construction; a test says so.

mod field_types;
mod finding;
mod job_rules;
mod pod_rules;
mod training_rules;

use std::path::Path;

use serde_json::{Value, json};

pub(crate) use finding::LintFinding;

use finding::Findings;

use super::names::role_job_name;
use crate::document::{Problems, parse_untyped};

/// The objects of a file that holds any number of documents.
pub(crate) fn parse_objects(path: &Path, text: &str) -> Result<Vec<Value>, Problems> {
    let mut objects = Vec::new();
    for (line, document) in split_documents(text) {
        let value = parse_untyped(path, &document).map_err(|problems| problems.moved_down(line))?;
        match value.get("items") {
            Some(Value::Array(items)) if value["kind"] == "List" => objects.extend(items.clone()),
            _ if value.is_null() => {}
            _ => objects.push(value),
        }
    }
    Ok(objects)
}

/// The documents of a text, each with the number of lines before it.
fn split_documents(text: &str) -> Vec<(u64, String)> {
    let mut documents = vec![(0, String::new())];
    for (number, line) in (0..).zip(text.lines()) {
        let begins =
            line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']));
        if let Some(rest) = begins {
            let rest = rest.trim();
            // Text beside the separator belongs to the document that it begins.
            let is_empty = rest.is_empty() || rest.starts_with('#');
            documents.push(if is_empty {
                (number + 1, String::new())
            } else {
                (number, format!("{rest}\n"))
            });
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|(_, document)| !document.trim().is_empty());
    documents
}

/// Everything that is wrong with some objects.
#[must_use]
pub(crate) fn lint_objects(objects: &[Value]) -> Vec<LintFinding> {
    objects.iter().enumerate().flat_map(|(number, object)| lint_object(number, object)).collect()
}

/// The Jobs that a JobSet creates, each checked as if it were written by itself.
fn lint_replicated_jobs(set: &Value, findings: &mut Findings) {
    for (number, job) in set["spec"]["replicatedJobs"].as_array().into_iter().flatten().enumerate() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = role_job_name(&text(&set["metadata"]["name"]), &text(&job["name"]));
        let written = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": job["template"]["spec"],
        });
        for finding in lint_object(number, &written) {
            let field = format!("spec.replicatedJobs[{number}].template.{}", finding.field);
            findings.add(&field, finding.message, finding.help.as_deref());
        }
    }
}

fn lint_object(number: usize, object: &Value) -> Vec<LintFinding> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind");
    let name = match text("/metadata/name") {
        "" => format!("document {}", number + 1),
        name => format!("{kind} {name}"),
    };
    let mut findings = Findings::new(name);
    if kind.is_empty() {
        let help = "a job file is checked with `-f FILE`";
        findings.add("kind", "it is missing: this is not a Kubernetes object", Some(help));
        return findings.list;
    }
    field_types::check_fields(object, &mut findings);
    job_rules::check_name(object, &mut findings);
    if kind == "JobSet" {
        lint_replicated_jobs(object, &mut findings);
    } else if kind == "Job" {
        job_rules::check_job(object, &mut findings);
        training_rules::check_training(object, &mut findings);
    }
    if let Some((pod, field)) = pod_rules::pod_of(object) {
        pod_rules::check_pod(pod, field, &mut findings);
    }
    findings.list
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{parse_objects, split_documents};

    #[test]
    fn documents_keep_their_lines() {
        let found = |text: &str| split_documents(text);
        let is = |line: u64, text: &str| (line, text.to_owned());
        assert_eq!(found("a: 1\n---\nb: 2\n"), [is(0, "a: 1\n"), is(2, "b: 2\n")]);
        assert_eq!(found("---\na: 1\n---\n"), [is(1, "a: 1\n")]);
        assert_eq!(found("a: 1\n--- # the next\nb: 2\n"), [is(0, "a: 1\n"), is(2, "b: 2\n")]);
        assert_eq!(
            found("--- {a: 1}\n---\n---- not a separator\n"),
            [is(0, "{a: 1}\n"), is(2, "---- not a separator\n")]
        );
    }

    #[test]
    fn separators_alone_cost_nothing() {
        assert_eq!(split_documents(&"---\n".repeat(1 << 18)), []);
    }

    #[test]
    fn findings_have_their_position_in_the_file() -> Result<(), &'static str> {
        let text = "kind: Job\n--- # the next\nkind: Job\nmetadata: [\n";
        let problems = parse_objects(Path::new("objects.yaml"), text).err().ok_or("it was read")?;
        assert!(problems.list().iter().all(|problem| problem.position.line >= 4), "{problems}");
        Ok(())
    }
}
