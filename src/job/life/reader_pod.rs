//! A pod that reads a claim for a command, and is deleted by it.

use serde_json::{Value, json};

use crate::job::names::{JOB_LABEL, MANAGER, MANAGER_LABEL, ROLE_LABEL, helper_affinity};
use crate::kube::Toleration;

/// The role of a reader.
pub(super) const READER_ROLE: &str = "reader";
/// Where a reader finds the claim.
pub(super) const MOUNT_PATH: &str = "/mnt/results";
/// A reader that was left behind is terminated after this time.
const LONGEST_SECONDS: u32 = 6 * 3600;

/// What a reader does.
pub(super) struct ReaderPod<'a> {
    /// The name of the pod.
    pub name: &'a str,
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The job that it reads for.
    pub job: &'a str,
    /// The claim.
    pub claim: &'a str,
    /// The image; it needs python3.
    pub image: &'a str,
    /// The program it runs.
    pub script: &'a str,
    /// The variables of the program.
    pub variables: &'a [(&'a str, String)],
    /// Taints it tolerates.
    pub tolerations: &'a [Toleration],
}

impl ReaderPod<'_> {
    /// The pod as an object.
    pub(super) fn object(&self) -> Value {
        let variable = |(name, value): &(&str, String)| json!({"name": name, "value": value});
        let variables: Vec<Value> = self.variables.iter().map(variable).collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {MANAGER_LABEL: MANAGER, JOB_LABEL: self.job, ROLE_LABEL: READER_ROLE},
            },
            "spec": {
                "restartPolicy": "Never",
                "activeDeadlineSeconds": LONGEST_SECONDS,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "affinity": helper_affinity(),
                "tolerations": self.tolerations,
                // It has nothing to clean up.
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": READER_ROLE,
                    "image": self.image,
                    "command": ["python3", "-u", "-c", self.script],
                    "env": variables,
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": false},
                    "volumeMounts": [{"name": "storage", "mountPath": MOUNT_PATH, "readOnly": true}],
                }],
                "volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": self.claim}}],
            },
        })
    }
}
