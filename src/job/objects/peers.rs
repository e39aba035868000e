//! What lets a job's pods find each other: names, scripts, and rights where an image asks the API itself.

use serde_json::{Value, json};

use super::metadata::metadata;
use crate::job::names::{JOB_LABEL, scripts_name};
use crate::job::workload::Workload;

/// The scripts that pods run.
pub(super) fn scripts(workload: &Workload) -> Option<Value> {
    (!workload.scripts.is_empty()).then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(workload, &scripts_name(&workload.name), None),
            "data": workload.scripts,
        })
    })
}

/// The Service that gives each pod a DNS name, even before it is ready.
pub(super) fn service(workload: &Workload) -> Option<Value> {
    let ports = workload.roles.first()?.ports.iter();
    let ports: Vec<Value> = ports.map(|(name, port)| json!({"name": name, "port": port})).collect();
    workload.has_peers().then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(workload, &workload.name, None),
            "spec": {
                "clusterIP": "None",
                // Pods wait for each other before they are ready.
                "publishNotReadyAddresses": true,
                "selector": {JOB_LABEL: workload.name},
                "ports": ports,
            },
        })
    })
}

/// The account of an image that lists its peers' pods, and the right to do that and nothing else.
pub(super) fn rights(workload: &Workload) -> Vec<Value> {
    if !workload.asks_for_peers {
        return Vec::new();
    }
    let metadata = || metadata(workload, &workload.name, None);
    let group = "rbac.authorization.k8s.io";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata()}),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "Role",
            "metadata": metadata(),
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata(),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": workload.name},
            "subjects": [{"kind": "ServiceAccount", "name": workload.name, "namespace": workload.namespace}],
        }),
    ]
}
