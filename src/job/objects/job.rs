//! What the Kubernetes Jobs of a job have in common.

use serde_json::{Value, json};

/// What our scripts exit with when trying again cannot help.
const EXIT_MISCONFIGURED: u32 = 64;
/// What a machine reports of containers that it finds dead after a power cut. Our launchers never exit with it.
const EXIT_UNSEEN: u32 = 255;

/// What a Kubernetes Job does about the end of a pod.
#[derive(Clone, Copy)]
pub(super) enum LostMachine {
    /// A pod on another machine takes its place, uncounted.
    Replace,
    /// The whole Job fails, and the group with it.
    Fail {
        /// Whether a launcher of ours decides the exit code.
        has_launcher: bool,
    },
}

/// Adds to the spec of a Kubernetes Job what it does when a pod ends: what trying again cannot fix is not tried again.
pub(super) fn with_failure_policy(mut spec: Value, lost: LostMachine) -> Value {
    // Frameworks refuse a second process with the same number while the first still exists.
    spec["podReplacementPolicy"] = json!("Failed");
    let exit_code = |code| json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [code]}});
    let disruption = |action| json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let mut rules = vec![exit_code(EXIT_MISCONFIGURED)];
    match lost {
        LostMachine::Replace => rules.push(disruption("Ignore")),
        LostMachine::Fail { has_launcher } => {
            rules.push(disruption("FailJob"));
            if has_launcher {
                rules.push(exit_code(EXIT_UNSEEN));
            }
        }
    }
    spec["podFailurePolicy"] = json!({"rules": rules});
    spec
}
