//! Rules of pods that the API server checks and no schema does.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::Findings;
use crate::well_known::GPU_RESOURCE;

const ALPHA_GPU_RESOURCE: &str = "alpha.kubernetes.io/nvidia-gpu";
const UNITS: [&str; 19] =
    ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u", "e3", "e6", "e9"];

/// The pod that an object is or creates, and its path in the object.
pub(super) fn pod_of(object: &Value) -> Option<(&Value, &'static str)> {
    match object["kind"].as_str()? {
        "Job" | "Deployment" => Some((object.pointer("/spec/template/spec")?, "spec.template.spec")),
        "Pod" => Some((object.get("spec")?, "spec")),
        _ => None,
    }
}

/// What contradicts itself in a pod.
pub(super) fn check_pod(pod: &Value, field: &str, findings: &mut Findings) {
    let volumes: BTreeSet<&str> = variable_names(&pod["volumes"]).collect();
    let mut seen = BTreeSet::new();
    for (number, name) in variable_names(&pod["volumes"]).enumerate() {
        if !seen.insert(name) {
            findings.add(
                &format!("{field}.volumes[{number}].name"),
                format!("there are two volumes '{name}'"),
                None,
            );
        }
    }
    if pod["containers"].as_array().is_some_and(Vec::is_empty) {
        findings.add(&format!("{field}.containers"), "the list is empty", None);
    }
    let mut containers = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for (number, container) in pod[list].as_array().into_iter().flatten().enumerate() {
            let field = format!("{field}.{list}[{number}]");
            let name = container["name"].as_str().unwrap_or_default();
            if !containers.insert(name) {
                findings.add(&format!("{field}.name"), format!("there are two containers '{name}'"), None);
            }
            if container["image"].is_null() {
                findings.add(&format!("{field}.image"), "it is missing", None);
            }
            check_mounts(container, &volumes, &field, findings);
            check_resources(&container["resources"], &field, findings);
            check_environment(container, &field, findings);
            check_ports(container, &field, findings);
        }
    }
}

fn variable_names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str())
}

fn check_mounts(container: &Value, volumes: &BTreeSet<&str>, field: &str, findings: &mut Findings) {
    let mut paths = BTreeSet::new();
    for (number, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.volumeMounts[{number}]");
        if let Some(name) = mount["name"].as_str().filter(|name| !volumes.contains(name)) {
            findings.add(&format!("{field}.name"), format!("there is no volume '{name}'"), None);
        }
        if let Some(path) = mount["mountPath"].as_str().filter(|path| !paths.insert(*path)) {
            findings.add(&format!("{field}.mountPath"), format!("two volumes are mounted at {path}"), None);
        }
    }
}

fn check_resources(resources: &Value, field: &str, findings: &mut Findings) {
    for list in ["requests", "limits"] {
        for (name, amount) in resources[list].as_object().into_iter().flatten() {
            let field = format!("{field}.resources.{list}.{name}");
            let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            if !is_quantity(&text) {
                findings.add(&field, format!("'{text}' is not an amount"), Some("write 4, 500m or 24Gi"));
            }
            if name == ALPHA_GPU_RESOURCE {
                findings.add(
                    &field,
                    "no node has had this resource since Kubernetes 1.11",
                    Some(&format!("it is called {GPU_RESOURCE}")),
                );
            }
        }
    }
    let (wanted, limit) = (&resources["requests"][GPU_RESOURCE], &resources["limits"][GPU_RESOURCE]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = format!("{field}.resources.limits.{GPU_RESOURCE}");
    if !wanted.is_null() && limit.is_null() {
        findings.add(&field, "GPUs are requested but not limited", Some("write the same number in limits"));
    } else if !wanted.is_null() && text(wanted) != text(limit) {
        findings.add(
            &field,
            format!("GPUs cannot be shared: the request is {}, the limit is {}", text(wanted), text(limit)),
            Some("write the same number twice"),
        );
    }
    if !limit.is_null() && text(limit).parse::<u32>().is_err() {
        findings.add(&field, "GPUs come in whole numbers", None);
    }
}

fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (digits, unit) = if text.contains('e') {
        text.split_at(text.find('e').unwrap_or(0))
    } else {
        (digits, &text[digits.len()..])
    };
    let good_number = digits.trim_start_matches(['+', '-']).parse::<f64>().is_ok();
    good_number && UNITS.contains(&unit)
}

fn check_environment(container: &Value, field: &str, findings: &mut Findings) {
    let list = container["env"].as_array();
    let all: Vec<&str> =
        list.into_iter().flatten().filter_map(|variable| variable["name"].as_str()).collect();
    for (number, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.env[{number}]");
        if !variable["value"].is_null() && !variable["valueFrom"].is_null() && variable["value"] != "" {
            findings.add(&field, "it has both value and valueFrom", None);
        }
        let Some(value) = variable["value"].as_str() else { continue };
        for name in variable_references(value) {
            // The kubelet expands variables that are defined before; others stay as written.
            if all.iter().position(|known| *known == name).is_some_and(|place| place >= number) {
                let help = format!("put {name} before it, or it stays as written");
                findings.add(
                    &format!("{field}.value"),
                    format!("$({name}) is defined further below"),
                    Some(&help),
                );
            } else if name == "JOB_COMPLETION_INDEX" && !all.contains(&name) {
                let help = "the Job controller appends it last: define it first, from the annotation batch.kubernetes.io/job-completion-index";
                findings.add(
                    &format!("{field}.value"),
                    "$(JOB_COMPLETION_INDEX) is not known yet here",
                    Some(help),
                );
            }
        }
    }
}

/// The variables that a value refers to.
fn variable_references(value: &str) -> Vec<&str> {
    let parts = value.match_indices("$(").filter(|(place, _)| !value[..*place].ends_with('$'));
    parts.filter_map(|(place, _)| value[place + 2..].split_once(')')).map(|(name, _)| name).collect()
}

fn check_ports(container: &Value, field: &str, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (number, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.ports[{number}]");
        if let Some(name) = port["name"].as_str() {
            if name.len() > 15 {
                findings.add(&format!("{field}.name"), format!("'{name}' has more than 15 characters"), None);
            }
            if !seen.insert(name) {
                findings.add(&format!("{field}.name"), format!("there are two ports '{name}'"), None);
            }
        }
    }
}
