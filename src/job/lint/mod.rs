//! Kubernetes objects into findings: what the API server would refuse, and what it takes but cannot work.
//!
//! It reads objects of anybody's making. Those of ours pass by construction; a test says so.

mod field_types;
mod job_rules;
mod pod_rules;
mod training_rules;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::document::{Problems, parse_untyped};

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LintFinding {
    /// The object, as `Job train`.
    pub object: String,
    /// The field, as `spec.completions`.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Collects what is wrong with one object.
struct Findings {
    object: String,
    list: Vec<LintFinding>,
}

impl Findings {
    fn add(&mut self, field: &str, message: impl Into<String>, help: Option<&str>) {
        self.list.push(LintFinding {
            object: self.object.clone(),
            field: field.to_owned(),
            message: message.into(),
            help: help.map(str::to_owned),
        });
    }
}

/// The objects of a file that holds any number of documents.
pub fn parse_objects(path: &Path, text: &str) -> Result<Vec<Value>, Problems> {
    let mut objects = Vec::new();
    for document in documents(text) {
        let value = parse_untyped(path, &document)?;
        match value.get("items") {
            Some(Value::Array(items)) if value["kind"] == "List" => objects.extend(items.clone()),
            _ if value.is_null() => {}
            _ => objects.push(value),
        }
    }
    Ok(objects)
}

/// The documents of a text, each with its place in it kept by empty lines.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for (number, line) in text.lines().enumerate() {
        if line.trim_end() == "---" {
            documents.push("\n".repeat(number + 1));
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|document| !document.trim().is_empty());
    documents
}

/// Everything that is wrong with some objects.
#[must_use]
pub fn lint_objects(objects: &[Value]) -> Vec<LintFinding> {
    objects.iter().enumerate().flat_map(|(number, object)| lint_object(number, object)).collect()
}

fn lint_object(number: usize, object: &Value) -> Vec<LintFinding> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind");
    let name = match text("/metadata/name") {
        "" => format!("document {}", number + 1),
        name => format!("{kind} {name}"),
    };
    let mut findings = Findings { object: name, list: Vec::new() };
    if kind.is_empty() {
        let help = "a job file is checked with `-f FILE`";
        findings.add("kind", "it is missing: this is no Kubernetes object", Some(help));
        return findings.list;
    }
    field_types::check_fields(object, &mut findings);
    job_rules::check_name(object, &mut findings);
    if kind == "Job" {
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
    use super::documents;

    #[test]
    fn documents_keep_their_lines() {
        assert_eq!(documents("a: 1\n---\nb: 2\n"), ["a: 1\n", "\n\nb: 2\n"]);
        assert_eq!(documents("---\na: 1\n---\n"), ["\na: 1\n"]);
    }
}
