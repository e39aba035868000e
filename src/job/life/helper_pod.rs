//! Pods that work on a claim for a command, and are deleted by it: how they are made, and how they are waited for.

use serde_json::{Value, json};

use super::stall::explain_pods;
use crate::job::names::{MANAGER, MANAGER_LABEL, ROLE_LABEL, helper_affinity};
use crate::kube::{ApiServer, KubeError, ObjectName, Pod, PodPhase, Toleration};
use crate::waiting::{Pace, WaitEnd, Waiting};

/// A pod that mounts a claim and runs a program for a command.
#[derive(Debug)]
pub(crate) struct HelperPod<'a> {
    /// The name of the pod.
    pub name: &'a ObjectName,
    /// What the pod is for.
    pub role: &'a str,
    /// A label with whom it works for.
    pub label: Option<(&'static str, &'a str)>,
    /// The image of the pod.
    pub image: &'a str,
    /// The program it runs.
    pub command: &'a [&'a str],
    /// The variables of the program.
    pub variables: &'a [(&'a str, String)],
    /// What it requests of its node.
    pub resources: Value,
    /// The claim.
    pub claim: &'a str,
    /// Where the claim is mounted.
    pub mount_path: &'a str,
    /// Whether it can only read.
    pub is_read_only: bool,
    /// A pod that was left behind is terminated after this time.
    pub longest_seconds: u32,
    /// Taints it tolerates.
    pub tolerations: &'a [Toleration],
}

impl HelperPod<'_> {
    /// The pod as an object.
    #[must_use]
    pub(crate) fn object(&self) -> Value {
        let variable = |(name, value): &(&str, String)| json!({"name": name, "value": value});
        let variables: Vec<Value> = self.variables.iter().map(variable).collect();
        let mut labels = json!({MANAGER_LABEL: MANAGER, ROLE_LABEL: self.role});
        if let Some((key, value)) = self.label {
            labels[key] = value.into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name.name, "namespace": self.name.namespace, "labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "activeDeadlineSeconds": self.longest_seconds,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "affinity": helper_affinity(),
                "tolerations": self.tolerations,
                // It has nothing to clean up.
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": self.role,
                    "image": self.image,
                    "command": self.command,
                    "env": variables,
                    "resources": self.resources,
                    "securityContext": {"allowPrivilegeEscalation": false},
                    "volumeMounts": [
                        {"name": "storage", "mountPath": self.mount_path, "readOnly": self.is_read_only},
                    ],
                }],
                "volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": self.claim}}],
            },
        })
    }
}

/// Selects the helper pods of a role.
#[must_use]
pub(crate) fn helper_selector(role: &str) -> String {
    format!("{MANAGER_LABEL}={MANAGER},{ROLE_LABEL}={role}")
}

/// What came of waiting for a pod.
#[derive(Clone, Debug)]
pub(crate) enum PodWait {
    /// The pod is in a phase that was waited for.
    Reached(Box<Pod>),
    /// Someone deleted the pod.
    Deleted,
    /// The time is up.
    TimedOut {
        /// What the pod waits for, after a colon; empty if it does not say.
        waits_for: String,
    },
    /// The user interrupted.
    Interrupted,
}

/// Waits until a helper pod is in one of the phases. What it waits for meanwhile is reported, each reason once.
pub(crate) async fn wait_for_helper(
    api: &ApiServer,
    name: &ObjectName,
    role: &str,
    phases: &[PodPhase],
    waiting: &Waiting,
    report: &(dyn Fn(String) + Sync),
) -> Result<PodWait, KubeError> {
    let (mut pace, mut reported) = (Pace::of_moment(), None);
    loop {
        let mut pods = api.pods(Some(&name.namespace), &helper_selector(role)).await?;
        pods.retain(|pod| pod.name == name.name);
        explain_pods(api, &mut pods).await;
        let Some(pod) = pods.pop() else { return Ok(PodWait::Deleted) };
        if phases.contains(&pod.phase) {
            return Ok(PodWait::Reached(Box::new(pod)));
        }
        if pod.detail.is_some() && pod.detail != reported {
            report(pod.detail.clone().unwrap_or_default());
            reported = pod.detail;
        }
        match waiting.pause(pace.next_pause()).await {
            Ok(()) => {}
            Err(WaitEnd::Interrupted) => return Ok(PodWait::Interrupted),
            Err(WaitEnd::TimedOut) => {
                let waits_for = reported.map(|detail| format!(": {detail}")).unwrap_or_default();
                return Ok(PodWait::TimedOut { waits_for });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::HelperPod;
    use crate::kube::ObjectName;
    use crate::well_known::{JOB_ROLE_LABEL, MANAGER, MANAGER_LABEL};

    #[test]
    fn a_helper_pod_is_found_by_its_role_and_mounts_its_claim_as_it_is_asked_to() {
        let name = ObjectName::new("Pod", "team-vision", "infra-files-1a2b");
        let pod = HelperPod {
            name: &name,
            role: "files",
            label: Some(("team", "vision")),
            image: "docker.io/library/python:3.13",
            command: &["python3"],
            variables: &[("RUN", "1".to_owned())],
            resources: json!({"requests": {"cpu": "10m"}}),
            claim: "efs-data",
            mount_path: "/mnt/claim",
            is_read_only: true,
            longest_seconds: 60,
            tolerations: &[],
        };
        let object = pod.object();
        assert_eq!(ObjectName::of(&object), name);
        let labels = json!({MANAGER_LABEL: MANAGER, JOB_ROLE_LABEL: "files", "team": "vision"});
        assert_eq!(object["metadata"]["labels"], labels);
        let container = &object["spec"]["containers"][0];
        assert_eq!(container["env"], json!([{"name": "RUN", "value": "1"}]));
        assert_eq!(container["volumeMounts"][0]["readOnly"], true);
        assert_eq!(object["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "efs-data");
    }
}
