//! The pod that mounts a claim while files are moved.

use serde_json::{Value, json};

use super::error::DataError;
use crate::job::life::explain_pods;
use crate::job::names::{MANAGER, MANAGER_LABEL, ROLE_LABEL, helper_affinity};
use crate::kube::{ApiServer, ObjectName, PodPhase, Toleration};
use crate::waiting::{Pace, WaitEnd, Waiting};

/// Where the claim is mounted.
pub(super) const MOUNT_PATH: &str = "/mnt/claim";
/// The role of the pod.
const ROLE: &str = "files";
/// Ends the pod when nobody has used it for a quarter of an hour: whoever started it was killed.
const WAIT: &str = "\
import os, sys, time
path = sys.argv[1]
open(path, 'a').close()
os.utime(path)
while time.time() - os.stat(path).st_mtime < 900:
    time.sleep(5)
";
/// A pod that a program keeps alive for no reason ends after a week.
const LONGEST_SECONDS: u32 = 7 * 24 * 3600;

/// Which claim, and what mounts it.
#[derive(Clone, Debug)]
pub(crate) struct FilesTarget {
    /// The namespace of the claim.
    pub namespace: String,
    /// The claim.
    pub claim: String,
    /// The image of the pod; it has python3.
    pub image: String,
    /// Distinguishes this pod from others at the same time.
    pub mark: String,
    /// Taints it tolerates.
    pub tolerations: Vec<Toleration>,
    /// Whether it can only read.
    pub is_read_only: bool,
}

/// A pod that mounts a claim. It must be deleted afterwards.
#[derive(Debug)]
pub(crate) struct FilesPod<'a> {
    api: &'a ApiServer,
    target: &'a FilesTarget,
    pod: ObjectName,
}

impl<'a> FilesPod<'a> {
    /// Creates the pod, after those that ended were deleted.
    pub(crate) async fn start(api: &'a ApiServer, target: &'a FilesTarget) -> Result<Self, DataError> {
        let FilesTarget { namespace, claim, .. } = target;
        match api.claim_phase(namespace, claim).await?.as_deref() {
            Some("Bound") => {}
            Some(phase) => {
                let reason =
                    format!("the claim {claim} in namespace {namespace} is {phase}: it has no volume");
                return Err(DataError::Claim { reason });
            }
            None => {
                let reason = format!("there is no claim {claim} in namespace {namespace}");
                return Err(DataError::Claim { reason });
            }
        }
        for old in api.pods(Some(namespace), &selector()).await? {
            if old.phase.is_over() {
                api.delete_object(&ObjectName::new("Pod", namespace, &old.name)).await?;
            }
        }
        let name = format!("infra-files-{}", target.mark);
        api.apply(&files_pod(target, &name)).await?;
        Ok(Self { api, target, pod: ObjectName::new("Pod", namespace, &name) })
    }

    /// Waits until the pod runs.
    pub(crate) async fn wait_until_ready(
        &self,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), DataError> {
        let mut pace = Pace::of_moment();
        let mut told = None;
        loop {
            let mut pods = self.api.pods(Some(self.namespace()), &selector()).await?;
            pods.retain(|pod| pod.name == self.pod.name);
            explain_pods(self.api, &mut pods).await;
            let detail = pods.first().and_then(|pod| pod.detail.clone());
            match pods.first().map(|pod| pod.phase) {
                Some(PodPhase::Running) => return Ok(()),
                Some(PodPhase::Failed | PodPhase::Succeeded) => {
                    let detail = detail.unwrap_or_else(|| "no reason was given".to_owned());
                    return Err(DataError::Pod { reason: format!("it ended: {detail}"), help: None });
                }
                _ if detail.is_some() && detail != told => {
                    tell(detail.clone().unwrap_or_default());
                    told = detail;
                }
                _ => {}
            }
            if let Err(end) = waiting.pause(pace.next_pause()).await {
                let waits_for = told.map(|detail| format!(": {detail}")).unwrap_or_default();
                let reason = match end {
                    WaitEnd::TimedOut => format!("it did not start in time{waits_for}"),
                    WaitEnd::Interrupted => "interrupted".to_owned(),
                };
                let help = "it needs a node that is Ready; `--image` names another image for it".to_owned();
                return Err(DataError::Pod { reason, help: Some(help) });
            }
        }
    }

    /// Deletes the pod.
    pub(crate) async fn remove(self) -> Result<(), DataError> {
        self.api.delete_object(&self.pod).await?;
        Ok(())
    }

    pub(super) fn namespace(&self) -> &str {
        &self.target.namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.pod.name
    }

    /// The file that the program in the pod touches while it is used.
    pub(super) fn alive_file(&self) -> String {
        alive_file(&self.pod.name)
    }

    pub(super) fn claim(&self) -> &str {
        &self.target.claim
    }
}

fn alive_file(pod: &str) -> String {
    format!("/tmp/{pod}")
}

fn selector() -> String {
    format!("{MANAGER_LABEL}={MANAGER},{ROLE_LABEL}={ROLE}")
}

fn files_pod(target: &FilesTarget, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": target.namespace,
            "labels": {MANAGER_LABEL: MANAGER, ROLE_LABEL: ROLE},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LONGEST_SECONDS,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "affinity": helper_affinity(),
            "tolerations": target.tolerations,
            // It has nothing to clean up.
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": ROLE,
                "image": target.image,
                "command": ["python3", "-c", WAIT, alive_file(name)],
                "env": [],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false},
                "volumeMounts": [{"name": "storage", "mountPath": MOUNT_PATH, "readOnly": target.is_read_only}],
            }],
            "volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": target.claim}}],
        },
    })
}
