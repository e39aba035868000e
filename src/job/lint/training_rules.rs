//! What the API server takes and what cannot work, or cannot work twice, as training on this cluster.

use serde_json::Value;

use super::finding::Findings;

/// What the start script of the first generation reads, under `set -u`.
const PADDLE_VARIABLES: [&str; 10] = [
    "JOB_NAME",
    "JOB_PATH",
    "JOB_NAMESPACE",
    "TRAIN_CONFIG_DIR",
    "CONF_PADDLE_NIC",
    "CONF_PADDLE_PORT",
    "CONF_PADDLE_PORTS_NUM",
    "CONF_PADDLE_PORTS_NUM_SPARSE",
    "CONF_PADDLE_GRADIENT_NUM",
    "TRAINER_COUNT",
];

/// Notes what a training Job should not have.
pub(super) fn check_training(object: &Value, findings: &mut Findings) {
    let spec = &object["spec"];
    let pod = &spec["template"]["spec"];
    let field = "spec.template.spec";
    let several = spec["completions"].as_u64().unwrap_or(1) > 1;
    // An image that lists its peers itself has an account for that.
    let asks_for_peers = pod["serviceAccountName"].is_string();
    let mode = &spec["completionMode"];
    if several && !asks_for_peers && (mode.is_null() || mode == "NonIndexed") {
        findings.add(
            "spec.completionMode",
            "its pods have no numbers: which trainer is which depends on the order of their addresses",
            Some("write completionMode: Indexed and number trainers by JOB_COMPLETION_INDEX"),
        );
    }
    if pod["hostNetwork"] == true {
        findings.add(
            &format!("{field}.hostNetwork"),
            "the pod shares the node's network: its ports may be in use, and it can use the node's IAM role",
            Some("remove it"),
        );
    }
    for (number, volume) in pod["volumes"].as_array().into_iter().flatten().enumerate() {
        if !volume["hostPath"].is_null() {
            findings.add(
                &format!("{field}.volumes[{number}].hostPath"),
                "what is written there stays on one node",
                Some("use the claim: persistentVolumeClaim: {claimName: efs}"),
            );
        }
    }
    let mounts: Vec<&str> = containers_of(pod)
        .flat_map(|container| container["volumeMounts"].as_array().into_iter().flatten())
        .filter_map(|mount| mount["mountPath"].as_str())
        .collect();
    for (number, container) in containers_of(pod).enumerate() {
        let field = format!("{field}.containers[{number}]");
        check_container(container, spec, &field, &mounts, findings);
    }
}

fn containers_of(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["containers"].as_array().into_iter().flatten()
}

fn check_container(container: &Value, spec: &Value, field: &str, mounts: &[&str], findings: &mut Findings) {
    if container["securityContext"]["privileged"] == true {
        findings.add(
            &format!("{field}.securityContext.privileged"),
            "training needs no rights over its node",
            Some("remove it; GPUs come as a resource"),
        );
    }
    for (number, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        if !port["hostPort"].is_null() {
            findings.add(
                &format!("{field}.ports[{number}].hostPort"),
                "only one pod per node can use it",
                Some("remove it: pods reach each other without it"),
            );
        }
    }
    let first = container["command"][0].as_str().unwrap_or_default();
    if first.contains('/') && !first.starts_with(['/', '.']) {
        findings.add(
            &format!("{field}.command[0]"),
            format!("'{first}' depends on the directory it is started in"),
            Some(&format!("write /{first}")),
        );
    }
    let value = |name: &str| {
        let mut variables = container["env"].as_array().into_iter().flatten();
        variables.find(|variable| variable["name"] == name)
    };
    if let Some(output) = value("OUT_DIR").and_then(|variable| variable["value"].as_str()) {
        let inside = mounts.iter().any(|mount| {
            output == *mount || output.starts_with(&format!("{}/", mount.trim_end_matches('/')))
        });
        if !inside {
            findings.add(
                &format!("{field}.env"),
                format!("OUT_DIR is {output}, which is on no volume: what is written there is lost"),
                Some("begin it with the mountPath of the claim"),
            );
        }
    }
    if value("CONF_PADDLE_GRADIENT_NUM").is_some() {
        for name in PADDLE_VARIABLES {
            if value(name).is_none() {
                findings.add(
                    &format!("{field}.env"),
                    format!("{name} is missing: the start script of paddle-v0 ends without it"),
                    None,
                );
            }
        }
        let gradient = value("CONF_PADDLE_GRADIENT_NUM")
            .and_then(|variable| variable["value"].as_str()?.parse::<u64>().ok());
        let completions = spec["completions"].as_u64().unwrap_or(1);
        if gradient != Some(completions) {
            findings.add(
                &format!("{field}.env"),
                format!("CONF_PADDLE_GRADIENT_NUM must be the number of trainers, {completions}"),
                None,
            );
        }
    }
}
