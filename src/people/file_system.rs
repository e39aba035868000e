//! Directories of the file system, which nothing but a pod reaches: a short one in the cluster's own namespace creates one, or counts what is in it.

use std::time::Duration;

use serde_json::json;

use super::error::PeopleError;
use super::names::team_directory;
use crate::job::life::{HelperPod, PodWait, wait_for_helper};
use crate::job::{CLUSTER_CLAIM, CLUSTER_NAMESPACE};
use crate::kube::{ApiServer, KubeError, LogPart, ObjectName, Pod, PodPhase, Toleration};
use crate::waiting::Waiting;
use crate::well_known::TEAM_LABEL;

const ROLE: &str = "team-directory";
const MOUNT_PATH: &str = "/mnt/file-system";
/// A pod that was left behind is terminated after this time.
const LONGEST_SECONDS: u32 = 900;
/// It needs a machine and an image.
const TIME_LIMIT: Duration = Duration::from_mins(10);
/// More than a number and a message of mkdir need.
const LONGEST_TEXT: usize = 4096;
/// Creates the directory, and prints how much is in it.
const CREATE: &str = r#"mkdir -p -- "$0" && ls -A -- "$0" | wc -l"#;
/// Prints how much is in the directory, if it exists.
const COUNT: &str = r#"if [ -d "$0" ]; then ls -A -- "$0" | wc -l; else echo 0; fi"#;

/// How pods on the file system are started.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryPods {
    /// The image, which needs a shell.
    pub image: String,
    /// Taints they tolerate.
    pub tolerations: Vec<Toleration>,
    /// Distinguishes this pod from others at the same time.
    pub mark: String,
}

impl DirectoryPods {
    /// Creates the directory of a team; returns how many files and directories are in it.
    pub(super) async fn create(
        &self,
        api: &ApiServer,
        team: &str,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<u64, PeopleError> {
        self.run(api, team, CREATE, waiting, tell).await
    }

    /// How many files and directories are in the directory of a team.
    pub(crate) async fn count_files(
        &self,
        api: &ApiServer,
        team: &str,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<u64, PeopleError> {
        self.run(api, team, COUNT, waiting, tell).await
    }

    async fn run(
        &self,
        api: &ApiServer,
        team: &str,
        script: &str,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<u64, PeopleError> {
        let name = ObjectName::new("Pod", CLUSTER_NAMESPACE, &format!("team-{team}-{}", self.mark));
        let directory = format!("{MOUNT_PATH}{}", team_directory(team));
        let pod = HelperPod {
            name: &name,
            role: ROLE,
            label: Some((TEAM_LABEL, team)),
            image: &self.image,
            command: &["/bin/sh", "-c", script, &directory],
            variables: &[],
            resources: json!({"requests": {"cpu": "10m", "memory": "16Mi"}}),
            claim: CLUSTER_CLAIM,
            mount_path: MOUNT_PATH,
            is_read_only: false,
            longest_seconds: LONGEST_SECONDS,
            tolerations: &self.tolerations,
        };
        api.apply(&pod.object()).await?;
        let printed = read_output(api, &name, team, &waiting.at_most(TIME_LIMIT), tell).await;
        // It ends by itself; only its name is left.
        let deleted = api.delete_object(&name).await;
        let text = printed?;
        deleted?;
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        last.trim().parse().map_err(|_| directory_error(team, format!("its pod printed '{last}'")))
    }
}

/// What the pod printed, once it has succeeded.
async fn read_output(
    api: &ApiServer,
    name: &ObjectName,
    team: &str,
    waiting: &Waiting,
    tell: &(dyn Fn(String) + Sync),
) -> Result<String, PeopleError> {
    let ends = [PodPhase::Succeeded, PodPhase::Failed];
    match wait_for_helper(api, name, ROLE, &ends, waiting, tell).await? {
        PodWait::Reached(pod) if pod.phase == PodPhase::Succeeded => Ok(read_log(api, &pod).await?),
        PodWait::Reached(pod) => {
            let said = read_log(api, &pod).await.unwrap_or_default();
            let detail = pod.detail.unwrap_or_default();
            Err(directory_error(team, format!("{detail} {}", said.trim()).trim().to_owned()))
        }
        PodWait::Deleted => Err(directory_error(team, "its pod was deleted before it ran".to_owned())),
        PodWait::TimedOut { waits_for } => {
            Err(directory_error(team, format!("its pod did not run in time{waits_for}")))
        }
        PodWait::Interrupted => Err(PeopleError::Interrupted),
    }
}

async fn read_log(api: &ApiServer, pod: &Pod) -> Result<String, KubeError> {
    let part = LogPart { follow: false, tail: None, since_seconds: None };
    let mut body = api.pod_log(&pod.namespace, &pod.name, part).await?;
    Ok(String::from_utf8_lossy(&body.beginning(LONGEST_TEXT).await?).into_owned())
}

fn directory_error(team: &str, reason: String) -> PeopleError {
    PeopleError::Directory { path: team_directory(team), reason }
}
