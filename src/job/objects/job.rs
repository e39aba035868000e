//! What the Kubernetes Jobs of a job have in common.

use serde_json::{Value, json};

/// What our scripts exit with when trying again cannot help.
const EXIT_MISCONFIGURED: u32 = 64;

/// A Kubernetes Job. A lost machine costs no attempt; what trying again cannot fix is not tried again.
pub(super) fn job(metadata: &Value, container: &str, mut spec: Value) -> Value {
    // Frameworks refuse a second process with the same number while the first still exists.
    spec["podReplacementPolicy"] = json!("Failed");
    spec["podFailurePolicy"] = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": container, "operator": "In", "values": [EXIT_MISCONFIGURED]},
        },
    ]});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
}
