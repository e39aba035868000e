//! What the Kubernetes Jobs of a job have in common.

use serde_json::{Value, json};

/// What our scripts exit with when trying again cannot help.
const EXIT_MISCONFIGURED: u32 = 64;

/// What a Kubernetes Job does about the end of a pod.
#[derive(Clone, Copy)]
pub(super) enum LostMachine {
    /// A pod on another machine takes its place, uncounted.
    Replace,
    /// The whole Job fails, and the group with it.
    Fail,
}

/// Adds to the spec of a Kubernetes Job what it does when a pod ends: what trying again cannot fix is not tried again.
pub(super) fn with_failure_policy(mut spec: Value, lost: LostMachine) -> Value {
    // Frameworks refuse a second process with the same number while the first still exists.
    spec["podReplacementPolicy"] = json!("Failed");
    let action = match lost {
        LostMachine::Replace => "Ignore",
        LostMachine::Fail => "FailJob",
    };
    spec["podFailurePolicy"] = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [EXIT_MISCONFIGURED]}},
        {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]});
    spec
}
