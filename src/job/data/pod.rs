//! The pod that mounts a claim while files are moved.

use serde_json::json;

use super::error::DataError;
use crate::job::life::{HelperPod, PodWait, helper_selector, wait_for_helper};
use crate::kube::{ApiServer, ObjectName, PodPhase, Toleration};
use crate::waiting::Waiting;

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
        for old in api.pods(Some(namespace), &helper_selector(ROLE)).await? {
            if old.phase.is_over() {
                api.delete_object(&ObjectName::new("Pod", namespace, &old.name)).await?;
            }
        }
        let pod = ObjectName::new("Pod", namespace, &format!("infra-files-{}", target.mark));
        let alive_file = alive_file(&pod.name);
        let helper = HelperPod {
            name: &pod,
            role: ROLE,
            label: None,
            image: &target.image,
            command: &["python3", "-c", WAIT, &alive_file],
            variables: &[],
            resources: json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}),
            claim,
            mount_path: MOUNT_PATH,
            is_read_only: target.is_read_only,
            longest_seconds: LONGEST_SECONDS,
            tolerations: &target.tolerations,
        };
        api.apply(&helper.object()).await?;
        Ok(Self { api, target, pod })
    }

    /// Waits until the pod runs.
    pub(crate) async fn wait_until_ready(
        &self,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), DataError> {
        let phases = [PodPhase::Running, PodPhase::Failed, PodPhase::Succeeded];
        let failed = |reason, help| Err(DataError::Pod { reason, help });
        let help = || Some("it needs a node that is Ready; `--image` names another image for it".to_owned());
        match wait_for_helper(self.api, &self.pod, ROLE, &phases, waiting, tell).await? {
            PodWait::Reached(pod) if pod.phase == PodPhase::Running => Ok(()),
            PodWait::Reached(pod) => {
                let detail = pod.detail.unwrap_or_else(|| "no reason was given".to_owned());
                failed(format!("it ended: {detail}"), None)
            }
            PodWait::Deleted => failed("it was deleted before it ran".to_owned(), None),
            PodWait::TimedOut { waits_for } => failed(format!("it did not start in time{waits_for}"), help()),
            PodWait::Interrupted => failed("interrupted".to_owned(), help()),
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
