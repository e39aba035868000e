//! The Job that imports data, without a GPU.

use serde_json::{Value, json};

use super::metadata::{metadata, pod_metadata};
use super::pod::{
    claim_mount, claim_volume, container_security, environment, pod_security, script_mount, script_volume,
};
use crate::job::decide::SCRIPT_DIRECTORY;
use crate::job::names::{DIGEST_ANNOTATION, data_job_name, helper_affinity};
use crate::job::workload::Workload;

/// A day after it is done nobody asks for its log.
const SECONDS_KEPT: u32 = 86400;
const RETRIES: u32 = 3;
const ROLE: &str = "data";
/// What our scripts leave with when trying again cannot help.
pub(super) const EXIT_MISCONFIGURED: u32 = 64;

/// The import, if there is something to import.
pub(super) fn data_job(workload: &Workload) -> Option<Value> {
    let data = workload.data.as_ref()?;
    let mut metadata = metadata(workload, &data_job_name(&workload.name), Some(ROLE));
    if !workload.digest.is_empty() {
        metadata["annotations"] = json!({DIGEST_ANNOTATION: workload.digest});
    }
    Some(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": RETRIES,
            "podFailurePolicy": failure_policy(ROLE),
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": SECONDS_KEPT,
            "template": {
                "metadata": pod_metadata(workload, ROLE),
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "securityContext": pod_security(),
                    "affinity": helper_affinity(),
                    "tolerations": workload.helper_tolerations,
                    "containers": [{
                        "name": ROLE,
                        "image": data.image,
                        "command": ["python3", "-u", format!("{SCRIPT_DIRECTORY}/import_data.py")],
                        "env": environment(&data.variables),
                        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                        "securityContext": container_security(),
                        "volumeMounts": [claim_mount(workload), script_mount()],
                    }],
                    "volumes": [claim_volume(&workload.claim), script_volume(workload)],
                },
            },
        },
    }))
}

/// A lost machine costs no attempt; what cannot be mended by trying again is not tried again.
pub(super) fn failure_policy(container: &str) -> Value {
    json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": container, "operator": "In", "values": [EXIT_MISCONFIGURED]},
        },
    ]})
}
