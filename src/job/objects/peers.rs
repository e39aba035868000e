//! The scripts that a job's pods run, and rights where an image lists its peers through the API.

use serde_json::{Value, json};

use super::metadata::metadata;
use crate::job::names::scripts_name;
use crate::job::workload::Workload;

/// The scripts that pods run.
pub(super) fn scripts_config_map(workload: &Workload) -> Option<Value> {
    (!workload.scripts.is_empty()).then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(workload, &scripts_name(&workload.name), None),
            "data": workload.scripts,
        })
    })
}

/// The account of an image that lists its peers' pods, and the right to do that and nothing else.
pub(super) fn peer_listing_rights(workload: &Workload) -> Vec<Value> {
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
