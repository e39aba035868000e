//! How the attempts of a run ended, as its launchers wrote it to the claim: a pod reads it there, and its log brings it here.

use serde::Deserialize;
use serde_json::json;

use super::error::JobError;
use super::helper_pod::{HelperPod, PodWait, wait_for_helper};
use super::report::JobReport;
use crate::job::names::JOB_LABEL;
use crate::kube::{ApiServer, LogPart, ObjectName, PodPhase, Toleration};
use crate::waiting::Waiting;

/// The role of the pod.
pub(super) const READER_ROLE: &str = "reader";
/// Where the pod finds the claim.
const MOUNT_PATH: &str = "/mnt/results";
/// A pod that was left behind is terminated after this time.
const LONGEST_SECONDS: u32 = 6 * 3600;

/// Twenty attempts with 120 lines each, and room for escapes.
const LONGEST_TEXT: usize = 8 << 20;

/// How a record reader runs.
#[derive(Clone, Debug)]
pub(crate) struct RecordTarget {
    /// The image of the reader.
    pub image: String,
    /// The program it runs.
    pub script: String,
    /// Distinguishes this reader from others at the same time.
    pub mark: String,
    /// Taints it tolerates.
    pub tolerations: Vec<Toleration>,
}

/// The end of an attempt: the replica that the others followed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptRecord {
    /// The attempt, counted from 0.
    pub attempt: u32,
    /// The role of the replica.
    pub role: String,
    /// The index of the replica.
    pub index: u32,
    /// How it ended.
    pub how: RecordedEnd,
    /// What its program exited with.
    pub exit_code: Option<i64>,
    /// When, in UTC.
    pub at: String,
    /// The last lines of its log.
    pub last_lines: Vec<String>,
    /// How many others failed too.
    pub others_failed: u32,
    /// How many others did not.
    pub others_terminated: u32,
}

/// How a replica ended, from the last lines of its log.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RecordedEnd {
    /// Its program exited.
    Exited,
    /// The deadline passed.
    Late,
    /// Its pod was terminated.
    Terminated,
    /// Its log just ends.
    Silent,
}

#[derive(Deserialize)]
struct Records {
    attempts: Vec<AttemptRecord>,
}

/// A pod that reads the records of a run. It must be deleted afterwards.
#[derive(Debug)]
pub(crate) struct RecordReader<'a> {
    api: &'a ApiServer,
    job: String,
    pod: ObjectName,
}

impl<'a> RecordReader<'a> {
    /// Starts a reader.
    pub(crate) async fn start(
        api: &'a ApiServer,
        report: &JobReport,
        target: &RecordTarget,
    ) -> Result<Self, JobError> {
        let name = format!("{}-reader-{}", report.name, target.mark);
        let name = ObjectName::new("Pod", &report.namespace, &name);
        let pod = HelperPod {
            name: &name,
            role: READER_ROLE,
            label: Some((JOB_LABEL, report.name.as_str())),
            image: &target.image,
            command: &["python3", "-u", "-c", &target.script],
            variables: &[
                ("ATTEMPTS_CLAIM", MOUNT_PATH.to_owned()),
                ("ATTEMPTS_RUN", format!("{MOUNT_PATH}/{}", report.directory)),
                ("ATTEMPTS_JOBSET_UID", report.set_uid.clone().unwrap_or_default()),
            ],
            resources: json!({"requests": {"cpu": "100m", "memory": "128Mi"}}),
            claim: &report.claim,
            mount_path: MOUNT_PATH,
            is_read_only: true,
            longest_seconds: LONGEST_SECONDS,
            tolerations: &target.tolerations,
        };
        api.apply(&pod.object()).await?;
        Ok(Self { api, job: report.name.clone(), pod: name })
    }

    /// Waits until the pod has read everything, and returns the attempts, oldest first.
    pub(crate) async fn read(
        &self,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<AttemptRecord>, JobError> {
        let ends = [PodPhase::Succeeded, PodPhase::Failed];
        match wait_for_helper(self.api, &self.pod, READER_ROLE, &ends, waiting, tell).await? {
            PodWait::Reached(pod) if pod.phase == PodPhase::Succeeded => self.parse_log().await,
            PodWait::Reached(pod) => {
                let detail = pod.detail.unwrap_or_else(|| "no reason was given".to_owned());
                Err(self.unreadable(format!("the pod that reads them ended: {detail}")))
            }
            PodWait::Deleted => Err(self.unreadable("the pod that reads them was deleted".to_owned())),
            PodWait::TimedOut { waits_for } => {
                Err(self.unreadable(format!("the pod that reads them did not end in time{waits_for}")))
            }
            PodWait::Interrupted => Err(self.unreadable("interrupted".to_owned())),
        }
    }

    async fn parse_log(&self) -> Result<Vec<AttemptRecord>, JobError> {
        let mut body = self.api.pod_log(&self.pod.namespace, &self.pod.name, LogPart::default()).await?;
        let text = String::from_utf8_lossy(&body.beginning(LONGEST_TEXT).await?).into_owned();
        let records = text.lines().rev().find_map(|line| serde_json::from_str::<Records>(line).ok());
        let records = records
            .ok_or_else(|| self.unreadable("the pod that reads them printed something else".to_owned()))?;
        Ok(records.attempts)
    }

    /// Deletes the reader pod.
    pub(crate) async fn remove(self) -> Result<(), JobError> {
        self.api.delete_object(&self.pod).await?;
        Ok(())
    }

    fn unreadable(&self, reason: String) -> JobError {
        JobError::Records { name: self.job.clone(), reason }
    }
}
