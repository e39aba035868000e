//! Names and labels that objects carry.

use serde_json::{Value, json};

use crate::job::names::{FRAMEWORK_LABEL, JOB_LABEL, MANAGER, MANAGER_LABEL, ROLE_LABEL};
use crate::job::workload::Workload;

/// The metadata of an object of a job.
pub(super) fn metadata(workload: &Workload, name: &str, role: Option<&str>) -> Value {
    let mut labels = json!({
        MANAGER_LABEL: MANAGER,
        JOB_LABEL: workload.name,
        FRAMEWORK_LABEL: workload.framework.name(),
    });
    if let Some(role) = role {
        labels[ROLE_LABEL] = json!(role);
    }
    json!({"name": name, "namespace": workload.namespace, "labels": labels})
}

/// The metadata of a role's pods.
pub(super) fn pod_metadata(workload: &Workload, role: &str) -> Value {
    json!({
        "labels": {MANAGER_LABEL: MANAGER, JOB_LABEL: workload.name, ROLE_LABEL: role},
        // The autoscaler would otherwise move a pod, and a job with it, to save a machine.
        "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    })
}
