//! The template of pods that help a job and need no GPU.

use serde_json::{Value, json};

use super::metadata::pod_metadata;
use super::pod::{add_pull_secrets, pod_security};
use crate::job::names::helper_affinity;
use crate::job::workload::Workload;

/// A pod with one container that keeps off GPU machines where it can.
pub(super) fn helper_template(
    workload: &Workload,
    role: &str,
    container: &Value,
    volumes: &[Value],
) -> Value {
    let mut template = json!({
        "metadata": pod_metadata(workload, role),
        "spec": {
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": pod_security(),
            "affinity": helper_affinity(),
            "tolerations": workload.helper_tolerations,
            "containers": [container],
            "volumes": volumes,
        },
    });
    add_pull_secrets(&mut template["spec"], workload);
    template
}
